import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import t from 'tap';
import type { TestDatabase } from '../support/database.ts';
import {
  contentOf,
  describePrices,
  fileOf,
  loadFile,
  loadingDatabase,
  loadText,
  points,
  stateOf,
} from './support.ts';

const LOADER = fileURLToPath(new URL('./loader.ts', import.meta.url));
const ROWS = 8_000;

const day = (index: number): string =>
  new Date(Date.UTC(1900, 0, index + 1)).toISOString().slice(0, 10);
const valuesOf = (code: string, add: number): string[] =>
  Array.from({ length: ROWS }, (_, index) => `${code},${day(index)},,${index + add},,`);

/** Published values of A, and a file that corrects them and adds as many of B. */
async function scene(t: Parameters<typeof loadText>[0]): Promise<TestDatabase & { file: string }> {
  const database = await loadingDatabase(t);
  await describePrices(database.client, 'A', 'B');
  await loadText(t, database.client, 'csv', points(...valuesOf('A', 0)));
  const file = await fileOf(t, points(...valuesOf('A', 1), ...valuesOf('B', 5)));
  return { ...database, file };
}

/** Whether a backend of the loader is in a statement that starts like this. */
async function isDoing(pool: pg.Pool, statement: string): Promise<boolean> {
  const { rows } = await pool.query(
    `select from pg_stat_activity where application_name = 'loader to be killed'
       and datname = current_database() and ltrim(query, E' \\n') like $1 || '%'`,
    [statement],
  );
  return rows.length > 0;
}

/** Waits until the server has noticed that the loader is gone, and has undone what it began. */
async function settled(pool: pg.Pool): Promise<void> {
  const backends = `select from pg_stat_activity
    where application_name = 'loader to be killed' and datname = current_database()`;
  while ((await pool.query(backends)).rows.length > 0);
}

/** Starts a loader and kills it at a moment, if it is not over by then. */
async function kill(
  { url, pool, file }: TestDatabase & { file: string },
  moment: (child: ChildProcess) => Promise<unknown>,
): Promise<void> {
  const child = spawn(process.execPath, [LOADER, url, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  await Promise.race([moment(child), exited]);
  child.kill('SIGKILL');
  await exited;
  await settled(pool);
}

/** The moment at which the loader says something. */
const says =
  (text: RegExp) =>
  async ({ stdout }: ChildProcess): Promise<void> => {
    if (!stdout) throw new Error('the loader has no output');
    for await (const line of createInterface({ input: stdout })) if (text.test(line)) return;
  };

/** Kills the loader while it waits for a lock that the test holds: an exact moment. */
async function killAt(world: TestDatabase & { file: string }, lock: string): Promise<void> {
  const holder = await world.pool.connect();
  await holder.query(`begin; ${lock}`);
  const isWaiting = `select from pg_stat_activity where application_name = 'loader to be killed'
    and datname = current_database() and wait_event_type = 'Lock'`;
  const child = spawn(process.execPath, [LOADER, world.url, world.file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  while ((await world.pool.query(isWaiting)).rows.length === 0) {
    if (child.exitCode !== null) throw new Error(`the loader never waited for: ${lock}`);
  }
  child.kill('SIGKILL');
  await exited;
  await holder.query('rollback');
  holder.release();
  await settled(world.pool);
}

t.test('a loader that is killed at any moment leaves nothing, and can run again', async (t) => {
  const world = await scene(t);
  const before = await stateOf(world.pool);
  const early = { 'before it connects': /started/, 'after the first rows': /^[1-9]\d* rows/ };
  for (const [what, text] of Object.entries(early)) {
    await kill(world, says(text));
    t.equal(await stateOf(world.pool), before, `killed ${what}`);
  }
  const locks = {
    'while it waits for another writer': 'select lock_revisions()',
    'while it looks up the prices': 'lock table price in access exclusive mode',
    'while it compares with the current values': 'lock table series in access exclusive mode',
    'while it takes its revision': 'lock table revision in share mode',
    'while it inserts': 'lock table series in share mode',
    'while it corrects': `select from series where date = '1901-01-01' for update`,
    'while it keeps what it corrected': 'lock table series_history in share mode',
    'while it writes the ledger': 'lock table load_batch in share mode',
    'before it commits': 'lock table service in access exclusive mode',
  };
  for (const [what, lock] of Object.entries(locks)) {
    await killAt(world, lock);
    t.equal(await stateOf(world.pool), before, `killed ${what}`);
  }
  const report = await loadFile(world.client, 'csv', world.file, {
    allowCorrections: true,
    reason: 'again',
  });
  t.match(report, { status: 'applied', counts: { inserted: ROWS, corrected: ROWS } });
});

t.test('a loader that is killed around its commit has done all or nothing', async (t) => {
  const world = await scene(t);
  const { pool } = world;
  const before = await contentOf(pool);
  const twin = await scene(t);
  await loadFile(twin.client, 'csv', twin.file, { allowCorrections: true, reason: 'whole' });
  const after = await contentOf(twin.pool);
  t.not(before, after);
  for (const statement of ['insert into load_coverage', 'select "epoch"', 'commit', 'drop table']) {
    let isOver = false;
    await kill(world, async (child) => {
      child.on('exit', () => {
        isOver = true;
      });
      while (!isOver && !(await isDoing(pool, statement)));
    });
    const content = await contentOf(pool);
    t.ok(content === before || content === after, `killed at ${statement}`);
    const { rows } = await pool.query(`select count(*) from load_batch where actor = 'killed'`);
    t.equal(rows[0].count, content === after ? '1' : '0', 'the ledger says the same');
    if (content === after) break;
  }
  const again = await loadFile(world.client, 'csv', world.file, {
    allowCorrections: true,
    reason: 'again',
  });
  t.ok(['applied', 'already-loaded'].includes(again.status));
  t.equal(await contentOf(pool), after, 'running it again leads to the same data');
});
