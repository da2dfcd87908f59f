import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import t from 'tap';
import { importArchive } from '../../src/archive/import.ts';
import { stateOf } from '../ingest/support/loading.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { failureOf } from '../support/database/minimal-data.ts';
import { archivePath, contentsOf, exported } from './support.ts';

const WORKER = fileURLToPath(new URL('./worker.ts', import.meta.url));

/** Waits until the server has rolled back the transaction of the killed worker. */
async function settled(pool: pg.Pool): Promise<void> {
  const backends = `select from pg_stat_activity
    where application_name = 'archive worker' and datname = current_database()`;
  while ((await pool.query(backends)).rows.length > 0);
}

/** Starts a worker that is killed at a moment of its work. */
async function killAt(
  { url, pool }: TestDatabase,
  folder: string,
  act: 'export' | 'import',
  moment: string,
): Promise<void> {
  const child = spawn(process.execPath, [WORKER, act, url, folder], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, KILLED_AT: moment },
  });
  const [code, signal] = await once(child, 'exit');
  if (signal !== 'SIGKILL') throw new Error(`the process ended (${code}) without: ${moment}`);
  await settled(pool);
}

/** The triggers and what they are: off in the middle of an import. */
const triggersOf = async ({ pool }: TestDatabase): Promise<unknown> => {
  const { rows } = await pool.query(`select tgrelid::regclass::text, tgname, tgenabled
    from pg_trigger order by tgrelid::regclass::text, tgname`);
  return rows;
};

const scopesOf = async ({ pool }: TestDatabase): Promise<unknown> =>
  (await pool.query('select scope, market_id from access_scope order by scope')).rows;

t.test('an import that is killed at any moment leaves nothing, and can run again', async (t) => {
  const original = await testDatabase(t, { seeded: true });
  const folder = await exported(t, original.client);
  const target = await testDatabase(t);
  const all = async () => ({
    state: await stateOf(target.pool),
    epoch: (await target.pool.query('select epoch from service')).rows,
    triggers: await triggersOf(target),
    scopes: await scopesOf(target),
  });
  const before = await all();
  const moments = [
    'bytes of checking series.csv',
    'rows of service',
    'rows of revision',
    'rows of price',
    'rows of series',
    'rows of fx_rate',
  ];
  for (const moment of moments) {
    await killAt(target, folder, 'import', moment);
    t.same(await all(), before, `killed at ${moment}`);
  }
  await importArchive(target.client, { folder });
  t.same(await triggersOf(target), before.triggers, 'the rules are what they were');
  t.same(await scopesOf(target), before.scopes);
  t.same(
    await contentsOf(await exported(t, target.client)),
    await contentsOf(folder),
    'and all of it is there then',
  );
});

t.test('an export that is killed is no archive', async (t) => {
  const original = await testDatabase(t, { seeded: true });
  const target = await testDatabase(t);
  for (const moment of ['rows of price', 'rows of series', 'rows of fx_rate']) {
    const folder = await archivePath(t);
    await killAt(original, folder, 'export', moment);
    t.notOk((await readdir(folder)).includes('manifest.json'), moment);
    const importing = importArchive(target.client, { folder });
    t.match(await failureOf(importing), { message: /it is no finished export/ });
  }
});
