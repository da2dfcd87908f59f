import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Served } from './child.ts';

/** The file that `servers/service.ts` writes. */
export const pauseFile = (pid: number): string => join(tmpdir(), `prices-bench-pause-${pid}`);

/** The longest pause of the event loop of the service during some work, in milliseconds. */
export async function longestPause({ pid }: Served, work: () => Promise<unknown>): Promise<number> {
  const file = pauseFile(pid);
  await rm(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  await work();
  process.kill(pid, 'SIGUSR2');
  while (!existsSync(file)) await pause(10);
  // It may be written in part.
  await pause(100);
  const longest = Number(await readFile(file, 'utf8'));
  await rm(file);
  return longest;
}
