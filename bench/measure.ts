import type { Cluster } from './cluster.ts';
import type { Contender } from './contenders.ts';
import { cpuSince, memoryOf } from './cpu.ts';
import { burst, driverOf, percentile } from './drive.ts';
import { say } from './say.ts';
import { WORKLOADS, type Workload } from './workloads.ts';

/** What one contender cost for one workload over one number of connections, in one round. */
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

/** When a burst is given up. */
const LIMIT_MS = 120_000;

export interface Rounds {
  readonly rounds: number;
  readonly connections: readonly number[];
  /** Length of one burst. */
  readonly ms: number;
}

const shuffled = <T>(values: readonly T[]): T[] =>
  values
    .map((value) => [Math.random(), value] as const)
    .sort(([one], [other]) => one - other)
    .map(([, value]) => value);

/** Whoever was given up, or has ended: nothing more can be asked of it. */
export class Gone extends Error {}

/** Length of one burst of requests. */
export interface Length {
  readonly ms: number;
  /** Requests at the least: more of what is cheap, so that ticks do not matter. */
  readonly least: number;
  /** When it is given up. */
  readonly limitMs: number;
}

/**
 * What one burst costs one contender; null where it does not take part.
 * @throws when an answer is missing or has another status than expected
 */
export async function sample(
  cluster: Cluster,
  { name, served, ask }: Contender,
  workload: Workload,
  connections: number,
  { ms, least, limitMs }: Length,
): Promise<Sample | null> {
  const asked = ask(workload);
  if (asked === null) return null;
  const { status = 200 } = asked;
  const driver = driverOf(served.address, connections);
  let isGivenUp = false;
  const limit = setTimeout(() => {
    isGivenUp = true;
    driver.close();
  }, limitMs);
  try {
    // Connections are made, statements prepared and caches filled before anything is counted.
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
    if (isGivenUp) throw new Gone(`not answered within ${limitMs / 1000} s`, { cause: error });
    if (served.hasEnded()) throw new Gone('its process ended', { cause: error });
    throw error;
  } finally {
    clearTimeout(limit);
    driver.close();
  }
}

/** A contender that fails is told, and has no figure: the others go on. */
async function attempt(...args: Parameters<typeof sample>): Promise<Sample | null> {
  try {
    return await sample(...args);
  } catch (error) {
    const [, { name }, workload, connections] = args;
    say(
      `${name} failed at ${workload.name}, ${connections} connections: ${(error as Error).message}`,
    );
    return null;
  }
}

/** Who would take the whole time of the run over many connections: it is asked once, at the end. */
export function isHeavy({ name }: Contender, workload: Workload, connections: number): boolean {
  if (connections === 1) return false;
  if (['raw', 'service'].includes(name)) {
    return connections > 16 && /^W(3csv|4)/.test(workload.name);
  }
  return /^W[345]/.test(workload.name);
}

/** Bursts in a round of those who take little: chance is even for whoever is compared. */
const LIGHT_BURSTS = 3;

/** How many bursts somebody has in a round. */
function burstsOf({ name }: Contender, workload: Workload, connections: number): number {
  const isLight = ['raw', 'hello', 'stack', 'service'].includes(name);
  return isLight && connections <= 16 && /^W[1-5](gzip)?$/.test(workload.name) ? LIGHT_BURSTS : 1;
}

/**
 * Measures everybody with every workload in turns, each round in another order, so that whatever
 * else the machine does meets all of them.
 * @param between what else is measured in each round
 */
export async function measure(
  cluster: Cluster,
  contenders: readonly Contender[],
  { rounds, connections, ms }: Rounds,
  between: () => Promise<void>,
): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    for (const workload of WORKLOADS) {
      for (const many of connections) {
        say(`round ${round} of ${rounds}: ${workload.name}, ${many} connections`);
        const turns = contenders.flatMap((each) =>
          Array.from({ length: burstsOf(each, workload, many) }, () => each),
        );
        for (const contender of shuffled(turns)) {
          if (isHeavy(contender, workload, many)) continue;
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

/** The least CPU of all rounds, process and PostgreSQL together, in milliseconds a request. */
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
