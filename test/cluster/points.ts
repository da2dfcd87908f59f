import { readFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { type LocalCluster, type Node, type Server, until } from '../../scripts/cluster.ts';
import { openClient } from '../../src/db/client.ts';
import { load } from '../../src/ingest/load/load.ts';
import { anyRequest, valuesOf } from '../support/fuzz/any-request.ts';
import { codeOf, quantile, send, type Target } from '../support/process/load.ts';
import { numberOf, type Seen, Traffic } from './traffic.ts';
import { commit, connect, renaming, Writer } from './writer.ts';

/** What a point needs. */
export interface Given {
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

/** How many requests, commits and failovers a run has. */
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

const count = (value: number): string => value.toLocaleString('en');
const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
const targetOf = ({ port }: Node, { key }: Target): Target => ({ port, key });

/** Starts a node again, and waits until HAProxy uses it. */
async function startNode({ cluster }: Given, node: Node): Promise<void> {
  node.program.start();
  await until(`${node.name} is ready`, node.isReady);
  await cluster.balanced();
}

/** A standby, and the node that reads it first. */
async function standbyWithNode({ cluster }: Given): Promise<{ server: Server; node: Node }> {
  const primary = await cluster.primary();
  const at = cluster.servers.findIndex((each) => each !== primary);
  return { server: cluster.servers[at] as Server, node: cluster.nodes[at] as Node };
}

/** Brings a killed server back as a standby. */
async function restart({ cluster }: Given, server: Server): Promise<void> {
  server.patroni.start();
  await cluster.whole();
}

/** Kills the primary with its Patroni; returns it and the milliseconds until another accepts writes. */
async function failOver({ cluster }: Given): Promise<{ lost: Server; afterMs: number }> {
  const lost = await cluster.primary();
  const begun = performance.now();
  await lost.kill(true);
  await until('another is the primary', async () => (await cluster.primary()) !== lost);
  return { lost, afterMs: performance.now() - begun };
}

function reportSeen(given: Given, name: string, seen: Seen, longestMs: number, more = ''): void {
  const { requests, failed } = seen;
  const isMet = failed.length === 0 && seen.longestMs <= longestMs;
  const figure = `failed ${failed.length} of ${count(requests)}; longest ${ms(seen.longestMs)} (≤ ${longestMs})`;
  given.report(name, `${figure}${more}`, isMet);
  for (const each of failed.slice(0, 3)) given.note(each);
}

/** Runs an event in the midst of so many requests, with a writer. */
async function during(
  given: Given,
  requests: number,
  event: (writer: Writer) => Promise<void>,
): Promise<Seen> {
  const traffic = new Traffic(given.target);
  const writer = new Writer(given.cluster.primaryUrl, 200);
  await traffic.reach(Math.round(requests / 4));
  writer.reset();
  await event(writer);
  await traffic.reach(requests);
  const seen = await traffic.stop();
  await writer.stop();
  return seen;
}

/** 1: no request fails while parts end. */
export async function failures(given: Given): Promise<void> {
  const { cluster, counts } = given;
  const [first] = cluster.nodes as readonly [Node];
  const killed = await during(given, counts.requests, async () => {
    await first.program.end('SIGKILL');
    await pause(1_000);
    await startNode(given, first);
  });
  reportSeen(given, '1 a node is killed', killed, 1_000);
  const stopped = await during(given, counts.requests, async () => {
    await first.program.end('SIGTERM');
    await startNode(given, first);
  });
  reportSeen(given, '1 a node is stopped politely', stopped, 1_000);
  const hung = await during(given, counts.requests, async () => {
    first.program.child?.kill('SIGSTOP');
    await pause(3_000);
    first.program.child?.kill('SIGCONT');
    await cluster.balanced();
  });
  reportSeen(given, '1 a node hangs', hung, 750);
  const { server } = await standbyWithNode(given);
  const without = await during(given, counts.requests, async () => {
    await server.kill(false);
    await cluster.whole();
    await cluster.balanced();
  });
  reportSeen(given, '1 a standby is stopped at once', without, 1_000);
  let writesMs = 0;
  const promoted = await during(given, counts.requests, async (writer) => {
    const { lost } = await failOver(given);
    const { commits } = writer;
    await until('the writer commits', () => writer.commits > commits);
    writesMs = writer.longestGapMs;
    await restart(given, lost);
    await cluster.balanced();
  });
  const more = `; no write for ${ms(writesMs)}`;
  reportSeen(given, '1 the primary is killed and Patroni promotes', promoted, 1_000, more);
  const replaced = await during(given, counts.requests, async () => {
    for (const node of cluster.nodes) {
      await node.program.end('SIGTERM');
      await startNode(given, node);
    }
  });
  reportSeen(given, '1 all nodes are replaced one by one', replaced, 1_000);
}

/** Requests a second of eight clients without pauses. */
async function throughput(given: Given): Promise<number> {
  const traffic = new Traffic(given.target, { isMonotonic: true });
  await pause(1_000);
  const before = traffic.seen.requests;
  const begun = performance.now();
  await pause(given.counts.seconds * 1_000);
  const perSecond = ((traffic.seen.requests - before) * 1_000) / (performance.now() - begun);
  await traffic.stop();
  return perSecond;
}

/** 2: no answer is older than one that the client has seen. */
export async function monotonic(given: Given): Promise<void> {
  const { cluster, counts } = given;
  const writer = new Writer(cluster.primaryUrl, 50);
  const part = Math.ceil(counts.monotonic / 4);
  const phase = async (name: string, event: () => Promise<() => Promise<unknown>>) => {
    const traffic = new Traffic(given.target, { isMonotonic: true });
    const undo = await event();
    await traffic.reach(part);
    const seen = await traffic.stop();
    await undo();
    await cluster.balanced();
    const isMet = seen.older === 0 && seen.failed.length === 0;
    const figure = `older 0 expected, ${seen.older} of ${count(seen.requests)}`;
    given.report(`2 ${name}`, `${figure}; failed ${seen.failed.length}`, isMet);
    for (const each of seen.failed.slice(0, 3)) given.note(each);
  };
  await phase('with x-min-revision, all well', async () => async () => {});
  const { server, node } = await standbyWithNode(given);
  const replay = (what: 'pause' | 'resume') => server.ask(`select pg_wal_replay_${what}()`);
  await phase('one standby paused', async () => {
    await replay('pause');
    return () => replay('resume');
  });
  await phase('one standby 1 s behind', async () => {
    await server.ask("alter system set recovery_min_apply_delay = '1s'");
    await server.ask('select pg_reload_conf()');
    return async () => {
      await server.ask('alter system reset recovery_min_apply_delay');
      await server.ask('select pg_reload_conf()');
    };
  });
  await phase('across a failover', async () => {
    const { lost } = await failOver(given);
    return () => restart(given, lost);
  });
  // Two nodes: that of the standby is stopped.
  await node.program.end('SIGTERM');
  const two = await throughput(given);
  await startNode(given, node);
  const { server: now } = await standbyWithNode(given);
  await now.ask('select pg_wal_replay_pause()');
  const paused = await throughput(given);
  await now.ask('select pg_wal_replay_resume()');
  await writer.stop();
  await cluster.balanced();
  const share = (100 * paused) / two;
  const figure = `${share.toFixed(0)} % (≥ 90) of two healthy nodes: ${paused.toFixed(0)} and ${two.toFixed(0)} requests/s`;
  given.report('2 throughput with one standby paused', figure, share >= 90);
}

/** 3: a commit is visible on all nodes soon. */
export async function visibility(given: Given): Promise<void> {
  const { cluster, counts, target } = given;
  const client = await connect(cluster.primaryUrl);
  const agents = cluster.nodes.map(() => new Agent({ keepAlive: true, maxSockets: 1 }));
  const after: { ms: number }[] = [];
  for (let at = 0; at < counts.commits; at += 1) {
    const number = await commit(client, renaming(`Visible ${at}`));
    const begun = performance.now();
    await Promise.all(
      cluster.nodes.map(async (node, index) => {
        for (;;) {
          const asked = { path: '/v3/prices/nickel?codes=CP-NI-0001' };
          const answer = await send(agents[index] ?? false, targetOf(node, target), asked);
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
  const figure = `p50 ${ms(middle ?? 0)}, p99 ${ms(p99 ?? 0)} (≤ 50), longest ${ms(most ?? 0)} (≤ 1000), ${counts.commits} commits`;
  const isMet = (p99 ?? 0) <= 50 && (most ?? 0) <= 1_000;
  given.report('3 a commit is visible on all nodes', figure, isMet);
}

/** Seconds of CPU that a process has used. */
async function cpuOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** 4: CPU of the nodes for a request. */
export async function cpuPerRequest(given: Given): Promise<void> {
  const { cluster, counts } = given;
  const measure = async (nodes: readonly Node[]): Promise<number> => {
    const used = async () =>
      (await Promise.all(nodes.map(({ program }) => cpuOf(program.pid)))).reduce(
        (a, b) => a + b,
        0,
      );
    const traffic = new Traffic(given.target, { pauseMs: 10 });
    await traffic.reach(Math.round(counts.cpuRequests / 5));
    const [before, from] = [await used(), traffic.seen.requests];
    await traffic.reach(from + counts.cpuRequests);
    const spent = (await used()) - before;
    const requests = traffic.seen.requests - from;
    await traffic.stop();
    return (spent * 1_000) / requests;
  };
  const three = await measure(cluster.nodes);
  const [only, ...others] = cluster.nodes as readonly [Node, ...Node[]];
  for (const { program } of others) await program.end('SIGTERM');
  const one = await measure([only]);
  for (const { program } of others) program.start();
  await cluster.balanced();
  const ratio = three / one;
  const figure = `${ratio.toFixed(2)} (≤ 1.10) times that at one: ${three.toFixed(2)} and ${one.toFixed(2)} ms`;
  given.report('4 CPU per request at three nodes', figure, ratio <= 1.1);
  given.note('not measurable on two cores: the throughput of nodes pinned to cores of their own');
}

/** 5: no load that was reported as confirmed is lost. */
export async function reportedLoads(given: Given): Promise<void> {
  const { cluster, counts } = given;
  const reported: number[] = [];
  const unconfirmed: number[] = [];
  let tried = 0;
  let isOver = false;
  const path = `${cluster.folder}/load.csv`;
  const { writeFile } = await import('node:fs/promises');
  const loading = (async () => {
    while (!isOver) {
      const client = openClient({
        url: cluster.loaderUrl,
        connectionsMax: 2,
        acquireTimeoutMs: 2_000,
        statementTimeoutMs: 0,
        lockTimeoutMs: 10_000,
        readOnly: false,
        applicationName: 'commodity-prices command',
      });
      try {
        for (;;) {
          tried += 1;
          const day = new Date(Date.UTC(1960, 0, tried)).toISOString().slice(0, 10);
          await writeFile(
            path,
            `code,date,low,mid,high,publishedAt\nCP-NI-0001,${day},,${100 + tried},,\n`,
          );
          const report = await load(client, {
            format: 'csv',
            file: path,
            actor: 'test',
            jumpFactor: '5',
            acceptJumps: true,
            confirmation: { standbys: true, timeoutMs: 5_000 },
          });
          if (report.status === 'applied' && report.confirmed) reported.push(report.batch ?? 0);
          else unconfirmed.push(report.batch ?? 0);
          if (isOver) break;
        }
      } catch {
        await pause(100);
      } finally {
        await client.close();
      }
    }
  })();
  let lost = 0;
  const took: number[] = [];
  for (let at = 0; at < counts.failovers; at += 1) {
    const already = reported.length;
    await until('some loads are reported', () => reported.length >= already + 5);
    await pause(Math.random() * 300);
    const { lost: server, afterMs } = await failOver(given);
    took.push(afterMs);
    const upTo = [...reported];
    const { rows } = await (await cluster.primary()).ask(
      'select id::int from load_batch where id = any($1::int[])',
      [upTo],
    );
    const there = new Set((rows as { id: number }[]).map(({ id }) => id));
    const missing = upTo.filter((each) => !there.has(each));
    lost = Math.max(lost, missing.length);
    if (missing.length > 0) given.note(`lost after failover ${at + 1}: batches ${missing.join()}`);
    await restart(given, server);
  }
  isOver = true;
  await loading;
  const longest = (Math.max(...took) / 1_000).toFixed(1);
  const figure = `lost ${lost} of ${count(reported.length)} reported over ${counts.failovers} failovers; not confirmed ${unconfirmed.length}; failover ≤ ${longest} s`;
  given.report('5 reported loads', figure, lost === 0 && reported.length > 0);
}

/** True if a node reads the primary; it may have moved to another server meanwhile. */
async function readsPrimary({ metricsPort }: Node): Promise<boolean> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  return /^prices_standby 0$/m.test(text);
}

/** 6: lost commits, forced, and nothing that clients hold of them is taken for the new ones. */
export async function lostCommits(given: Given): Promise<void> {
  const { cluster, target } = given;
  await cluster.configure({ synchronous_mode: false });
  const primary = await cluster.primary();
  await until('no commit waits', async () => {
    const { rows } = await primary.ask('show synchronous_standby_names');
    return rows[0].synchronous_standby_names === '';
  });
  const node = cluster.nodes[cluster.servers.indexOf(primary)] as Node;
  if (!(await readsPrimary(node))) {
    await node.program.end('SIGTERM');
    await startNode(given, node);
  }
  const own = targetOf(node, target);
  const through = (path: string, headers: Record<string, string> = {}) =>
    send(false, target, { path, headers });
  const before = await send(false, own, { path: '/v3/changes?limit=1' });
  const standbys = cluster.servers.filter((each) => each !== primary);
  // The standbys receive nothing more.
  const receivers = await Promise.all(
    standbys.map(async (each) =>
      Number((await each.ask('select pid from pg_stat_wal_receiver')).rows[0].pid),
    ),
  );
  for (const pid of receivers) process.kill(pid, 'SIGSTOP');
  const client = await connect(primary.url);
  const number = await commit(client, renaming('Lost'));
  const made = await given.run(
    '',
    primary.url,
    ...['keys', 'create', '--name', 'lost'],
    ...['--scope', 'prices:nickel', '--json'],
  );
  const { key } = JSON.parse(made) as { key: string };
  await client.end();
  const path = '/v3/prices/nickel?codes=CP-NI-0001';
  await until(
    'the lost commit is shown',
    async () => numberOf(await send(false, own, { path })) === number,
    5_000,
  );
  const lost = await send(false, own, { path });
  const page = await send(false, own, { path: '/v3/prices/nickel?limit=1' });
  let position = '';
  for (let hasMore = true; hasMore; ) {
    const after = position === '' ? '' : `&after=${position}`;
    const feed = await send(false, own, { path: `/v3/changes?limit=5000${after}` });
    hasMore = JSON.parse(feed.text).data?.length > 0;
    position = String(feed.headers['x-next-seq']);
  }
  const [tag, revision] = [String(lost.headers.etag), String(lost.headers['x-data-revision'])];
  const cursor = String(JSON.parse(page.text).$metadata.nextCursor);
  const checks: [string, boolean][] = [];
  checks.push(['the lost commit was shown', numberOf(lost) === number && before.status === 200]);
  // A follower that waits on the lost history.
  const waiting = send(false, own, { path: `/v3/changes?wait=25&after=${position}` });
  await primary.kill(true);
  for (const pid of receivers) process.kill(pid, 'SIGCONT');
  await until('another is the primary', async () => (await cluster.primary()) !== primary, 180_000);
  const now = await cluster.primary();
  const epoch = async (): Promise<string> =>
    (await now.ask('select epoch from service')).rows[0].epoch;
  const old = revision.slice(0, 6);
  await until(
    'the callback has renewed the epoch',
    async () => (await epoch()) !== old,
    60_000,
  ).then(
    () => checks.push(['the epoch was renewed', true]),
    () => checks.push(['the epoch was renewed', false]),
  );
  const writer = await connect(now.url);
  await commit(writer, renaming('Found'));
  await writer.end();
  await until('the nodes have moved on', async () => {
    const all = await Promise.all(
      cluster.nodes.map((each) => send(false, targetOf(each, target), { path })),
    );
    return all.every(({ text }) => text.includes('Found'));
  });
  const followed = await waiting;
  checks.push(['no wait shows the other history', !followed.text.includes('Found')]);
  for (const [name, holds] of [
    ['no 304 for a lost ETag', (await through(path, { 'if-none-match': tag })).status === 200],
    [
      'a lost cursor is unknown',
      codeOf(await through(`/v3/prices/nickel?limit=1&cursor=${cursor}`)) === 'invalid_cursor',
    ],
    [
      'a lost feed position is unknown',
      codeOf(await through(`/v3/changes?after=${position}`)) === 'unknown_revision',
    ],
    [
      'a lost revision is unknown',
      codeOf(await through(`${path}&revision=${revision}`)) === 'unknown_revision',
    ],
    [
      'a lost x-min-revision is answered with the present state',
      (await through(path, { 'x-min-revision': revision })).headers['x-min-revision-unknown'] ===
        revision,
    ],
    [
      'a lost key is not valid',
      codeOf(await send(false, { port: cluster.port, key }, { path })) === 'invalid_api_key',
    ],
  ] as const) {
    checks.push([name, holds]);
  }
  await cluster.configure({ synchronous_mode: true });
  await restart(given, primary);
  await cluster.balanced();
  const wrong = checks.filter(([, holds]) => !holds).map(([name]) => name);
  const figure = `${checks.length - wrong.length} of ${checks.length} hold`;
  given.report('6 lost commits', figure, wrong.length === 0);
  for (const name of wrong) given.note(`does not hold: ${name}`);
}

/** 7: all nodes are upgraded under load, and the schema is migrated. */
export async function upgrade(given: Given): Promise<void> {
  const { cluster, counts } = given;
  const folder = await given.nextVersion();
  const seen = await during(given, counts.requests, async () => {
    await given.run(folder, cluster.primaryUrl, 'db', 'migrate');
    for (const node of cluster.nodes) {
      await node.program.end('SIGTERM');
      node.folder = folder;
      await startNode(given, node);
    }
  });
  reportSeen(given, '7 a rolling upgrade with a migration', seen, 1_000);
}

/** 8: the answers of all nodes are equal. */
export async function equalAnswers(given: Given): Promise<void> {
  const { cluster, counts, target } = given;
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
    const asked = { path: `/v3/prices/${slug}`, body: JSON.stringify(body) };
    const answers = await Promise.all(
      cluster.nodes.map((node, index) =>
        send(agents[index] ?? false, targetOf(node, target), asked),
      ),
    );
    const texts = answers.map(({ status, text, headers }) =>
      [status, headers.etag, text.replace(/"requestId":"[^"]+"/, '')].join('\n'),
    );
    if (new Set(texts).size > 1) {
      different += 1;
      given.note(`differs: ${asked.path} ${asked.body}`);
    }
    answered += Number(answers[0]?.status === 200);
  }
  for (const agent of agents) agent.destroy();
  const figure = `different ${different} of ${count(counts.random)} random requests on three nodes, ${count(answered)} of them 200`;
  given.report('8 equal answers', figure, different === 0 && answered > counts.random / 4);
}
