import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import type { TestDatabase } from '../../support/database/database.ts';

const LOADER = fileURLToPath(new URL('../loader.ts', import.meta.url));

/** A database, and the arguments of `loader.ts`. */
export type Scene = Pick<TestDatabase, 'url' | 'pool'> & { readonly args: readonly string[] };

const OF_THE_LOADER = `select from pg_stat_activity
  where application_name = 'loader to be killed' and datname = current_database()`;

/** True if a backend of the loader runs a statement with this start. */
export async function isDoing(pool: pg.Pool, statement: string): Promise<boolean> {
  const { rows } = await pool.query(`${OF_THE_LOADER} and ltrim(query, E' \\n') like $1 || '%'`, [
    statement,
  ]);
  return rows.length > 0;
}

/** Waits until the server has noticed the end of the loader and rolled its transaction back. */
async function settled(pool: pg.Pool): Promise<void> {
  while ((await pool.query(OF_THE_LOADER)).rows.length > 0);
}

const start = ({ url, args }: Scene, env: Readonly<Record<string, string>> = {}): ChildProcess =>
  spawn(process.execPath, [LOADER, url, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...env },
  });

/** Starts a loader that kills itself at a step. */
export async function killSaying(scene: Scene, text: RegExp): Promise<void> {
  const child = start(scene, { KILLED_AT: text.source });
  const [, signal] = await once(child, 'exit');
  if (signal !== 'SIGKILL') throw new Error(`the loader never said: ${text}`);
  await settled(scene.pool);
}

/** Starts a loader and kills it at a moment, unless it has ended. */
export async function kill(
  scene: Scene,
  moment: (child: ChildProcess) => Promise<unknown>,
): Promise<void> {
  const child = start(scene);
  const exited = once(child, 'exit');
  await Promise.race([moment(child), exited]);
  child.kill('SIGKILL');
  await exited;
  await settled(scene.pool);
}

/** Kills the loader while it waits for a lock of the test: an exact moment. */
export async function killAt(scene: Scene, lock: string): Promise<void> {
  const { pool } = scene;
  const holder = await pool.connect();
  await holder.query(`begin; ${lock}`);
  const child = start(scene);
  const exited = once(child, 'exit');
  const isWaiting = `${OF_THE_LOADER} and wait_event_type = 'Lock'`;
  while ((await pool.query(isWaiting)).rows.length === 0) {
    if (child.exitCode !== null) throw new Error(`the loader never waited for: ${lock}`);
  }
  child.kill('SIGKILL');
  await exited;
  await holder.query('rollback');
  holder.release();
  await settled(pool);
}
