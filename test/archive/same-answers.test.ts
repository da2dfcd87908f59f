import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import { randomOf } from '../conversion/support.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import {
  anyRequest,
  forAll,
  type PriceRequest,
  send,
  valuesOf,
} from '../support/fuzz/any-request.ts';
import { listeningOn, type Service } from '../support/http/service.ts';
import { overSocket } from '../support/http/socket-request.ts';
import { CHANGES } from '../support/prices/changes.ts';
import { recordFigures } from '../support/run/faults.ts';
import { contentsOf, exported, imported } from './support.ts';

const SEED = 20_270_101;
const REQUESTS = 300;

/** A snapshot selector: empty for the newest revision, a revision, or an instant. */
type Past = { readonly revision?: string; readonly asOf?: string };

/** The newest revision, every revision, and a microsecond before and at each commit. */
async function pastsOf({ pool }: TestDatabase): Promise<Past[]> {
  const { rows } = await pool.query(`
    select revision_text(number) as revision,
      to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as "asOf"
    from revision,
      unnest(array[committed_at, committed_at - interval '1 microsecond']) as u (at)
    order by number, at`);
  const revisions = rows.map(({ revision }) => ({ revision }));
  return [{}, ...revisions, ...rows.map(({ asOf }) => ({ asOf }))];
}

const GETS = [
  '/v3/prices',
  '/v3/search?q=nickel&limit=100',
  '/v3/search?q=Deutschland&limit=100',
  '/v3/calendar?from=2026-01-01&to=2026-02-28',
  '/v3/reference/currencies',
  '/v3/reference/units',
  '/v3/reference/rates?base=USD&quote=CNY',
  '/v3/reference/rates?base=EUR&quote=SEK&from=2026-06-01',
  ...MARKETS.map(({ slug }) => `/v3/prices/${slug}/filters`),
];

const get = async ({ app, key }: Service, url: string): Promise<string> => {
  const answer = await overSocket(app, { url, headers: { 'x-api-key': key } });
  return `${answer.statusCode} ${answer.headers['etag']} ${answer.body}`;
};

let original: TestDatabase;
let service: Service;
const requests: (PriceRequest & { past: Past })[] = [];
t.before(async () => {
  original = await testDatabase(t, { seeded: true });
  for (const change of Object.values(CHANGES)) await change(original, t);
  service = await listeningOn(t, original);
  const request = anyRequest(randomOf(SEED));
  const values = await valuesOf(original);
  const pasts = await pastsOf(original);
  for (let number = 0; number < REQUESTS; number += 1) {
    requests.push({ ...request(values), past: pasts[number % pasts.length] ?? {} });
  }
});

async function sameAnswers(
  test: Pick<typeof t, 'same' | 'ok' | 'equal'>,
  copy: Service,
): Promise<void> {
  let answered = 0;
  await forAll(requests, async ({ past, ...request }) => {
    const was = await send(service, request, past);
    const now = await send(copy, request, past);
    if (was.status === 200) answered += 1;
    if (now.status === was.status && now.text === was.text) return;
    test.same(now, was, JSON.stringify({ ...request, ...past }));
  });
  recordFigures('F44', { 'answers compared': requests.length + GETS.length });
  test.ok(answered > REQUESTS / 2, `${answered} of ${REQUESTS} were no refusals, seed ${SEED}`);
  for (const url of GETS) test.equal(await get(copy, url), await get(service, url), url);
}

t.test(
  'an import answers as its original, byte for byte, in every past, and is exported again as the ' +
    'same files',
  async (t) => {
    const folder = await exported(t, original.client);
    const copy = await imported(t, folder);
    await sameAnswers(t, await listeningOn(t, copy));
    t.same(await contentsOf(await exported(t, copy.client)), await contentsOf(folder));
  },
);
