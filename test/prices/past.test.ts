import t from 'tap';
import { randomOf } from '../conversion/support.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import {
  anyRequest,
  forAll,
  type PriceRequest,
  send,
  valuesOf,
} from '../support/fuzz/any-request.ts';
import { type Reply, type Service, serviceOn } from '../support/http/service.ts';
import { CHANGES } from '../support/prices/changes.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';

/** Answers that are noted before each change. */
const PER_CHANGE = 140;

const SEED = 20_261_120;
const request = anyRequest(randomOf(SEED));

/** An earlier answer: its bytes and the revision that it named. */
interface Noted extends PriceRequest {
  readonly status: number;
  readonly text: string;
  readonly revision: string;
  readonly asOf: string;
}

const METADATA = /^\{"\$metadata":\{"market":"[^"]+","revision":"([^"]+)","asOf":"([^"]+)"/;

async function note(
  service: Service,
  asked: PriceRequest,
  newest: readonly string[],
): Promise<Noted> {
  const { status, text } = await send(service, asked);
  if (status !== 200 && status !== 400) throw new Error(text);
  // A refusal names no revision: the request read the newest.
  const [revision = '', asOf = ''] = METADATA.exec(text)?.slice(1) ?? newest;
  return { ...asked, status, text, revision, asOf };
}

async function newestOf({ pool }: TestDatabase): Promise<string[]> {
  const { rows } = await pool.query(
    `select revision_text(number) as revision,
      to_char(committed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at
    from revision order by number desc limit 1`,
  );
  return [rows[0].revision, rows[0].at];
}

/** The code of the price that a change adds; before it, nothing was known of it. */
const LATER_CODE = 'CP-NI-7777';

/** A request that warns until that change, whatever the random ones ask for. */
const LATER: PriceRequest = { slug: 'nickel', filters: { codes: [LATER_CODE] }, options: {} };

let database: TestDatabase;
let service: Service;
const noted: Noted[] = [];
t.before(async () => {
  database = await testDatabase(t, { seeded: true });
  service = await serviceOn(t, database);
  const values = await valuesOf(database);
  for (const change of Object.values(CHANGES)) {
    const newest = await newestOf(database);
    const requests = [LATER, ...Array.from({ length: PER_CHANGE }, () => request(values))];
    await forAll(requests, async (asked) => {
      noted.push(await note(service, asked, newest));
    });
    await change(database, t);
  }
});

/** True if an answer warns of a price that was added later. */
const lacksLater = ({ slug, text }: Noted): boolean =>
  slug === 'nickel' && text.includes(`\\"${LATER_CODE}\\" matches nothing`);

interface WarnedBody {
  readonly $metadata: { readonly warnings: readonly { readonly code: string }[] };
}

/** Removes a price that was added later from an answer. */
function withoutLater(text: string): object {
  const { $metadata, ...rest } = JSON.parse(text) as WarnedBody;
  const warnings = $metadata.warnings.filter((each) => !JSON.stringify(each).includes(LATER_CODE));
  return { ...rest, $metadata: { ...$metadata, warnings } };
}

/** The number of answers that warned of a price that was added later. */
let warnedLater = 0;

const same = async (
  test: Pick<typeof t, 'same' | 'match'>,
  was: Noted,
  past: object,
): Promise<void> => {
  const now = await send(service, was, past);
  if (now.status === was.status && now.text === was.text) return;
  if (lacksLater(was)) {
    // A request for the past learns all that is known now of a later price.
    warnedLater += 1;
    if (now.status === 200) test.match(now.text, '"code":"not_yet_existing"');
    if (was.status === 200) test.same(withoutLater(now.text), withoutLater(was.text));
    return;
  }
  test.same(now, { status: was.status, text: was.text }, `${JSON.stringify({ ...was, ...past })}`);
};

t.test('an answer is repeated at its revision, to the byte', async (t) => {
  await forAll(noted, (was) => same(t, was, { revision: was.revision }));
  t.ok(noted.length > 2000, `${noted.length} answers, seed ${SEED}`);
  t.ok(warnedLater > 0, `${warnedLater} told of a price that came later`);
  const revisions = new Set(noted.map((each) => each.revision));
  t.ok(revisions.size > 12, `${revisions.size} revisions`);
  t.ok(noted.filter((each) => each.status === 200).length > 1500, 'most were no refusals');
  // This way each answer is also held to openapi.yaml.
  for (const { slug, filters, options } of noted.filter((_, index) => index % 20 === 0)) {
    await service.post(slug, { filters, options });
  }
  let changed = 0;
  for (const was of noted.slice(0, 300)) {
    const now = await send(service, was);
    if (now.text !== was.text) changed += 1;
  }
  t.ok(changed > 250, `${changed} of 300 are answered differently now`);
});

t.test('and at the commit time of its revision', async (t) => {
  await forAll(noted, (was) => same(t, was, { asOf: was.asOf }));
  t.pass();
});

t.test('the microsecond of a commit sees it, the one before does not', async (t) => {
  const request = {
    slug: 'nickel',
    filters: { codes: ['CP-NI-0002'] },
    options: { includeSeries: true },
  };
  const at = async (asOf: string) => (await send(service, request, { asOf })).text;
  let before = (await send(service, request)).text;
  for (let round = 1; round <= 5; round += 1) {
    await commit(database.pool, (client) =>
      putPoints(client, 'CP-NI-0002', [`2026-08-0${round}`, null, `${round}`, null]),
    );
    const after = (await send(service, request)).text;
    const { rows } = await database.pool.query(
      `select to_char(at at time zone 'Asia/Tokyo', 'YYYY-MM-DD"T"HH24:MI:SS.US"+09:00"') as at
        from revision,
          unnest(array[committed_at, committed_at - interval '1 microsecond']) as u (at)
        where number = (select max(number) from revision) order by u.at desc`,
    );
    t.not(after, before);
    t.equal(await at(rows[0].at), after);
    t.equal(await at(rows[1].at), before);
    before = after;
  }
});

t.test('a price that did not exist yet is reported with the revision that added it', async (t) => {
  const [before = '', beforeAt] = await newestOf(database);
  await commit(database.pool, (client) =>
    addPrice(client, { code: 'CP-NI-8888', currency: 'USD', unit: 'tonne' }),
  );
  const [added, addedAt] = await newestOf(database);
  await commit(database.pool, (client) =>
    client.query("update price set name = name || '!' where code = 'CP-NI-8888'"),
  );
  const ask = (options: object, codes = ['cp-ni-8888', 'CP-NI-9999']): Promise<Reply> =>
    service.post('nickel', { filters: { codes }, options });
  for (const past of [{ revision: before }, { asOf: beforeAt }]) {
    const { status, json } = await ask(past);
    t.equal(status, 200);
    const [early, unknown] = json.$metadata.warnings;
    t.match(early, {
      code: 'not_yet_existing',
      pointer: '/filters/codes/0',
      priceCode: 'CP-NI-8888',
      existsSinceRevision: added,
      suggestions: [],
    });
    t.equal(Date.parse(early.existsSince), Date.parse(addedAt ?? ''));
    t.ok(early.detail.includes(added) && early.detail.includes('did not exist yet'));
    t.match(unknown, { code: 'unmatched_value', pointer: '/filters/codes/1' });
    const again = await ask({ asOf: early.existsSince }, ['CP-NI-8888']);
    t.equal(again.json.$metadata.count, 1, 'and it is there since then');
    t.equal((await ask({ ...past, strict: true }, ['CP-NI-8888'])).status, 200);
    t.equal((await ask({ ...past, strict: true })).status, 400, 'strict minds only the unknown');
  }
  t.match(
    (
      await service.post('cobalt', {
        filters: { codes: ['CP-NI-8888'] },
        options: { revision: before },
      })
    ).json.$metadata.warnings,
    [{ code: 'unmatched_value' }],
    'of its own market alone',
  );
});

t.test('the tag of a past answer changes with what is reported of later prices', async (t) => {
  const [before = ''] = await newestOf(database);
  const get = (tag?: unknown): Promise<Reply> =>
    service.request({
      method: 'GET',
      url: `/v3/prices/nickel?codes=CP-NI-6666&revision=${before}`,
      headers: tag === undefined ? {} : { 'if-none-match': String(tag) },
    });
  const { headers, json } = await get();
  t.match(json.$metadata.warnings, [{ code: 'unmatched_value' }]);
  t.equal((await get(headers['etag'])).status, 304);
  await commit(database.pool, (client) =>
    addPrice(client, { code: 'CP-NI-6666', currency: 'USD', unit: 'tonne' }),
  );
  const after = await get(headers['etag']);
  t.equal(after.status, 200);
  t.match(after.json.$metadata.warnings, [{ code: 'not_yet_existing' }]);
});

t.test('a revision that the database never had is unknown, a future instant refused', async (t) => {
  const [newest = ''] = await newestOf(database);
  const [epoch, number] = newest.split('.');
  const ask = (past: object) => service.post('nickel', { options: past });
  const codes = ({ json }: Pick<Reply, 'json'>): string[] => [
    json.code,
    ...json.errors.map((each: { code: string; pointer: string }) => `${each.pointer} ${each.code}`),
  ];
  const unknown = ['unknown_revision', '/options/revision unknown_revision'];
  const beyond = await ask({ revision: `${epoch}.${Number(number) + 1}` });
  t.same(codes(beyond), unknown);
  t.match(beyond.json.detail, /^The newest revision is \S+; retry without revision$/);
  t.same(codes(await ask({ revision: 'abcdefg.1' })), unknown);
  const soon = new Date(Date.now() + 30_000).toISOString();
  const early = ['validation_failed', '/options/asOf out_of_range'];
  t.same(codes(await ask({ asOf: soon })), early);
  // Values are looked up at a revision, and a revision only for a request that breaks no rule.
  t.same(codes(await ask({ revision: 'abcdefg.1', currency: 'ZZZ' })), unknown);
  const broken = ['validation_failed', '/options/limit out_of_range'];
  t.same(codes(await ask({ revision: 'abcdefg.1', limit: 0 })), broken);
  t.equal((await ask({ revision: newest })).status, 200);
  const [begun] = (await database.pool.query('select revision_text(0) as text')).rows;
  t.match((await ask({ revision: begun.text })).json, { $metadata: { count: 0 }, data: [] });
  const first = '0001-01-01T00:00:00Z';
  t.match((await ask({ asOf: first })).json, { $metadata: { count: 0 } });
  const { errors } = (await ask({ asOf: first, currency: 'EUR', unitOfMeasure: 'lb' })).json;
  t.strictSame(
    errors.map(({ detail }: { detail: string }) => detail),
    [
      'There is no currency "EUR": the data of that time has none',
      'There is no unit "lb": the data of that time has none',
    ],
  );
  await database.pool.query("update service set epoch = 'renewed'");
  t.same(codes(await ask({ revision: newest })), unknown, 'the same number of another epoch');
  const [renewed = ''] = await newestOf(database);
  const { json } = await ask({ revision: renewed });
  t.match(json.$metadata.revision, /^renewed[0-9a-z]{6}\./);
});
