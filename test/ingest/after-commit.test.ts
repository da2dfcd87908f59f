import { access } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { withdraw } from '../../src/ingest/ledger/withdraw.ts';
import type { TestDatabase } from '../support/database/database.ts';
import { until } from '../support/http/sockets.ts';
import {
  describePrices,
  fileOf,
  loadFile,
  loadingDatabase,
  loadText,
  points,
} from './support/loading.ts';

const ROWS = 10_000;
const day = (index: number): string =>
  new Date(Date.UTC(1900, 0, index + 1)).toISOString().slice(0, 10);
const VALUES = Array.from({ length: ROWS }, (_, index) => `A,${day(index)},,1,,`);

/** Waits until a session waits for a lock in this statement. @returns its process id */
async function waiting({ pool }: TestDatabase, statement: string): Promise<number> {
  let pid = 0;
  await until(`${statement} waits`, async () => {
    const { rows } = await pool.query(
      `select pid from pg_stat_activity where wait_event_type = 'Lock' and query like $1
        and datname = current_database()`,
      [`${statement}%`],
    );
    pid = rows[0]?.pid ?? 0;
    return pid > 0;
  });
  return pid;
}

/** Stops a load after its commit, while it updates table statistics. */
async function stopped(
  t: Parameters<typeof loadText>[0],
  stop: (database: TestDatabase, pid: number, controller: AbortController) => unknown,
) {
  const database = await loadingDatabase(t);
  await describePrices(database.client, 'A');
  const controller = new AbortController();
  const path = await fileOf(t, points(...VALUES, 'A,never,,1,,'));
  const file = join(path, '..', 'rejects.csv');
  const holder = await database.pool.connect();
  await holder.query('begin; lock table series in share update exclusive mode');
  const options = { signal: controller.signal, rejects: { file, overwrite: false } };
  const loading = loadFile(database.client, 'csv', path, options);
  const pid = await waiting(database, 'analyze');
  await stop(database, pid, controller);
  const report = await loading.finally(async () => {
    await holder.query('rollback');
    holder.release();
  });
  return { ...database, report, file };
}

t.test('a load that is committed was done, whatever happens to it then', async (t) => {
  const ways: Record<string, Parameters<typeof stopped>[1]> = {
    'its signal': (_database, _pid, controller) => controller.abort(new Error('enough')),
    'the end of its session': ({ pool }, pid) =>
      pool.query('select pg_terminate_backend($1)', [pid]),
  };
  for (const [what, stop] of Object.entries(ways)) {
    const { report, file, client, pool } = await stopped(t, stop);
    t.match(report, { status: 'applied', counts: { inserted: ROWS, rejected: 1 }, rejects: file });
    await t.resolves(access(file), `${what} leaves the rejected rows`);
    const { rows } = await pool.query('select count(*) from series');
    t.equal(rows[0].count, String(ROWS));
    const next = await loadText(t, client, 'csv', points('A,1800-01-01,,1,,'));
    t.match(next, { status: 'applied' }, 'and its connections are as good as new');
    const common = { actor: 'tester', reason: 'of no use' };
    const selection = { code: 'A', dates: ['1800-01-01'] };
    t.match(await withdraw(client, { ...common, selection }), { status: 'applied' });
  }
});
