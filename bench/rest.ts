import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import { cpuSince } from './cpu.ts';

/** Milliseconds of CPU in a second below which a process is at rest. */
const AT_REST_MS = 30;

/**
 * Waits until a process is at rest and asks the database nothing, such as a service that has filled
 * its price book: while it waits for a disk it takes no CPU either.
 */
export async function atRest(cluster: Cluster, pid: number): Promise<void> {
  for (let calm = 0; calm < 2; ) {
    const spent = cpuSince(() => [pid]);
    await pause(1_000);
    const isCalm = spent() < AT_REST_MS && !(await cluster.isBusy());
    calm = isCalm ? calm + 1 : 0;
  }
}
