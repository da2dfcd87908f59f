import { appendFileSync } from 'node:fs';
import type pg from 'pg';
import t from 'tap';
import type { LoadProgress, LoadReport } from '../../src/ingest/load/request.ts';
import {
  describePrices,
  errorsOf,
  fileOf,
  loadFile,
  loadingDatabase,
  loadText,
  points,
  seriesOf,
  stateOf,
} from './support/loading.ts';

async function batchOf(pool: pg.Pool, { batch }: LoadReport): Promise<Record<string, unknown>> {
  const { rows } = await pool.query('select * from load_batch where id = $1', [batch]);
  return rows[0];
}

const revisionsOf = async (pool: pg.Pool): Promise<number> =>
  Number((await pool.query('select max(number) as n from revision')).rows[0].n);

t.test('one wrong row refuses the whole file, and every wrong row is named', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const before = await revisionsOf(pool);
  const report = await loadText(
    t,
    client,
    'csv',
    points(
      'A,2026-01-01,,1,,',
      'A,2026-01-08,,,,',
      'C,2026-01-08,,1,,',
      'B,2026-01-01,3,2,1,',
      'B,2026-01-08,,1,,',
      'a,2026-01-01,,2,,',
      'B,2026-13-01,,1,,',
    ),
  );
  t.match(report, { status: 'refused', revision: null, errorsTotal: 5 });
  t.strictSame(errorsOf(report), [
    [3, 'mid', 'missing_value'],
    [4, 'code', 'unknown_code'],
    [5, 'mid', 'low_mid_high'],
    [7, 'date', 'duplicate'],
    [8, 'date', 'invalid_date'],
  ]);
  t.match(report.errors[3]?.message, 'in line 2');
  t.match(report.counts, { rows: 7, rejected: 5, inserted: 0, unchanged: 0 });
  t.strictSame(await seriesOf(pool, 'A'), []);
  t.equal(await revisionsOf(pool), before, 'no revision was taken');
  const line = await batchOf(pool, report);
  t.match(line, { status: 'refused', actor: 'tester', rows: '7', rejected: '5', revision: null });
});

t.test('more errors than anybody reads are counted, and the first thousand listed', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const rows = Array.from({ length: 2_500 }, (_, index) => `A,2026-01-01,,x${index},,`);
  const wrong = await loadText(t, client, 'csv', points(...rows));
  t.equal(wrong.errors.length, 1_000);
  t.equal(wrong.errorsTotal, 2_500);
  t.match(wrong.errors[0], { line: 2, value: 'x0' });
  t.match(wrong.counts, { rows: 2_500, rejected: 2_500 });
  const unknown = await loadText(
    t,
    client,
    'csv',
    points(...rows.map((_, at) => `Z-${at},2026-01-01,,1,,`)),
  );
  t.equal(unknown.errors.length, 1_000);
  t.equal(unknown.errorsTotal, 2_500);
  t.match(unknown.counts, { rows: 2_500, rejected: 2_500 });
});

t.test('a load takes one revision, and the ledger says what it did', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const before = await revisionsOf(pool);
  await loadText(t, client, 'csv', points('A,2026-01-01,,1,,'));
  const file = points('A,2026-01-01,,1.0,,', 'A,2026-01-08,,2,,', 'B,2026-01-01,1,2,3,');
  const report = await loadText(t, client, 'csv', file, {
    vintage: '2026-01-09',
    reason: 'weekly',
  });
  t.equal(await revisionsOf(pool), before + 2);
  t.match(report.revision, /^[0-9a-z]{12}\.\d+$/);
  t.match(await batchOf(pool, report), {
    format: 'csv',
    file_name: 'file',
    vintage: '2026-01-09',
    actor: 'tester',
    reason: 'weekly',
    status: 'applied',
    revision: String(before + 2),
    rows: '3',
    inserted: '2',
    unchanged: '1',
    corrected: '0',
    outdated: '0',
    rejected: '0',
  });
  const { rows } = await pool.query(
    `select code, first_date, last_date from load_coverage join price on id = price_id
     where batch_id = $1 order by code`,
    [report.batch],
  );
  t.strictSame(rows, [
    { code: 'A', first_date: '2026-01-01', last_date: '2026-01-08' },
    { code: 'B', first_date: '2026-01-01', last_date: '2026-01-01' },
  ]);
  const scopes = await pool.query('select scope from revision_scope where revision = $1', [
    before + 2,
  ]);
  t.strictSame(scopes.rows, [{ scope: 'aluminium' }]);
  const stamped = await pool.query(
    'select count(*) from series where batch_id = $1 and revision = $2',
    [report.batch, before + 2],
  );
  t.equal(stamped.rows[0].count, '2');
});

t.test('the same file a second time changes nothing, under any name', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const text = points('A,2026-01-01,,1,,');
  const first = await loadText(t, client, 'csv', text);
  const state = await stateOf(pool);
  const second = await loadFile(client, 'csv', await fileOf(t, text, 'another name.csv'));
  t.match(second, { status: 'already-loaded', batch: first.batch, revision: null, errorsTotal: 0 });
  t.equal(await stateOf(pool), state, 'not even the ledger');
});

t.test('another file with the same values takes no revision, but is in the ledger', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  await loadText(t, client, 'csv', points('A,2026-01-01,1,1.50,2,'));
  const before = await revisionsOf(pool);
  const report = await loadText(
    t,
    client,
    'csv',
    points('A,2026-01-01,1.0,1.5,2,2026-01-01T00:00:00Z'),
  );
  t.match(report, { status: 'unchanged', revision: null, counts: { rows: 1, unchanged: 1 } });
  t.equal(await revisionsOf(pool), before);
  t.match(await batchOf(pool, report), { status: 'applied', revision: null, unchanged: '1' });
});

t.test('a row that a later file leaves out stays', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  await loadText(t, client, 'csv', points('A,2026-01-01,,1,,', 'A,2026-01-08,,2,,'));
  await loadText(t, client, 'csv', points('A,2026-01-15,,3,,'));
  t.equal((await seriesOf(pool, 'A')).length, 3);
});

t.test('readers see all of a load or nothing of it', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const day = (index: number) => new Date(Date.UTC(1900, 0, index + 1)).toISOString().slice(0, 10);
  const rows = Array.from({ length: 20_000 }, (_, index) => `A,${day(index)},,${index},,`);
  const loading = loadText(t, client, 'csv', points(...rows));
  const seen = new Set<string>();
  let isDone = false;
  const done = loading.finally(() => {
    isDone = true;
  });
  while (!isDone) seen.add((await pool.query('select count(*) from series')).rows[0].count);
  t.match(await done, { status: 'applied', counts: { inserted: 20_000 } });
  for (const count of seen) t.ok(count === '0' || count === '20000', `a reader saw ${count}`);
});

t.test('a file that is written to while it is read is refused', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const day = (index: number) => new Date(Date.UTC(1900, 0, index + 1)).toISOString().slice(0, 10);
  const rows = Array.from({ length: 20_000 }, (_, index) => `A,${day(index)},,${index},,`);
  const path = await fileOf(t, points(...rows));
  let isTouched = false;
  const onProgress = ({ step }: LoadProgress) => {
    if (step !== 'reading') return;
    if (!isTouched) appendFileSync(path, 'A,2026-01-01,,1,,\n');
    isTouched = true;
  };
  const report = await loadFile(client, 'csv', path, { onProgress });
  t.match(report, { status: 'refused', errors: [{ code: 'file_changed' }] });
  t.strictSame(await seriesOf(pool, 'A'), []);
});

t.test('progress is reported in rows and bytes, up to the end of the file', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const text = points('A,2026-01-01,,1,,', 'A,2026-01-02,,1,,');
  const steps: LoadProgress[] = [];
  await loadText(t, client, 'csv', text, { onProgress: (progress) => steps.push({ ...progress }) });
  const all = { rows: 2, bytes: text.length, bytesTotal: text.length };
  t.strictSame(
    steps.slice(-4),
    ['reading', 'hashing', 'comparing', 'writing'].map((step) => ({ step, ...all })),
  );
});

t.test('a load that is aborted changes nothing, and the next one works', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const state = await stateOf(pool);
  const text = points('A,2026-01-01,,1,,');
  const reading = new AbortController();
  const onProgress = ({ step }: LoadProgress) => {
    if (step === 'reading') reading.abort(new Error('stopped by the operator'));
  };
  await t.rejects(loadText(t, client, 'csv', text, { signal: reading.signal, onProgress }), {
    message: 'stopped by the operator',
  });
  // Another writer holds the lock, so the load is stopped while the server works on it.
  const writer = await pool.connect();
  await writer.query('begin; select lock_revisions()');
  const waiting = new AbortController();
  const loading = loadText(t, client, 'csv', text, { signal: waiting.signal });
  const isWaiting = `select from pg_stat_activity
    where datname = current_database() and wait_event = 'relation'`;
  while ((await pool.query(isWaiting)).rows.length === 0);
  waiting.abort(new Error('stopped again'));
  await t.rejects(loading, { message: 'stopped again' });
  await writer.query('rollback');
  writer.release();
  t.equal(await stateOf(pool), state);
  t.match(await loadText(t, client, 'csv', text), { status: 'applied' });
});

t.test('a file that cannot be read is an error of the system, not a refusal', async (t) => {
  const { client } = await loadingDatabase(t);
  await t.rejects(loadFile(client, 'csv', '/nowhere/file.csv'), { code: 'ENOENT' });
  await t.rejects(loadFile(client, 'csv', '/'), { message: /not a regular file/ });
});
