import type { Served } from './child.ts';
import type { Cluster } from './cluster.ts';
import { startService } from './contenders.ts';
import {
  type Bare,
  bareSql,
  besideDownloads,
  type Downloads,
  type FirstTime,
  type Freshness,
  firstTime,
  freshness,
  memoryOfSlowReaders,
  notModified,
  startToAnswer,
} from './extras.ts';
import { atRest } from './rest.ts';
import { say } from './say.ts';

/** What is measured in each round beside the bursts of requests. */
export interface Beside {
  /** The statement of W2 by itself, 16 connections; null where there is no pgbench. */
  readonly bare: Bare | null;
  readonly downloads: Downloads;
  readonly slowReaderBytes: number;
  readonly notModifiedMs: number;
  readonly firstTime: FirstTime;
  readonly fresh: Freshness;
  readonly startSeconds: number;
}

/** One round of it. What is shown for the first time needs a service that showed nothing yet. */
export async function measureBeside(
  cluster: Cluster,
  service: Served,
  plain: Served,
): Promise<Beside> {
  say('bare SQL, downloads, slow readers, freshness, start, first time');
  const bare = await bareSql(cluster, 'W2', 16);
  const downloads = await besideDownloads(service, cluster.key);
  const slowReaderBytes = await memoryOfSlowReaders(service, cluster.key);
  const notModifiedMs = await notModified(cluster, service);
  const fresh = await freshness(cluster, service);
  const startSeconds = await startToAnswer(cluster, plain);
  const fresher = await startService(cluster);
  await atRest(cluster, fresher.pid);
  const first = await firstTime(cluster, fresher);
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

/** The best round of each; of memory the worst one, and of stale answers all. */
export function bestOf(rounds: readonly Beside[]): Beside {
  const bare = rounds.flatMap((each) => each.bare ?? []);
  const fresh = rounds.map((each) => each.fresh);
  const sum = (of: (each: Freshness) => number): number =>
    fresh.reduce((total, each) => total + of(each), 0);
  return {
    bare: bare.length === 0 ? null : leastBy(bare, ({ perSecond }) => -perSecond),
    downloads: leastBy(
      rounds.map((each) => each.downloads),
      ({ beside }) => beside.p99,
    ),
    slowReaderBytes: Math.max(...rounds.map((each) => each.slowReaderBytes)),
    notModifiedMs: Math.min(...rounds.map((each) => each.notModifiedMs)),
    firstTime: leastBy(
      rounds.map((each) => each.firstTime),
      ({ convertedMs, nativeMs }) => convertedMs / nativeMs,
    ),
    fresh: {
      ...leastBy(fresh, ({ afterCommitP99, quietP99 }) => afterCommitP99 - quietP99),
      commits: sum(({ commits }) => commits),
      stale: sum(({ stale }) => stale),
    },
    startSeconds: Math.min(...rounds.map((each) => each.startSeconds)),
  };
}
