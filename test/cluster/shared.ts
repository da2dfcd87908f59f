import { type LocalCluster, type Node, type Server, until } from '../../scripts/cluster.ts';
import type { Target } from '../support/process/load.ts';

/** Cluster, counts and output of a point. */
export interface ClusterContext {
  readonly cluster: LocalCluster;
  /** HAProxy. */
  readonly target: Target;
  readonly counts: Counts;
  /** Prints the line of a figure. */
  report(name: string, figure: string, isMet: boolean): void;
  note(text: string): void;
  /** A folder with a copy of the program that has one more migration. */
  nextVersion(): Promise<string>;
  /** Runs a command of the program in a folder. */
  run(folder: string, url: string, ...args: string[]): Promise<string>;
}

/** Numbers of requests, commits and failovers of a run. */
export interface Counts {
  readonly requests: number;
  readonly monotonic: number;
  readonly commits: number;
  readonly failovers: number;
  readonly random: number;
  /** Requests for each measurement of CPU, and seconds for each of throughput. */
  readonly cpuRequests: number;
  readonly seconds: number;
}

export const count = (value: number): string => value.toLocaleString('en');
export const ms = (value: number): string =>
  `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
export const targetOf = ({ port }: Node, { key }: Target): Target => ({ port, key });

/** Starts a node again, and waits until HAProxy uses it. */
export async function startNode({ cluster }: ClusterContext, node: Node): Promise<void> {
  node.program.start();
  await until(`${node.name} is ready`, node.isReady);
  await cluster.balanced();
}

/** A standby, and the node that reads it. */
export async function standbyWithNode({
  cluster,
}: ClusterContext): Promise<{ server: Server; node: Node }> {
  const primary = await cluster.primary();
  const at = cluster.servers.findIndex((each) => each !== primary);
  return { server: cluster.servers[at] as Server, node: cluster.nodes[at] as Node };
}

/** Starts a killed server again, as a standby. */
export async function restart({ cluster }: ClusterContext, server: Server): Promise<void> {
  server.patroni.start();
  await cluster.whole();
}

/** Kills the primary with its Patroni, and waits until another server accepts writes. */
export async function failOver({
  cluster,
}: ClusterContext): Promise<{ lost: Server; afterMs: number }> {
  const lost = await cluster.primary();
  const begun = performance.now();
  await lost.kill(true);
  await until('another is the primary', async () => (await cluster.primary()) !== lost);
  return { lost, afterMs: performance.now() - begun };
}
