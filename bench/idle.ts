import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import { cpuSince } from './cpu.ts';

/**
 * CPU milliseconds per second below which a process is idle: its checks of the database take up to
 * 150 on a slow machine, and work takes all that there is.
 */
const IDLE_MS = 250;

/**
 * Waits until a process is idle and runs no database statement, such as a service that has filled
 * its price book. CPU alone does not suffice: a process that waits for a disk uses none.
 */
export async function waitUntilIdle(cluster: Cluster, pid: number): Promise<void> {
  for (let idleSeconds = 0; idleSeconds < 2; ) {
    const spent = cpuSince(() => [pid]);
    await pause(1_000);
    const isIdle = spent() < IDLE_MS && !(await cluster.isBusy());
    idleSeconds = isIdle ? idleSeconds + 1 : 0;
  }
}
