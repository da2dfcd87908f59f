import { readFile } from 'node:fs/promises';
import t from 'tap';
import type { Client } from '../../../src/db/client.ts';
import { seed } from '../../../src/db/seed/seed.ts';
import type { Selection } from '../../../src/ingest/ledger/withdraw.ts';
import { type WithdrawalReport, withdraw } from '../../../src/ingest/ledger/withdraw.ts';
import { roledDatabase } from '../../support/database/roles.ts';
import { serviceOn } from '../../support/http/service.ts';
import {
  CORRECTING,
  describePrices,
  fileOf,
  loadingDatabase,
  loadText,
  points,
  seriesOf,
  stateOf,
} from '../support/loading.ts';

const PUBLISHED = points(
  'A,2026-01-01,1,2,3,2026-01-01T16:00:00Z',
  'A,2026-01-08,,5,,2026-01-08T16:00:00Z',
  'A,2026-01-15,,6,,2026-01-15T16:00:00Z',
  'B,2026-01-08,,7,,2026-01-08T16:00:00Z',
);

const FEED = '/v3/changes?market=aluminium';

const take = (
  client: Client,
  selection: Selection,
  options: { readonly dryRun?: boolean } = {},
): Promise<WithdrawalReport> =>
  withdraw(client, { selection, actor: 'tester', reason: 'not assessed', ...options });

const dates = (...days: string[]): Selection => ({ code: 'a', dates: days });

t.test('a withdrawn point is gone for readers, kept in the past, and in the ledger', async (t) => {
  const database = await loadingDatabase(t);
  const { client, pool } = database;
  await describePrices(client, 'A', 'B');
  const before = await loadText(t, client, 'csv', PUBLISHED);
  const service = await serviceOn(t, database);
  const report = await take(client, dates('2026-01-15', '2026-01-01'));
  t.match(report, { status: 'applied', errors: [], errorsTotal: 0 });
  t.strictSame(report.points, {
    total: 2,
    shown: [
      { code: 'A', date: '2026-01-01', before: { low: '1', mid: '2', high: '3' } },
      { code: 'A', date: '2026-01-15', before: { low: null, mid: '6', high: null } },
    ],
  });
  t.strictSame(await seriesOf(pool, 'A'), [['2026-01-08', null, '5', null, 0]]);
  const { rows } = await pool.query(`select format, file_name, status, rows, withdrawn, inserted,
      reason, actor, vintage = (started_at at time zone 'UTC')::date as today,
      revision_text(revision) as revision
    from load_batch where id = ${report.batch}`);
  t.strictSame(rows[0], {
    format: 'withdraw',
    file_name: 'a 2026-01-15 and 1 more',
    status: 'applied',
    rows: '2',
    withdrawn: '2',
    inserted: '0',
    reason: 'not assessed',
    actor: 'tester',
    today: true,
    revision: report.revision,
  });
  const ask = async (options: object) => {
    const filters = { codes: ['A'] };
    const body = { filters, options: { includeSeries: true, includeSummary: true, ...options } };
    return (await service.post('aluminium', body)).json.data[0];
  };
  t.match(await ask({}), {
    lastAssessedAt: '2026-01-08',
    latestPublishedAt: '2026-01-08T16:00:00Z',
    summary: { latest: { date: '2026-01-08', mid: 5 }, previous: null },
  });
  const past = await ask({ revision: before.revision });
  t.match(past, { lastAssessedAt: '2026-01-15', summary: { latest: { date: '2026-01-15' } } });
  t.equal(past.series.length, 3);
  const changes = (await service.request({ method: 'GET', url: FEED })).json.data.slice(-2);
  t.match(changes, [
    { operation: 'withdrawn', code: 'A', date: '2026-01-01', before: { mid: 2 }, after: null },
    { operation: 'withdrawn', code: 'A', date: '2026-01-15', before: { mid: 6 }, after: null },
  ]);
});

t.test('a range, a whole price or a file can be withdrawn', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  await loadText(t, client, 'csv', PUBLISHED);
  const ranged = await take(client, { code: 'A', from: '2026-01-02', to: '2026-01-14' });
  t.match(ranged, { status: 'applied', points: { total: 1 } });
  const file = await fileOf(t, 'date,code\r\n2026-01-08,b\n2026-01-01,A\n');
  t.match(await take(client, { file }), { status: 'applied', points: { total: 2 } });
  t.strictSame(await seriesOf(pool, 'B'), []);
  const whole = await take(client, { code: 'A', from: null, to: null });
  t.match(whole, { status: 'applied', points: { total: 1, shown: [{ date: '2026-01-15' }] } });
  t.strictSame(await seriesOf(pool, 'A'), []);
});

t.test('missing points are named, and nothing is withdrawn', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  await loadText(t, client, 'csv', PUBLISHED);
  const before = await stateOf(pool);
  const named = async (selection: Selection) => {
    const report = await take(client, selection);
    t.match(report, { status: 'refused', batch: null, revision: null });
    return report.errors.map(({ line, value, code }) => [line, value, code]);
  };
  t.strictSame(await named(dates('2026-01-08', '2026-01-02', '2026-02-30')), [
    [null, '2026-02-30', 'invalid_date'],
  ]);
  t.strictSame(await named(dates('2026-01-08', '2026-01-02')), [[null, '2026-01-02', 'no_value']]);
  t.strictSame(await named({ code: 'A', from: '2027-01-01', to: null }), [
    [null, null, 'no_value'],
  ]);
  t.strictSame(await named({ code: 'AA', from: null, to: null }), [[null, 'AA', 'unknown_code']]);
  t.strictSame(await named({ code: 'A B', dates: ['2026-01-08', '2026-01-15'] }), [
    [null, 'A B', 'invalid_code'],
    [null, 'A B', 'invalid_code'],
  ]);
  const files: [string, unknown[][]][] = [
    [
      'code,date\n,2026-01-08\nA B,2026-01-08\n',
      [
        [2, '', 'invalid_code'],
        [3, 'A B', 'invalid_code'],
      ],
    ],
    [
      'code,date\nA,2026-01-08\nC,2026-01-08\na,2026-01-08\nB,2026-01-01\n',
      [
        [3, 'C', 'unknown_code'],
        [4, '2026-01-08', 'duplicate'],
        [5, '2026-01-01', 'no_value'],
      ],
    ],
    [
      'code,date\nA,yesterday\nA\n',
      [
        [2, 'yesterday', 'invalid_date'],
        [3, null, 'wrong_column_count'],
      ],
    ],
    ['code,date,mid\nA,2026-01-08,5\n', [[1, 'code,date,mid', 'unknown_column']]],
    ['code,date\n', [[null, null, 'empty_file']]],
    ['code,date\n\\,2026-01-08\n', [[2, '\\', 'unknown_code']]],
  ];
  for (const [text, errors] of files) {
    t.strictSame(await named({ file: await fileOf(t, text) }), errors);
  }
  const rehearsed = await take(client, dates('2026-01-08'), { dryRun: true });
  t.match(rehearsed, { status: 'previewed', batch: null, points: { total: 1 } });
  t.equal(await stateOf(pool), before);
});

t.test('a later edition publishes a withdrawn point again, an older one does not', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  await loadText(t, client, 'csv', PUBLISHED);
  await loadText(t, client, 'csv', points('A,2026-01-08,,5.5,,'), CORRECTING);
  await take(client, dates('2026-01-08', '2026-01-15'));
  const old = await loadText(t, client, 'csv', points('A,2026-01-08,,5.6,,'), {
    vintage: '2026-02-01',
  });
  t.match(old, { status: 'unchanged', counts: { outdated: 1, inserted: 0 } });
  const again = await loadText(t, client, 'csv', points('A,2026-01-08,,5.7,,'));
  t.match(again, { status: 'applied', counts: { inserted: 1 }, preview: { again: { total: 1 } } });
  t.strictSame((await seriesOf(pool, 'A')).at(-1), ['2026-01-08', null, '5.7', null, 1]);
});

t.test('an edition that meets withdrawn points covers no day that it does not hold', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  await loadText(t, client, 'csv', PUBLISHED);
  await take(client, dates('2026-01-15'));
  // It lacks the 8th, which the database has, and holds the 15th, which stays withdrawn.
  const rows = ['A,2026-01-01,1,2,3,', 'A,2026-01-15,,6,,', 'A,2026-01-22,,8,,'];
  await loadText(t, client, 'csv', points(...rows), { vintage: '2026-02-01' });
  const { rows: covered } = await pool.query(
    'select first_date, last_date from load_coverage order by first_date',
  );
  t.strictSame(covered, [
    { first_date: '2026-01-01', last_date: '2026-01-01' },
    { first_date: '2026-01-22', last_date: '2026-01-22' },
  ]);
  const older = await loadText(t, client, 'csv', points('A,2026-01-08,,5.5,,'), {
    ...CORRECTING,
    vintage: '2026-01-31',
  });
  t.match(older, { status: 'applied', counts: { corrected: 1, outdated: 0 } });
});

t.test('the account of the loader may withdraw', async (t) => {
  const database = await roledDatabase(t);
  await seed(database.client, { reference: true });
  const client = database.as('loader');
  const text = await readFile(new URL('../../fixtures/prices.ndjson', import.meta.url));
  await loadText(t, client, 'ndjson', text);
  const { rows } = await database.pool.query('select code from price join series on id = price_id');
  const selection = { code: rows[0].code, from: null, to: null };
  t.match(await take(client, selection), { status: 'applied', batch: 2 });
});
