import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';
import {
  contentOf,
  describePrices,
  fileOf,
  loadingDatabase,
  loadText,
  points,
} from '../../ingest/support/loading.ts';
import type { TestDatabase } from '../../support/database/database.ts';
import { until } from '../../support/http/sockets.ts';
import { startCommand } from '../../support/process/programs.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

type Test = typeof t;

const ROWS = 3_000;
const MOMENTS = byLength(6, 50);

const day = (index: number): string =>
  new Date(Date.UTC(1900, 0, index + 1)).toISOString().slice(0, 10);
const valuesOf = (code: string, add: number): string[] =>
  Array.from({ length: ROWS }, (_, index) => `${code},${day(index)},,${index + add},,`);

/** Published values of A, before a file is loaded that corrects them and adds as many of B. */
async function sceneOf(test: Test): Promise<TestDatabase> {
  const database = await loadingDatabase(test);
  await describePrices(database.client, 'A', 'B');
  await loadText(test, database.client, 'csv', points(...valuesOf('A', 0)));
  return database;
}

const load = (test: Test, { url }: TestDatabase, file: string) =>
  startCommand(
    test,
    { DATABASE_URL: url },
    ...['load', 'csv', file, '--allow-corrections', '--accept-jumps', '--reason', 'a test'],
  );

/** Waits until the server has noticed that the command is gone. */
const settled = ({ pool }: TestDatabase): Promise<void> =>
  until('its session is over', async () => {
    const { rows } = await pool.query(`select from pg_stat_activity
      where datname = current_database() and application_name = 'commodity-prices command'`);
    return rows.length === 0;
  });

const COUNT = `select count(*)::int as loads from load_batch where reason = 'a test'`;

/** The output of a load ended by a signal: one line, or none after SIGKILL. */
const SAID = /^commodity-prices: ended by SIGTERM; .* whole or not at all$/m;

/** Ends the command while it waits in the middle of its work, before its commit. */
async function midway(
  test: Test,
  database: TestDatabase,
  file: string,
  end: (child: ReturnType<typeof load>) => Promise<unknown>,
): Promise<{ code: number | string; stderr: string }> {
  const { pool } = database;
  const before = await contentOf(pool);
  const holder = await pool.connect();
  await holder.query('begin; lock table series_history in share mode');
  const command = load(test, database, file);
  await until('the load waits while it writes the history', async () => {
    const { rows } = await pool.query(`select from pg_stat_activity where wait_event_type = 'Lock'
      and datname = current_database() and application_name = 'commodity-prices command'`);
    return rows.length > 0;
  });
  await end(command);
  const code = await command.ended;
  await holder.query('rollback');
  holder.release();
  await settled(database);
  test.equal(await contentOf(pool), before, 'nothing of it is there');
  return { code, stderr: command.stderr() };
}

fault(
  'F39b',
  'the load command ended by SIGTERM and by SIGKILL at random moments, and its session ended',
  'the data are those before or those after the load; exit code 143 with a message after ' +
    'SIGTERM, 1 with a message if the session was ended; the next run completes the load',
  async (t) => {
    const file = await fileOf(t, points(...valuesOf('A', 1), ...valuesOf('B', 5)));
    let scene = await sceneOf(t);
    const before = await contentOf(scene.pool);
    const politely = await midway(t, scene, file, async ({ child }) => child.kill('SIGTERM'));
    t.equal(politely.code, 143);
    t.match(politely.stderr, SAID);
    const cut = await midway(t, scene, file, () =>
      scene.pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'commodity-prices command'`),
    );
    t.equal(cut.code, 1);
    t.match(cut.stderr, /^commodity-prices: .*(terminat|cannot use)/m);
    const begun = performance.now();
    t.equal(await load(t, scene, file).ended, 0);
    const wholeMs = performance.now() - begun;
    const after = await contentOf(scene.pool);
    t.not(after, before);
    const found = { before: 0, after: 0 };
    for (let at = 0; at < MOMENTS; at += 1) {
      if ((await contentOf(scene.pool)) === after) scene = await sceneOf(t);
      const signal = at % 2 === 0 ? 'SIGTERM' : 'SIGKILL';
      const command = load(t, scene, file);
      // A random time on purpose: the assertions hold at any time.
      await pause(Math.random() * wholeMs);
      command.child.kill(signal);
      const code = await command.ended;
      await settled(scene);
      const content = await contentOf(scene.pool);
      t.ok(content === before || content === after, `${signal} at ${at}`);
      // Before the start and after the end a signal has no effect.
      t.ok(
        [0, signal, ...(signal === 'SIGTERM' ? [143] : [])].includes(code),
        `the load ended (${code})`,
      );
      if (code === 0) t.equal(content, after, 'done is done');
      if (code === 143) t.match(command.stderr(), SAID);
      const { rows } = await scene.pool.query(COUNT);
      t.equal(rows[0].loads, content === after ? 1 : 0, 'the ledger says the same');
      found[content === after ? 'after' : 'before'] += 1;
    }
    t.equal(await load(t, scene, file).ended, 0);
    t.equal(await contentOf(scene.pool), after, 'running it again leads to the same data');
    return {
      moments: MOMENTS + 2,
      'data as before': found.before + 2,
      'data as after': found.after,
    };
  },
);
