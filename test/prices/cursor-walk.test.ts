import t from 'tap';
import { randomOf } from '../conversion/support.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { anyRequest, valuesOf } from '../support/fuzz/any-request.ts';
import { type Reply, type Service, serviceOn } from '../support/http/service.ts';
import { CHANGES } from '../support/prices/changes.ts';
import { commitConcurrently } from '../support/prices/concurrent-commit.ts';
import { byAddress, queryText } from '../support/prices/query.ts';

const SEED = 20_261_122;
/** Walks between two changes of the data, each with a change in its midst. */
const PER_CHANGE = 2;

let database: TestDatabase;
let service: Service;
t.before(async () => {
  database = await testDatabase(t, { seeded: true });
  service = await serviceOn(t, database);
});

interface RequestBody {
  readonly filters: object;
  readonly options: object;
}

/** Sends POST or GET, for NDJSON or JSON: all return the same records. */
function ask(slug: string, body: RequestBody, byQuery: boolean, accept = '*/*'): Promise<Reply> {
  const url = `/v3/prices/${slug}`;
  const headers = { accept };
  return byQuery
    ? service.request({ method: 'GET', url: `${url}?${queryText(body)}`, headers })
    : service.request({ method: 'POST', url, payload: body, headers });
}

const withOptions = ({ filters, options }: RequestBody, more: object): RequestBody => ({
  filters,
  options: { ...options, ...more },
});

const LINES = 'application/x-ndjson';
/** Snapshot and warnings; of the warnings those that fit the header whatever their places are. */
const aboutOf = ({ headers }: Reply) => ({
  told: ['x-data-revision', 'x-warnings-count'].map((name) => headers[name]),
  warnings: JSON.parse(byAddress(headers['x-warnings'] ?? '[]')).slice(0, 5),
});

/** Walks an answer page by page and compares the joined pages with the whole answer. */
async function walk(
  slug: string,
  body: RequestBody,
  limit: number,
  round: number,
): Promise<number> {
  const first = await ask(slug, withOptions(body, { limit }), round % 2 === 0, LINES);
  const revision = first.headers['x-data-revision'];
  if (first.status !== 200) {
    const whole = await ask(slug, body, false, LINES);
    t.equal(whole.status, first.status, 'a page is refused when the whole is');
    return 0;
  }
  const lines: string[] = [];
  let pages = 0;
  for (let page = first; ; pages += 1) {
    t.same(aboutOf(page), aboutOf(first), 'revision and warnings are those of the whole request');
    const found = page.text.split('\n').slice(0, -1);
    lines.push(...found);
    const cursor = page.headers['x-next-cursor'];
    t.equal(found.length < limit ? cursor : undefined, undefined, 'only the last is not full');
    if (cursor === undefined) break;
    if (pages === 0) await commitConcurrently(database.pool, round);
    const byQuery = pages % 2 === 0;
    page = await ask(slug, withOptions(body, { limit, cursor }), byQuery, LINES);
  }
  const whole = await ask(slug, withOptions(body, { revision }), false, LINES);
  t.same(lines, whole.text.split('\n').slice(0, -1), `${slug} ${JSON.stringify(body)} ${limit}`);
  t.same(aboutOf(whole), aboutOf(first));
  return pages;
}

t.test(
  'pages joined are the whole as it was when the walk began, whatever is committed',
  async (t) => {
    const random = randomOf(SEED);
    const request = anyRequest(random);
    const chance = (part: number) => random() < part;
    let pages = 0;
    let round = 0;
    for (const change of Object.values(CHANGES)) {
      const values = await valuesOf(database);
      for (let count = 0; count < PER_CHANGE; count += 1) {
        const { slug, filters, options } = request(values);
        const { codes = [] } = values.get(slug) ?? {};
        const narrow = chance(0.2) ? filters : { dateFrom: '2026-05-15' };
        const listed = chance(0.3)
          ? { codes: [...codes, 'nothing'], dateFrom: '2026-06-01' }
          : narrow;
        round += 1;
        pages += await walk(
          slug,
          { filters: listed, options },
          1 + Math.floor(random() * 5),
          round,
        );
      }
      await change(database, t);
    }
    t.ok(pages > 30, `${pages} pages, seed ${SEED}`);
  },
);
