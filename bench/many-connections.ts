import type { Cluster } from './cluster.ts';
import type { Contender } from './contenders.ts';
import { log } from './log.ts';
import { ContenderFailed, isHeavy, type Sample, sample } from './measure.ts';
import { WORKLOADS, type Workload } from './workloads.ts';

/** Time limit of one request over each of many connections. */
const LIMIT_MS = 60_000;

/** A failed workload of a contender, with its reason. */
export interface Failure {
  readonly contender: string;
  readonly workload: string;
  readonly connections: number;
  readonly why: string;
}

export interface ManyConnections {
  readonly samples: readonly Sample[];
  readonly failures: readonly Failure[];
}

/** Orders the longest workload last, because a contender may crash in it. */
const bySize = (one: Workload, other: Workload): number =>
  Number(one.name.startsWith('W4')) - Number(other.name.startsWith('W4'));

/**
 * Measures slow contenders over many connections: once, with one request per connection, at the
 * end. Failures are reported. A contender that times out or exits gets no further requests.
 */
export async function measureManyConnections(
  cluster: Cluster,
  contenders: readonly Contender[],
  connections: readonly number[],
): Promise<ManyConnections> {
  const samples: Sample[] = [];
  const failures: Failure[] = [];
  for (const contender of contenders) {
    const cells = WORKLOADS.toSorted(bySize).flatMap((workload) =>
      connections
        .filter((many) => isHeavy(contender, workload, many) && contender.ask(workload))
        .map((many) => ({ workload, many })),
    );
    for (const { workload, many } of cells) {
      log(`${contender.name}: ${workload.name}, ${many} connections, once`);
      const burst = { least: many, ms: 0, limitMs: LIMIT_MS };
      try {
        const taken = await sample(cluster, contender, workload, many, burst);
        if (taken) samples.push(taken);
      } catch (error) {
        const why = (error as Error).message;
        failures.push({
          contender: contender.name,
          workload: workload.name,
          connections: many,
          why,
        });
        if (!(error instanceof ContenderFailed)) continue;
        await contender.served.stop();
        break;
      }
    }
  }
  return { samples, failures };
}
