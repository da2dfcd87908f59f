import type { Cluster } from './cluster.ts';
import type { Contender } from './contenders.ts';
import { cpuSince, memoryOf } from './cpu.ts';
import { burst, driverOf, percentile } from './http-client.ts';
import { log } from './log.ts';
import { WORKLOADS, type Workload } from './workloads.ts';

/** The cost of a contender for one workload and one number of connections, in one round. */
export interface Sample {
  readonly contender: string;
  readonly workload: string;
  readonly connections: number;
  /** CPU of the server's process and of PostgreSQL, milliseconds a request. */
  readonly nodeMs: number;
  readonly pgMs: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly firstMs: number;
  readonly peakBytes: number;
  readonly bytes: number;
}

/** The timeout of a burst. */
const LIMIT_MS = 120_000;

export interface Rounds {
  readonly rounds: number;
  readonly connections: readonly number[];
  /** Length of one burst. */
  readonly ms: number;
  /** Leaves out bursts that take many seconds and that no target needs. */
  readonly isQuick: boolean;
}

const shuffled = <T>(values: readonly T[]): T[] =>
  values
    .map((value) => [Math.random(), value] as const)
    .sort(([one], [other]) => one - other)
    .map(([, value]) => value);

/** A contender that timed out or exited; it gets no further requests. */
export class ContenderFailed extends Error {}

/** Length of one burst of requests. */
export interface BurstLength {
  readonly ms: number;
  /** Minimum number of requests, so that clock ticks do not matter. */
  readonly least: number;
  /** The timeout. */
  readonly limitMs: number;
}

/**
 * Measures the cost of one burst; null if the contender skips the workload.
 * @throws if an answer is missing or has an unexpected status
 */
export async function sample(
  cluster: Cluster,
  { name, served, ask }: Contender,
  workload: Workload,
  connections: number,
  { ms, least, limitMs }: BurstLength,
): Promise<Sample | null> {
  const asked = ask(workload);
  if (asked === null) return null;
  const { status = 200 } = asked;
  const driver = driverOf(served.address, connections);
  let hasTimedOut = false;
  const limit = setTimeout(() => {
    hasTimedOut = true;
    driver.close();
  }, limitMs);
  try {
    // Warm-up: connections, prepared statements and caches.
    const warm = await driver.send(asked);
    const isShort = warm.lastMs < ms;
    if (isShort) await burst(driver, asked, connections, { ms: ms / 5, least: 1, status });
    const node = cpuSince(() => [served.pid]);
    const pg = cpuSince(() => cluster.pids());
    const measured = await burst(driver, asked, connections, { ms, least, status });
    const { requests, seconds, latenciesMs, firstMs } = measured;
    return {
      contender: name,
      workload: workload.name,
      connections,
      nodeMs: node() / requests,
      pgMs: pg() / requests,
      perSecond: requests / seconds,
      p50: percentile(latenciesMs, 0.5),
      p99: percentile(latenciesMs, 0.99),
      firstMs: percentile(firstMs, 0.5),
      peakBytes: memoryOf(served.pid).peak,
      bytes: warm.bytes,
    };
  } catch (error) {
    if (hasTimedOut)
      throw new ContenderFailed(`not answered within ${limitMs / 1000} s`, { cause: error });
    if (served.hasEnded()) throw new ContenderFailed('its process ended', { cause: error });
    throw error;
  } finally {
    clearTimeout(limit);
    driver.close();
  }
}

/** Logs a failed contender and returns null; the others continue. */
async function attempt(...args: Parameters<typeof sample>): Promise<Sample | null> {
  try {
    return await sample(...args);
  } catch (error) {
    const [, { name }, workload, connections] = args;
    log(
      `${name} failed at ${workload.name}, ${connections} connections: ${(error as Error).message}`,
    );
    return null;
  }
}

/** True if a workload would dominate the run: it is then measured once, at the end. */
export function isHeavy({ name }: Contender, workload: Workload, connections: number): boolean {
  if (connections === 1) return false;
  if (['raw', 'service'].includes(name)) {
    return connections > 16 && /^W(3csv|4)/.test(workload.name);
  }
  return /^W[345]/.test(workload.name);
}

/** True if a burst takes many seconds, and no target needs it: a quick run leaves it out. */
const isLong = ({ name }: Contender, workload: Workload): boolean =>
  workload.name.startsWith('W4') && !['raw', 'service', 'service, SQL'].includes(name);

/** Bursts per round of cheap contenders, equal for all compared ones. */
const LIGHT_BURSTS = 3;

/** The number of bursts of a contender per round. */
function burstsOf({ name }: Contender, workload: Workload, connections: number): number {
  const isLight = ['raw', 'hello', 'stack', 'service'].includes(name);
  return isLight && connections <= 16 && /^W[1-5](gzip)?$/.test(workload.name) ? LIGHT_BURSTS : 1;
}

/**
 * Measures all contenders with every workload, each round in another order, so that other load of
 * the machine affects all alike.
 * @param between further measurements of each round
 */
export async function measure(
  cluster: Cluster,
  contenders: readonly Contender[],
  { rounds, connections, ms, isQuick }: Rounds,
  between: () => Promise<void>,
): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    for (const workload of WORKLOADS) {
      for (const many of connections) {
        log(`round ${round} of ${rounds}: ${workload.name}, ${many} connections`);
        const turns = contenders.flatMap((each) =>
          Array.from({ length: burstsOf(each, workload, many) }, () => each),
        );
        for (const contender of shuffled(turns)) {
          if (isHeavy(contender, workload, many)) continue;
          if (isQuick && isLong(contender, workload)) continue;
          const least = workload.name.startsWith('W4') ? 2 : 6;
          const length = { ms, least, limitMs: LIMIT_MS };
          const taken = await attempt(cluster, contender, workload, many, length);
          if (taken) samples.push(taken);
        }
      }
    }
    await between();
  }
  return samples;
}

/** The least CPU of all rounds, process plus PostgreSQL, in milliseconds per request. */
export const costOf = (samples: readonly Sample[]): number =>
  Math.min(...samples.map(({ nodeMs, pgMs }) => nodeMs + pgMs));

/** The samples of one contender with one workload, over one number of connections. */
export const samplesOf = (
  samples: readonly Sample[],
  contender: string,
  workload: string,
  connections: number,
): Sample[] =>
  samples.filter(
    (each) =>
      each.contender === contender &&
      each.workload === workload &&
      each.connections === connections,
  );
