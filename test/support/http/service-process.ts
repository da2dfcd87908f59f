import { readFile, writeFile } from 'node:fs/promises';
import type t from 'tap';
import { ALL_MARKETS } from '../../../src/catalog/scopes.ts';
import type { TestDatabase } from '../database/database.ts';
import { type Running, startService } from '../process/programs.ts';
import { byLength } from '../run/length.ts';
import { keyFor } from './service.ts';

/** Default timeouts of a service, which other tests extend for slow machines. */
export const OWN_TIMES = {
  DATABASE_SILENCE_MS: '500',
  DATABASE_ACQUIRE_TIMEOUT_MS: '2000',
  DATABASE_STATEMENT_TIMEOUT_MS: '8000',
  REQUEST_DEADLINE_MS: '8000',
  WAITING_MS_MAX: '500',
};

/** Full runs measure the service with its defaults. */
const TIMES = byLength<Readonly<Record<string, string>>>({}, OWN_TIMES);

/** A service in its own process. */
export interface ServiceProcess {
  readonly running: Running;
  readonly port: number;
  readonly key: string;
  /** Resident memory of the process, in MB. */
  memory(): Promise<number>;
}

/** Resident memory of a process, in MB. */
export async function memoryOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024;
}

/**
 * The peak growth of a process's resident memory during some work, in MB.
 * @throws Error from the system where the process is another user's
 */
export async function peakGrowth(pid: number, work: () => Promise<unknown>): Promise<number> {
  // Linux: 5 resets the peak, see proc(5).
  await writeFile(`/proc/${pid}/clear_refs`, '5');
  const before = await memoryOf(pid);
  await work();
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1_024 - before;
}

/**
 * Starts the service as a process over a test database and waits until it listens.
 * @param node further arguments for Node
 */
export async function startServiceProcess(
  test: Pick<typeof t, 'teardown'>,
  database: Pick<TestDatabase, 'url' | 'db'>,
  env: Readonly<Record<string, string>> = {},
  node: readonly string[] = [],
): Promise<ServiceProcess> {
  const key = await keyFor(database as TestDatabase, [ALL_MARKETS]);
  const running = startService(test, { DATABASE_URL: database.url, ...TIMES, ...env }, node);
  // The metrics have their own listener.
  const address = /http:\/\/127\.0\.0\.1:(\d+)\b(?!\/metrics)/;
  const [, port] = address.exec(await running.until('stderr', address)) ?? [];
  const { pid = 0 } = running.child;
  return { running, port: Number(port), key, memory: () => memoryOf(pid) };
}
