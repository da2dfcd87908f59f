import type { Cluster } from './cluster.ts';
import type { Contender } from './contenders.ts';
import { Gone, isHeavy, type Sample, sample } from './measure.ts';
import { say } from './say.ts';
import { WORKLOADS, type Workload } from './workloads.ts';

/** Longest that one request over each of many connections may take a contender. */
const LIMIT_MS = 60_000;

/** What a contender did not answer, and why. */
export interface Failure {
  readonly contender: string;
  readonly workload: string;
  readonly connections: number;
  readonly why: string;
}

export interface Crowds {
  readonly samples: readonly Sample[];
  readonly failures: readonly Failure[];
}

/** What takes a contender longest comes last: it may not survive it. */
const bySize = (one: Workload, other: Workload): number =>
  Number(one.name.startsWith('W4')) - Number(other.name.startsWith('W4'));

/**
 * Who takes long, asked over many connections: once, one request over each, after all else. What
 * fails is told; who does not answer in time, or ends, is asked nothing more.
 */
export async function measureCrowds(
  cluster: Cluster,
  contenders: readonly Contender[],
  connections: readonly number[],
): Promise<Crowds> {
  const samples: Sample[] = [];
  const failures: Failure[] = [];
  for (const contender of contenders) {
    const cells = WORKLOADS.toSorted(bySize).flatMap((workload) =>
      connections
        .filter((many) => isHeavy(contender, workload, many) && contender.ask(workload))
        .map((many) => ({ workload, many })),
    );
    for (const { workload, many } of cells) {
      say(`${contender.name}: ${workload.name}, ${many} connections, once`);
      const burst = { least: many, ms: 0, limitMs: LIMIT_MS };
      try {
        const taken = await sample(cluster, contender, workload, many, burst);
        if (taken) samples.push(taken);
      } catch (error) {
        const why = (error as Error).message;
        const told = { contender: contender.name, workload: workload.name, connections: many, why };
        failures.push(told);
        if (!(error instanceof Gone)) continue;
        await contender.served.stop();
        break;
      }
    }
  }
  return { samples, failures };
}
