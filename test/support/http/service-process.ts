import { readFile, writeFile } from 'node:fs/promises';
import type t from 'tap';
import { ALL_MARKETS } from '../../../src/catalog/scopes.ts';
import type { TestDatabase } from '../database/database.ts';
import { type Running, startService } from '../process/programs.ts';
import { byLength } from '../run/faults.ts';
import { keyFor } from './service.ts';

/** The times that a service has by itself, which other tests stretch for slow machines. */
export const OWN_TIMES = {
  DATABASE_SILENCE_MS: '500',
  DATABASE_ACQUIRE_TIMEOUT_MS: '2000',
  DATABASE_STATEMENT_TIMEOUT_MS: '8000',
  REQUEST_DEADLINE_MS: '8000',
  WAITING_MS_MAX: '500',
};

/** What is measured at full length is the service as it is. */
const TIMES = byLength<Readonly<Record<string, string>>>({}, OWN_TIMES);

/** A service in a process of its own. */
export interface Served {
  readonly running: Running;
  readonly port: number;
  readonly key: string;
  /** Memory of the process that is in use, in MB. */
  memory(): Promise<number>;
}

/** The memory of a process, in MB, as the system counts it. */
export async function memoryOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024;
}

/**
 * The most memory that a process has while something is done, in MB, beyond that of before.
 * @throws Error from the system where the process is another user's
 */
export async function grownAtMost(pid: number, work: () => Promise<unknown>): Promise<number> {
  // Linux: 5 begins the count of the peak anew, proc(5).
  await writeFile(`/proc/${pid}/clear_refs`, '5');
  const before = await memoryOf(pid);
  await work();
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1_024 - before;
}

/**
 * Starts the service as a process over a database of a test, and waits until it listens; with more
 * arguments for Node where there are any.
 */
export async function served(
  test: Pick<typeof t, 'teardown'>,
  database: Pick<TestDatabase, 'url' | 'db'>,
  env: Readonly<Record<string, string>> = {},
  node: readonly string[] = [],
): Promise<Served> {
  const key = await keyFor(database as TestDatabase, [ALL_MARKETS]);
  const running = startService(test, { DATABASE_URL: database.url, ...TIMES, ...env }, node);
  // The metrics, where there are any, have a listener of their own.
  const address = /http:\/\/127\.0\.0\.1:(\d+)\b(?!\/metrics)/;
  const [, port] = address.exec(await running.until('stderr', address)) ?? [];
  const { pid = 0 } = running.child;
  return { running, port: Number(port), key, memory: () => memoryOf(pid) };
}
