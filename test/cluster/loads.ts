import { writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { type LocalCluster, until } from '../../scripts/cluster.ts';
import { type Client, openClient } from '../../src/db/client.ts';
import { load } from '../../src/ingest/load/load.ts';
import { type ClusterContext, count, failOver, restart } from './shared.ts';

/** Loads one file after another. */
class Loader {
  /** Batches whose load was reported as done. */
  readonly reported: number[] = [];
  readonly #cluster: LocalCluster;
  readonly #running: Promise<void>;
  #tried = 0;
  #isOver = false;

  constructor(cluster: LocalCluster) {
    this.#cluster = cluster;
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      const client = openClient({
        url: this.#cluster.loaderUrl,
        connectionsMax: 2,
        acquireTimeoutMs: 2_000,
        statementTimeoutMs: 0,
        lockTimeoutMs: 10_000,
        readOnly: false,
        applicationName: 'commodity-prices command',
      });
      try {
        while (!this.#isOver) await this.#load(client);
      } catch {
        await pause(100);
      } finally {
        await client.close();
      }
    }
  }

  async #load(client: Client): Promise<void> {
    this.#tried += 1;
    const day = new Date(Date.UTC(1960, 0, this.#tried)).toISOString().slice(0, 10);
    const file = `${this.#cluster.folder}/load.csv`;
    const point = `CP-NI-0001,${day},,${100 + this.#tried},,`;
    await writeFile(file, `code,date,low,mid,high,publishedAt\n${point}\n`);
    const { status, batch } = await load(client, {
      format: 'csv',
      file,
      actor: 'test',
      jumpFactor: '5',
      acceptJumps: true,
    });
    if (status === 'applied') this.reported.push(batch ?? 0);
  }
}

/** 5: no load that was reported is lost. */
export async function reportedLoads(context: ClusterContext): Promise<void> {
  const { cluster, counts } = context;
  const loader = new Loader(cluster);
  const { reported } = loader;
  const lost = new Set<number>();
  const took: number[] = [];
  for (let at = 0; at < counts.failovers; at += 1) {
    const already = reported.length;
    await until('some loads are reported', () => reported.length >= already + 5);
    await pause(Math.random() * 300);
    const { lost: server, afterMs } = await failOver(context);
    took.push(afterMs);
    const upTo = [...reported];
    const { rows } = await (await cluster.primary()).ask(
      'select id::int from load_batch where id = any($1::int[])',
      [upTo],
    );
    const there = new Set((rows as { id: number }[]).map(({ id }) => id));
    for (const each of upTo) if (!there.has(each)) lost.add(each);
    await restart(context, server);
  }
  await loader.stop();
  if (lost.size > 0) context.note(`lost: batches ${[...lost].join()}`);
  const longest = (Math.max(...took) / 1_000).toFixed(1);
  const failovers = `${counts.failovers} failovers of ≤ ${longest} s`;
  const figure = `lost ${lost.size} of ${count(reported.length)} reported; ${failovers}`;
  context.report('5 reported loads', figure, lost.size === 0 && reported.length > 0);
}
