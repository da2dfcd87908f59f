import { readFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { type Node, type Server, until } from '../../scripts/cluster.ts';
import { anyRequest, valuesOf } from '../support/fuzz/any-request.ts';
import { quantile, send } from '../support/process/load.ts';
import {
  type ClusterContext,
  count,
  failOver,
  ms,
  restart,
  standbyWithNode,
  startNode,
  targetOf,
} from './shared.ts';
import { CLIENTS, numberOf, Traffic, type TrafficResults } from './traffic.ts';
import { CommitWriter, commit, connect, renaming } from './writer.ts';

function reportSeen(
  context: ClusterContext,
  name: string,
  seen: TrafficResults,
  longestMs: number,
  more = '',
): void {
  const { requests, failed } = seen;
  const isMet = failed.length === 0 && seen.longestMs <= longestMs;
  const longest = `longest ${ms(seen.longestMs)} (≤ ${longestMs})`;
  const figure = `failed ${failed.length} of ${count(requests)}; ${longest}`;
  context.report(name, `${figure}${more}`, isMet);
  for (const each of failed.slice(0, 3)) context.note(each);
}

/** Runs an event in the midst of so many requests, with a writer. */
async function during(
  context: ClusterContext,
  requests: number,
  event: (writer: CommitWriter) => Promise<void>,
): Promise<TrafficResults> {
  const traffic = new Traffic(context.target);
  const writer = new CommitWriter(context.cluster.primaryUrl, 200);
  try {
    await traffic.reach(Math.round(requests / 4));
    writer.reset();
    await event(writer);
    await traffic.reach(requests);
  } finally {
    await Promise.all([traffic.stop(), writer.stop()]);
  }
  return traffic.seen;
}

/** 1: no request fails while parts end. */
export async function failures(context: ClusterContext): Promise<void> {
  const { cluster, counts } = context;
  const [first] = cluster.nodes as readonly [Node];
  const killed = await during(context, counts.requests, async () => {
    await first.program.end('SIGKILL');
    await pause(1_000);
    await startNode(context, first);
  });
  reportSeen(context, '1 a node is killed', killed, 1_000);
  const stopped = await during(context, counts.requests, async () => {
    await first.program.end('SIGTERM');
    await startNode(context, first);
  });
  reportSeen(context, '1 a node is stopped politely', stopped, 1_000);
  const hung = await during(context, counts.requests, async () => {
    first.program.child?.kill('SIGSTOP');
    await pause(3_000);
    first.program.child?.kill('SIGCONT');
    await cluster.balanced();
  });
  reportSeen(context, '1 a node hangs', hung, 750);
  const { server } = await standbyWithNode(context);
  const without = await during(context, counts.requests, async () => {
    await server.kill(false);
    await cluster.whole();
    await cluster.balanced();
  });
  reportSeen(context, '1 a standby is stopped at once', without, 1_000);
  let writesMs = 0;
  const promoted = await during(context, counts.requests, async (writer) => {
    const { lost } = await failOver(context);
    const { commits } = writer;
    await until('the writer commits', () => writer.commits > commits);
    writesMs = writer.longestGapMs;
    await restart(context, lost);
    await cluster.balanced();
  });
  const more = `; no write for ${ms(writesMs)}`;
  reportSeen(context, '1 the primary is killed and Patroni promotes', promoted, 1_000, more);
  const replaced = await during(context, counts.requests, async () => {
    for (const node of cluster.nodes) {
      await node.program.end('SIGTERM');
      await startNode(context, node);
    }
  });
  reportSeen(context, '1 all nodes are replaced one by one', replaced, 1_000);
}

/** Requests a second of eight clients without pauses. */
async function throughput(context: ClusterContext): Promise<number> {
  const traffic = new Traffic(context.target, { isMonotonic: true });
  // A node that has just started fills its price book.
  await pause(3_000);
  const before = traffic.seen.requests;
  const begun = performance.now();
  await pause(context.counts.seconds * 1_000);
  const perSecond = ((traffic.seen.requests - before) * 1_000) / (performance.now() - begun);
  await traffic.stop();
  return perSecond;
}

/** A way in which the replay of a standby differs, while a writer commits each 50 ms. */
interface ReplayMode {
  readonly begin: readonly string[];
  readonly end: readonly string[];
  /** A query with one column `holds`: true while the replay differs in this way. */
  readonly check: string;
}

const PAUSED: ReplayMode = {
  begin: ['select pg_wal_replay_pause()'],
  end: ['select pg_wal_replay_resume()'],
  check: "select pg_get_wal_replay_pause_state() = 'paused' as holds",
};
const DELAYED: ReplayMode = {
  begin: ["alter system set recovery_min_apply_delay = '1s'", 'select pg_reload_conf()'],
  end: ['alter system reset recovery_min_apply_delay', 'select pg_reload_conf()'],
  check: "select now() - pg_last_xact_replay_timestamp() > interval '0.9 s' as holds",
};

/**
 * Changes the replay of a standby, and stops its Patroni, which would undo that within two seconds.
 * @returns a function that ends it, and throws if it had ended already
 */
async function setReplay(
  server: Server,
  { begin, end, check }: ReplayMode,
): Promise<() => Promise<void>> {
  const run = async (texts: readonly string[]) => {
    for (const text of texts) await server.ask(text);
  };
  const holds = async (): Promise<boolean> => (await server.ask(check)).rows[0].holds;
  const { child } = server.patroni;
  child?.kill('SIGSTOP');
  await run(begin);
  await until('the replay is as it should be', holds);
  return async () => {
    const isHeld = await holds();
    await run(end);
    child?.kill('SIGCONT');
    if (!isHeld) throw new Error(`the replay of ${server.name} was changed back too early`);
  };
}

/** 2: no answer is older than one that the client has seen. */
export async function monotonic(context: ClusterContext): Promise<void> {
  const { cluster, counts } = context;
  const writer = new CommitWriter(cluster.primaryUrl, 50);
  const part = Math.ceil(counts.monotonic / 4);
  const phase = async (name: string, event: () => Promise<() => Promise<unknown>>) => {
    const traffic = new Traffic(context.target, { isMonotonic: true });
    const { seen } = traffic;
    let undo: () => Promise<unknown>;
    try {
      undo = await event();
      await traffic.reach(seen.requests + part);
    } finally {
      await traffic.stop();
    }
    await undo();
    await cluster.balanced();
    const isMet = seen.older === 0 && seen.failed.length === 0;
    const figure = `older 0 expected, ${seen.older} of ${count(seen.requests)}`;
    context.report(`2 ${name}`, `${figure}; failed ${seen.failed.length}`, isMet);
    for (const each of seen.failed.slice(0, 3)) context.note(each);
  };
  await phase('with x-min-revision, all well', async () => async () => {});
  const { server } = await standbyWithNode(context);
  await phase('one standby paused', () => setReplay(server, PAUSED));
  await phase('one standby 1 s behind', () => setReplay(server, DELAYED));
  await phase('across a failover', async () => {
    const { lost } = await failOver(context);
    return () => restart(context, lost);
  });
  await pausedThroughput(context);
  await writer.stop();
}

/** Throughput with a paused standby. In rounds, because rates vary from minute to minute. */
async function pausedThroughput(context: ClusterContext): Promise<void> {
  let [three, paused, two] = [0, 0, 0];
  for (let round = 0; round < 3; round += 1) {
    three += (await throughput(context)) / 3;
    const { server: now, node: of } = await standbyWithNode(context);
    const resume = await setReplay(now, PAUSED);
    paused += (await throughput(context)) / 3;
    await resume();
    await of.program.end('SIGTERM');
    two += (await throughput(context)) / 3;
    await startNode(context, of);
  }
  const share = (100 * paused) / two;
  const rates = `${paused.toFixed(0)} and ${two.toFixed(0)} requests/s`;
  const figure = `${share.toFixed(0)} % (≥ 90) of two healthy nodes: ${rates}`;
  context.report('2 throughput with one standby paused', figure, share >= 90);
  const ofThree = ((100 * paused) / three).toFixed(0);
  context.note(`${ofThree} % of three healthy nodes, which serve ${three.toFixed(0)} requests/s`);
}

/** 3: a commit is visible on all nodes soon. */
export async function visibility(context: ClusterContext): Promise<void> {
  const { cluster, counts, target } = context;
  const client = await connect(cluster.primaryUrl);
  const agents = cluster.nodes.map(() => new Agent({ keepAlive: true, maxSockets: 1 }));
  const after: { ms: number }[] = [];
  for (let at = 0; at < counts.commits; at += 1) {
    const number = await commit(client, renaming(`Visible ${at}`));
    const begun = performance.now();
    await Promise.all(
      cluster.nodes.map(async (node, index) => {
        for (;;) {
          const request = { path: '/v3/prices/nickel?codes=CP-NI-0001' };
          const answer = await send(agents[index] ?? false, targetOf(node, target), request);
          if (numberOf(answer) >= number) return;
        }
      }),
    );
    after.push({ ms: performance.now() - begun });
    await pause(20);
  }
  await client.end();
  for (const agent of agents) agent.destroy();
  const [middle, p99, most] = [0.5, 0.99, 1].map((part) => quantile(after, part)) as number[];
  const usual = `p50 ${ms(middle ?? 0)}, p99 ${ms(p99 ?? 0)} (≤ 50)`;
  const figure = `${usual}, longest ${ms(most ?? 0)} (≤ 1000), ${counts.commits} commits`;
  const isMet = (p99 ?? 0) <= 50 && (most ?? 0) <= 1_000;
  context.report('3 a commit is visible on all nodes', figure, isMet);
}

/** Seconds of CPU that a process has used. */
async function cpuOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Pause of a client in the measurement of CPU: three nodes with their clients fit in two cores. */
const CPU_PAUSE_MS = 100;

/**
 * 4: CPU of the nodes for a request. Each node has the load of eight clients, also if there are
 * three: a node does less for each request the more of them it serves at once. HAProxy distributes
 * them evenly. In rounds, because the speed of the machine varies.
 */
export async function cpuPerRequest(context: ClusterContext): Promise<void> {
  const { cluster, counts } = context;
  const [only] = cluster.nodes as readonly [Node, ...Node[]];
  const measure = async (nodes: readonly Node[]): Promise<number> => {
    const used = async () => {
      const all = await Promise.all(nodes.map(({ program }) => cpuOf(program.pid)));
      return all.reduce((a, b) => a + b, 0);
    };
    await cluster.sendOnlyTo(nodes);
    const clients = CLIENTS * nodes.length;
    const traffic = new Traffic(context.target, { pauseMs: CPU_PAUSE_MS, clients });
    await traffic.reach(Math.round(counts.cpuRequests / 15));
    const [before, from] = [await used(), traffic.seen.requests];
    await traffic.reach(from + counts.cpuRequests / 3);
    const spent = (await used()) - before;
    const requests = traffic.seen.requests - from;
    await traffic.stop();
    return (spent * 1_000) / requests;
  };
  let [three, one] = [0, 0];
  for (let round = 0; round < 3; round += 1) {
    three += (await measure(cluster.nodes)) / 3;
    one += (await measure([only])) / 3;
  }
  await cluster.sendOnlyTo(cluster.nodes);
  await cluster.balanced();
  const ratio = three / one;
  const times = `${three.toFixed(2)} and ${one.toFixed(2)} ms`;
  const figure = `${ratio.toFixed(2)} (≤ 1.10) times that at one: ${times}`;
  context.report('4 CPU per request at three nodes', figure, ratio <= 1.1);
  context.note('not measurable on two cores: the throughput of nodes pinned to cores of their own');
}

/** 7: all nodes are upgraded under load, and the schema is migrated. */
export async function upgrade(context: ClusterContext): Promise<void> {
  const { cluster, counts } = context;
  const folder = await context.nextVersion();
  const seen = await during(context, counts.requests, async () => {
    await context.run(folder, cluster.primaryUrl, 'db', 'migrate');
    for (const node of cluster.nodes) {
      await node.program.end('SIGTERM');
      node.folder = folder;
      await startNode(context, node);
    }
  });
  reportSeen(context, '7 a rolling upgrade with a migration', seen, 1_000);
}

/** 8: the answers of all nodes are equal. */
export async function equalAnswers(context: ClusterContext): Promise<void> {
  const { cluster, counts, target } = context;
  const pool = { query: (text: string) => cluster.servers[0]?.ask(text) } as unknown as pg.Pool;
  const values = await valuesOf({ pool });
  let seed = 20_261_126;
  const random = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed / 2_147_483_648;
  };
  const next = anyRequest(random);
  const agents = cluster.nodes.map(() => new Agent({ keepAlive: true, maxSockets: 1 }));
  let different = 0;
  let answered = 0;
  for (let at = 0; at < counts.random; at += 1) {
    const { slug, ...body } = next(values);
    const request = { path: `/v3/prices/${slug}`, body: JSON.stringify(body) };
    const answers = await Promise.all(
      cluster.nodes.map((node, index) =>
        send(agents[index] ?? false, targetOf(node, target), request),
      ),
    );
    const texts = answers.map(({ status, text, headers }) =>
      [status, headers.etag, text.replace(/"requestId":"[^"]+"/, '')].join('\n'),
    );
    if (new Set(texts).size > 1) {
      different += 1;
      context.note(`differs: ${request.path} ${request.body}`);
    }
    answered += Number(answers[0]?.status === 200);
  }
  for (const agent of agents) agent.destroy();
  const requests = `${count(counts.random)} random requests on three nodes`;
  const figure = `different ${different} of ${requests}, ${count(answered)} of them 200`;
  context.report('8 equal answers', figure, different === 0 && answered > counts.random / 4);
}
