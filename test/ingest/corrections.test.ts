import type pg from 'pg';
import t from 'tap';
import type { LoadReport } from '../../src/ingest/load/request.ts';
import {
  CORRECTING,
  describePrices,
  errorsOf,
  loadingDatabase,
  loadText,
  points,
  seriesOf,
  stateOf,
} from './support/loading.ts';
import { n, pinkSheet } from './support/workbook.ts';

const PUBLISHED = points(
  'A,2026-01-01,1,2,3,2026-01-01T16:00:00Z',
  'A,2026-01-08,,5,,2026-01-08T16:00:00Z',
  'B,2026-01-08,,7,,2026-01-08T16:00:00Z',
);
const CHANGED = points(
  'A,2026-01-01,1,2.5,3,2026-02-01T16:00:00Z',
  'A,2026-01-08,,5,,2026-02-01T16:00:00Z',
  'B,2026-01-08,6,7,8,2026-02-01T16:00:00Z',
  'B,2026-01-15,,9,,2026-02-01T16:00:00Z',
);

t.test('a published value changes only with permission and a reason', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  await loadText(t, client, 'csv', PUBLISHED);
  const series = await seriesOf(pool, 'A');
  const attempts = [
    {},
    { allowCorrections: true },
    { allowCorrections: true, reason: '  ' },
    { reason: 'a reason alone' },
  ];
  for (const options of attempts) {
    const report = await loadText(t, client, 'csv', CHANGED, options);
    t.match(report, { status: 'refused', counts: { rows: 4, rejected: 2, corrected: 0 } });
    t.strictSame(errorsOf(report), [
      [2, 'mid', 'correction_not_allowed'],
      [4, 'low', 'correction_not_allowed'],
    ]);
    t.match(
      report.errors[0]?.message,
      'The value of A, 2026-01-01, is 1 / 2 / 3 and would become 1 / 2.5 / 3',
    );
    t.match(
      report.errors[1]?.message,
      'The value of B, 2026-01-08, is 7 and would become 6 / 7 / 8',
    );
    t.strictSame(
      report.errors.map(({ value }) => value),
      ['2.5', '6'],
    );
  }
  t.strictSame(await seriesOf(pool, 'A'), series);
  t.strictSame(await seriesOf(pool, 'B'), [['2026-01-08', null, '7', null, 0]]);
});

t.test('a correction counts, says why, and keeps what it replaces', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const first = await loadText(t, client, 'csv', PUBLISHED);
  const report = await loadText(t, client, 'csv', CHANGED, CORRECTING);
  t.match(report, { status: 'applied' });
  t.match(report.counts, { rows: 4, inserted: 1, unchanged: 1, corrected: 2, outdated: 0 });
  t.strictSame(await seriesOf(pool, 'A'), [
    ['2026-01-01', '1', '2.5', '3', 1],
    ['2026-01-08', null, '5', null, 0],
  ]);
  const number = Number(first.revision?.split('.')[1]);
  const { rows } = await pool.query(
    `select low, mid, high, published_at, corrections, revision, revision_to
     from series_history order by mid`,
  );
  const common = { corrections: 0, revision: String(number), revision_to: String(number + 1) };
  t.strictSame(rows, [
    { low: '1', mid: '2', high: '3', published_at: '2026-01-01 16:00:00+00', ...common },
    { low: null, mid: '7', high: null, published_at: '2026-01-08 16:00:00+00', ...common },
  ]);
  const past = await pool.query('select mid from series_at($1) order by mid', [number]);
  t.strictSame(past.rows, [{ mid: '2' }, { mid: '5' }, { mid: '7' }]);
  const current = await pool.query('select published_at from series where mid = 2.5');
  t.equal(current.rows[0].published_at, '2026-02-01 16:00:00+00', 'its time is that of its row');
  const reason = await pool.query('select reason from revision where number = $1', [number + 1]);
  t.equal(reason.rows[0].reason, CORRECTING.reason);
});

t.test('a second correction counts on', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  for (const mid of [1, 2, 3]) {
    await loadText(t, client, 'csv', points(`A,2026-01-01,,${mid},,`), CORRECTING);
  }
  t.strictSame(await seriesOf(pool, 'A'), [['2026-01-01', null, '3', null, 2]]);
});

/** Loads values of A on two days as one edition. */
const edition =
  (t: Parameters<typeof loadText>[0], client: Parameters<typeof loadText>[1]) =>
  (vintage: string | undefined, ...rows: string[]): Promise<LoadReport> =>
    loadText(t, client, 'csv', points(...rows, `B,2000-01-01,,1,,`), { ...CORRECTING, vintage });

t.test('an older edition never overwrites a newer one, even with permission', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const load = edition(t, client);
  await load('2026-03-01', 'A,2026-01-01,,1,,', 'A,2026-01-15,,1,,');
  const older = await load(
    '2026-02-01',
    'A,2026-01-01,,9,,',
    'A,2026-01-08,,9,,',
    'A,2026-01-22,,9,,',
  );
  t.match(older, { status: 'applied', counts: { inserted: 2, outdated: 1, corrected: 0 } });
  const onlyOld = await load('2026-02-02', 'A,2026-01-01,,8,,');
  t.match(onlyOld, { status: 'unchanged', revision: null, counts: { outdated: 1, unchanged: 1 } });
  const newer = await load('2026-04-01', 'A,2026-01-01,,2,,');
  t.match(newer, { status: 'applied', counts: { corrected: 1 } });
  t.strictSame(
    (await seriesOf(pool, 'A')).map(([date, , mid]) => [date, mid]),
    [
      ['2026-01-01', '2'],
      ['2026-01-08', '9'],
      ['2026-01-15', '1'],
      ['2026-01-22', '9'],
    ],
  );
});

t.test('an edition that only confirmed a value protects it as well', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const load = edition(t, client);
  await load('2026-01-01', 'A,2026-01-01,,1,,');
  t.match(await load('2026-03-01', 'A,2026-01-01,,1.0,,'), { status: 'unchanged' });
  t.match(await load('2026-02-01', 'A,2026-01-01,,2,,'), { counts: { outdated: 1, corrected: 0 } });
});

t.test('editions in any order lead to the values of the newest', async (t) => {
  const rows = ['2026-01-01', '2026-02-01', '2026-03-01'] as const;
  const orders = [
    [0, 1, 2],
    [2, 1, 0],
    [1, 2, 0],
    [2, 0, 1],
  ];
  for (const order of orders) {
    const { client, pool } = await loadingDatabase(t);
    await describePrices(client, 'A', 'B');
    for (const index of order) {
      await edition(t, client)(rows[index], `A,2026-01-01,,${index},,`, `A,2026-01-08,,${index},,`);
    }
    t.strictSame(
      (await seriesOf(pool, 'A')).map(([, , mid]) => mid),
      ['2', '2'],
      String(order),
    );
  }
});

t.test('CSV and NDJSON are editions of one publisher, the World Bank of another', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const rows = [['2020M01', null, n('100'), null, n('200'), n('300')]];
  await loadText(t, client, 'worldbank', pinkSheet({ updated: 'Updated on March 3, 2020', rows }));
  const value = (mid: number) => points(`CP-AL-9001,2020-01-31,,${mid},,`);
  const csv = await loadText(t, client, 'csv', value(7), { ...CORRECTING, vintage: '2020-02-01' });
  t.match(csv.counts, { corrected: 1, outdated: 0 });
  const ndjson = await loadText(
    t,
    client,
    'ndjson',
    '{"code": "CP-AL-9001", "date": "2020-01-31", "mid": 8}',
    { ...CORRECTING, vintage: '2020-01-15' },
  );
  t.match(ndjson.counts, { corrected: 0, outdated: 1 });
  t.strictSame(
    (await seriesOf(pool, 'CP-AL-9001')).map(([, , mid]) => mid),
    ['7'],
  );
});

t.test('the edition that a file states is not overruled', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const state = await stateOf(pool);
  const text = 'Date,USD,\n2024-01-05,1.1,\n';
  const contradicted = await loadText(t, client, 'ecb', text, { vintage: '2024-02-01' });
  t.strictSame(errorsOf(contradicted), [[null, null, 'invalid_vintage']]);
  for (const vintage of ['2024-02-30', 'today', '2199-01-01']) {
    const report = await loadText(t, client, 'csv', points('A,2026-01-01,,1,,'), { vintage });
    t.match(report, { status: 'refused', vintage: null });
    t.match(report.errors, [{ code: 'invalid_vintage', value: vintage }, { code: 'unknown_code' }]);
  }
  t.not(await stateOf(pool), state, 'refusals are in the ledger');
  t.match(await loadText(t, client, 'ecb', text, { vintage: '2024-01-05' }), { status: 'applied' });
});

t.test('every line of the ledger adds up', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  await loadText(t, client, 'csv', PUBLISHED, { vintage: '2026-01-10' });
  await loadText(t, client, 'csv', CHANGED);
  await loadText(t, client, 'csv', CHANGED, { ...CORRECTING, vintage: '2026-02-02' });
  await edition(t, client)('2026-01-15', 'A,2026-01-01,,77,,');
  const { rows } = await (pool as pg.Pool).query(
    `select status, rows - inserted - unchanged - corrected - outdated - rejected as open
     from load_batch order by id`,
  );
  t.strictSame(
    rows.map(({ status, open }) => [status, open]),
    [
      ['applied', '0'],
      ['applied', '0'],
      ['refused', '2'],
      ['applied', '0'],
      ['applied', '0'],
    ],
  );
});
