import type { Served } from './child.ts';
import type { Cluster } from './cluster.ts';
import { startService } from './contenders.ts';
import {
  type Bare,
  bareSql,
  type Downloads,
  duringDownloads,
  type FirstTime,
  type Freshness,
  firstTime,
  freshness,
  memoryOfSlowReaders,
  notModified,
  startToAnswer,
} from './extras.ts';
import { waitUntilIdle } from './idle.ts';
import { log } from './log.ts';

/** Measurements of a round other than the bursts of requests. */
export interface PerRound {
  /** The statement of W2 alone over 16 connections; null without pgbench. */
  readonly bare: Bare | null;
  readonly downloads: Downloads;
  readonly slowReaderBytes: number;
  readonly notModifiedMs: number;
  readonly firstTime: FirstTime;
  readonly fresh: Freshness;
  readonly startSeconds: number;
}

/** Measures one round. First-time series need a freshly started service. */
export async function measurePerRound(
  cluster: Cluster,
  service: Served,
  plain: Served,
): Promise<PerRound> {
  log('bare SQL, downloads, slow readers, freshness, start, first time');
  const bare = await bareSql(cluster, 'W2', 16);
  const downloads = await duringDownloads(service, cluster.key);
  const slowReaderBytes = await memoryOfSlowReaders(service, cluster.key);
  const notModifiedMs = await notModified(cluster, service);
  const fresh = await freshness(cluster, service);
  const startSeconds = await startToAnswer(cluster, plain);
  const fresher = await startService(cluster);
  await waitUntilIdle(cluster, fresher.pid);
  const first = await firstTime(cluster, fresher, plain);
  await fresher.stop();
  return {
    bare,
    downloads,
    slowReaderBytes,
    notModifiedMs,
    firstTime: first,
    fresh,
    startSeconds,
  };
}

const leastBy = <T>(values: readonly T[], of: (value: T) => number): T =>
  values.reduce((one, other) => (of(other) < of(one) ? other : one));

/** The round with the least p99. */
export const bestDownloads = (rounds: readonly Downloads[]): Downloads =>
  leastBy(rounds, ({ beside }) => beside.p99);

/** The best round of each measurement; the worst for memory, the sum for stale answers. */
export function bestOf(rounds: readonly PerRound[]): PerRound {
  const bare = rounds.flatMap((each) => each.bare ?? []);
  const fresh = rounds.map((each) => each.fresh);
  const sum = (of: (each: Freshness) => number): number =>
    fresh.reduce((total, each) => total + of(each), 0);
  return {
    bare: bare.length === 0 ? null : leastBy(bare, ({ perSecond }) => -perSecond),
    downloads: bestDownloads(rounds.map((each) => each.downloads)),
    slowReaderBytes: Math.max(...rounds.map((each) => each.slowReaderBytes)),
    notModifiedMs: Math.min(...rounds.map((each) => each.notModifiedMs)),
    firstTime: leastBy(
      rounds.map((each) => each.firstTime),
      ({ gzipMs, gzipSqlMs }) => gzipMs / gzipSqlMs,
    ),
    fresh: {
      ...leastBy(fresh, ({ afterCommitP99, quietP99 }) => afterCommitP99 - quietP99),
      commits: sum(({ commits }) => commits),
      stale: sum(({ stale }) => stale),
    },
    startSeconds: Math.min(...rounds.map((each) => each.startSeconds)),
  };
}
