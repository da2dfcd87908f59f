import t from 'tap';
import type { Client } from '../../../src/db/client.ts';
import { contentHash } from '../../../src/db/content-hash.ts';
import { readVatRates } from '../../../src/db/reference/vat-rates.ts';
import { seed } from '../../../src/db/seed/seed.ts';
import { showBatch } from '../../../src/ingest/ledger/history.ts';
import { loadVat, type VatReport, type VatRequest } from '../../../src/ingest/vat/load-vat.ts';
import { RULES, verify } from '../../../src/verify/verify.ts';
import { exported, imported } from '../../archive/support.ts';
import { prices as command } from '../../support/process/programs.ts';
import { conflictsOf, undoBatch } from '../ledger/undo-support.ts';
import { fileOf, loadingDatabase, stateOf } from '../support/loading.ts';

type Test = Pick<typeof t, 'teardown'>;

const loadText = async (
  test: Test,
  client: Client,
  content: string,
  options: Partial<VatRequest> = {},
): Promise<VatReport> =>
  loadVat(client, { file: await fileOf(test, content, 'vat.yaml'), actor: 'tester', ...options });

const TWO = `vat:
  DE:
    2007-01-01: 19
    2020-07-01: 16.0
    2021-01-01: 19
  KR:
    1977-07-01: 10
`;

/** The rates as texts, `DE 2007-01-01 19`. */
const ratesOf = async (client: Client, revision: string | null = null): Promise<string[]> =>
  [...(await readVatRates(client.db, revision))].flatMap(([country, rates]) =>
    [...rates].map(([from, rate]) => `${country} ${from} ${rate}`),
  );

/** The same, without the country of the reference data. */
const loadedRates = async (client: Client, revision: string | null = null): Promise<string[]> =>
  (await ratesOf(client, revision)).filter((each) => !each.startsWith('CN'));

const CHINA = ['CN 1994-01-01 17', 'CN 2018-05-01 16', 'CN 2019-04-01 13'];

const broken = async (client: Client): Promise<string[]> =>
  (await verify(client, RULES, () => {})).rules
    .filter(({ count }) => count > 0)
    .map(({ rule, rows }) => `${rule} ${JSON.stringify(rows)}`);

const hashOf = async (client: Client): Promise<string> => (await contentHash(client)).hash;

t.test('a VAT file is loaded in one revision, previewed, and found in the ledger', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const before = await stateOf(pool);
  const dry = await loadText(t, client, TWO, { dryRun: true });
  t.match(dry, { status: 'previewed', batch: null, counts: { rows: 4, inserted: 4 } });
  t.match(dry.preview?.changes.shown[1], { country: 'DE', from: '2020-07-01', after: '16' });
  t.equal(await stateOf(pool), before, 'a dry run writes nothing');
  const loaded = await loadText(t, client, TWO, { reason: 'two countries' });
  t.match(loaded, { status: 'applied', counts: { inserted: 4, unchanged: 0 } });
  const again = await loadText(t, client, TWO);
  t.match(again, { status: 'already-loaded', batch: loaded.batch });
  t.match(await loadText(t, client, `${TWO}# again\n`), {
    status: 'unchanged',
    counts: { rows: 4, unchanged: 4 },
  });
  const changes: unknown[] = [];
  await showBatch(client, loaded.batch ?? 0, async (batch, all) => {
    t.match(batch, { format: 'vat', reason: 'two countries', actor: 'tester' });
    for await (const { operation, of, code, after } of all) {
      changes.push([operation, of, code, after]);
    }
  });
  t.strictSame(changes, [
    ['vat-added', 'vat', 'DE 2007-01-01', { rate: 19 }],
    ['vat-added', 'vat', 'DE 2020-07-01', { rate: 16 }],
    ['vat-added', 'vat', 'DE 2021-01-01', { rate: 19 }],
    ['vat-added', 'vat', 'KR 1977-07-01', { rate: 10 }],
  ]);
  t.strictSame(await ratesOf(client), [
    ...CHINA,
    ...['DE 2007-01-01 19', 'DE 2020-07-01 16', 'DE 2021-01-01 19', 'KR 1977-07-01 10'],
  ]);
  t.strictSame(await broken(client), []);
});

t.test('a country is stated whole, others stay, and each load can be undone', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const first = await hashOf(client);
  const { batch: one } = await loadText(t, client, TWO);
  const second = await hashOf(client);
  const changed = 'vat:\n  DE:\n    2007-01-01: 19\n    2020-07-01: 16.5\n';
  const { batch: two, counts } = await loadText(t, client, changed);
  t.match(counts, { rows: 3, unchanged: 1, corrected: 1, withdrawn: 1 });
  const both = ['DE 2007-01-01 19', 'DE 2020-07-01 16.5', 'KR 1977-07-01 10'];
  t.strictSame(await loadedRates(client), both);
  const { batch: three } = await loadText(t, client, TWO);
  t.equal(await hashOf(client), second, 'an earlier file takes a later one back');
  t.strictSame(await conflictsOf(client, two), [three]);
  t.match((await undoBatch(client, three)).preview, {
    vatRatesRemoved: { total: 1, shown: [{ kind: 'vat', name: 'DE 2021-01-01' }] },
    vatRatesAsBefore: { total: 1 },
    calendarsRemoved: { total: 0 },
  });
  const undone = await undoBatch(client, two);
  t.match(undone.preview, { vatRatesRestored: { total: 1 }, vatRatesAsBefore: { total: 1 } });
  t.equal(await hashOf(client), second);
  await undoBatch(client, undone.batch);
  t.strictSame(await loadedRates(client), both);
  t.strictSame(await broken(client), []);
  const { rows } = await pool.query(
    `select concat_ws('.', r.number, r.commit_id) as revision
      from load_batch b join revision r on r.number = b.revision where b.id = $1`,
    [one],
  );
  t.equal((await loadedRates(client, rows[0].revision)).length, 4, 'the past keeps its rates');
  t.not(first, second);
});

t.test('an archive holds the rates with their past', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await loadText(t, client, TWO);
  await loadText(t, client, TWO.replace('16.0', '15'));
  const copy = await imported(t, await exported(t, client));
  t.strictSame(await contentHash(copy.client), await contentHash(client));
  const history = 'select * from vat_rate_history order by id, revision';
  t.same((await copy.pool.query(history)).rows, (await pool.query(history)).rows);
  const other = await imported(t, await exported(t, client, ['nickel']));
  t.strictSame(await ratesOf(other.client), await ratesOf(client));
  t.strictSame(await broken(other.client), []);
});

t.test('seeds add the rates of China once, and no rate that was ended', async (t) => {
  const { client } = await loadingDatabase(t);
  t.strictSame(await ratesOf(client), CHINA);
  const { batch } = await loadText(t, client, 'vat:\n  CN:\n    2019-04-01: 13\n');
  await seed(client, { reference: true });
  t.strictSame(await ratesOf(client), ['CN 2019-04-01 13']);
  const { batch: undone } = await undoBatch(client, batch);
  t.strictSame(await ratesOf(client), CHINA);
  const { batch: other } = await loadText(t, client, 'vat:\n  CN:\n    1994-01-01: 18\n');
  await undoBatch(client, other);
  t.strictSame(await ratesOf(client), CHINA);
  t.strictSame(await broken(client), [], 'the ledger counts restored rates of seeds');
  await undoBatch(client, undone);
  t.strictSame(await ratesOf(client), ['CN 2019-04-01 13']);
  t.strictSame(await broken(client), []);
});

t.test('every fault is refused with its line and column, and changes nothing', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const faults: readonly (readonly [string, string, object])[] = [
    ['2007-01-01: 19', '2007-01-01: 190', { line: 3, position: 5, code: 'invalid_vat' }],
    ['16.0', '16.12345', { line: 4, position: 5, message: /at most 4 decimals/ }],
    ['16.0', '-1', { line: 4, position: 5, code: 'invalid_vat' }],
    ['16.0', '', { line: 4, code: 'invalid_vat' }],
    ['2021-01-01', '2021-02-30', { line: 5, position: 5, message: /Must be a day/ }],
    ['  KR:', '  Korea:', { line: 6, position: 3, message: /ISO 3166/ }],
    ['  KR:\n    1977-07-01: 10', '  KR: 10', { line: 6, position: 3, code: 'invalid_vat' }],
    ['vat:', 'vats:', { line: 1, position: 1, message: /it has vat/ }],
    ['2021-01-01', '2007-01-01', { line: 5, position: 5, code: 'invalid_yaml', message: /twice/ }],
    ['19', '[19', { code: 'invalid_yaml' }],
  ];
  const count = async () => (await pool.query('select count(*) from revision')).rows;
  const before = await count();
  for (const [from, to, expected] of faults) {
    const report = await loadText(t, client, TWO.replace(from, to));
    t.match(report, { status: 'refused', errors: [expected] }, to);
    if (!to.startsWith('[')) t.equal(report.errorsTotal, 1, to);
  }
  for (const empty of ['', 'vat:\n', 'vat: {}\n']) {
    t.match(await loadText(t, client, empty), {
      status: 'refused',
      errors: [{ code: 'empty_file' }],
      errorsTotal: 1,
    });
  }
  t.same(await count(), before);
});

t.test('load vat prints the changes, and faults as file:line:column', async (t) => {
  const { client, url: DATABASE_URL } = await loadingDatabase(t);
  const run = (...args: string[]) => command(t, { DATABASE_URL }, 'load', 'vat', ...args);
  const file = await fileOf(t, TWO, 'vat.yaml');
  const dry = await run(file, '--dry-run');
  t.match(dry, { code: 0, stdout: /new DE from 2020-07-01: 16 %[\s\S]*A dry run/ });
  t.match(await run(file), { code: 0, stdout: /new 4 · changed 0/ });
  const bad = await fileOf(t, TWO.replace('10', 'ten'), 'vat.yaml');
  const refused = await run(bad);
  t.equal(refused.code, 3);
  t.match(refused.stderr, /vat\.yaml:7:5: vat\.KR\.1977-07-01: Must be a rate in percent/);
  t.equal((await loadedRates(client)).length, 4);
});
