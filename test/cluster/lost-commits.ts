import { type Node, type Server, until } from '../../scripts/cluster.ts';
import { codeOf, type HttpAnswer, send, type Target } from '../support/process/load.ts';
import { type ClusterContext, count, restart, targetOf } from './shared.ts';
import { numberOf } from './traffic.ts';
import { commit, connect, renaming } from './writer.ts';

const PATH = '/v3/prices/nickel?codes=CP-NI-0001';

/** `maximum_lag_on_failover` of deploy/cluster/patroni.yml, in bytes. */
const LAG_MAX = 1_048_576;

/**
 * The primary without synchronous standbys, and a node that reads it. Patroni would promote no
 * standby that lacks more than LAG_MAX, and this loss is forced.
 */
async function alone(context: ClusterContext): Promise<{ primary: Server; own: Target }> {
  const { cluster, target } = context;
  await cluster.configure({ synchronous_mode: false, maximum_lag_on_failover: 1024 * LAG_MAX });
  const primary = await cluster.primary();
  await until('no commit waits', async () => {
    const { rows } = await primary.ask('show synchronous_standby_names');
    return rows[0].synchronous_standby_names === '';
  });
  const node = cluster.nodes[cluster.servers.indexOf(primary)] as Node;
  return { primary, own: targetOf(node, target) };
}

/**
 * Stops the processes that receive WAL on the standbys. Returns a function that ends them: if they
 * continued, they would read the commits that wait in their sockets, and nothing would be lost.
 */
async function cutOff({ cluster }: ClusterContext, primary: Server): Promise<() => void> {
  const pids = await Promise.all(
    cluster.servers
      .filter((each) => each !== primary)
      .map(async (each) => {
        const { rows } = await each.ask('select pid from pg_stat_wal_receiver');
        return Number(rows[0].pid);
      }),
  );
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  return () => {
    for (const pid of pids) {
      process.kill(pid, 'SIGTERM');
      process.kill(pid, 'SIGCONT');
    }
  };
}

/** Bytes of WAL that the best standby lacks. */
async function lagBytes({ cluster }: ClusterContext, primary: Server): Promise<number> {
  const { rows } = await primary.ask('select pg_current_wal_lsn() as lsn');
  const lags = await Promise.all(
    cluster.servers
      .filter((each) => each !== primary)
      .map(async (each) => {
        const text = 'select pg_wal_lsn_diff($1, pg_last_wal_receive_lsn())::text as bytes';
        const answer = await each.ask(text, [rows[0].lsn]);
        return Number(answer.rows[0].bytes);
      }),
  );
  return Math.min(...lags);
}

/** The last position of the feed. */
async function lastPosition(own: Target): Promise<string> {
  let position = '';
  for (;;) {
    const after = position === '' ? '' : `&after=${position}`;
    const feed = await send(false, own, { path: `/v3/changes?limit=5000${after}` });
    position = String(feed.headers['x-next-seq']);
    if (!(JSON.parse(feed.text).data?.length > 0)) return position;
  }
}

/** References of a client to a commit that will be lost. */
interface Held {
  readonly tag: string;
  readonly revision: string;
  readonly cursor: string;
  readonly position: string;
  readonly key: string;
  /** A request that waits for changes during the loss. */
  readonly waiting: Promise<HttpAnswer>;
}

/** Commits on the primary alone, and reads the commit that will be lost. */
async function commitAlone(context: ClusterContext, primary: Server, own: Target): Promise<Held> {
  const client = await connect(primary.url);
  const number = await commit(client, renaming('Lost'));
  await client.end();
  const create = ['keys', 'create', '--name', 'lost', '--scope', 'prices:nickel', '--json'];
  const { key } = JSON.parse(await context.run('', primary.url, ...create)) as { key: string };
  const shows = async () => numberOf(await send(false, own, { path: PATH })) === number;
  await until('the lost commit is shown', shows, 5_000);
  const lost = await send(false, own, { path: PATH });
  const page = await send(false, own, { path: '/v3/prices/nickel?limit=1' });
  const position = await lastPosition(own);
  return {
    tag: String(lost.headers.etag),
    revision: String(lost.headers['x-data-revision']),
    cursor: String(JSON.parse(page.text).$metadata.nextCursor),
    position,
    key,
    waiting: send(false, own, { path: `/v3/changes?wait=25&after=${position}` }),
  };
}

/** The guarantees of a node after the loss, each with true if it holds. */
async function checksOf(target: Target, held: Held): Promise<[string, boolean][]> {
  const { tag, revision, cursor, position, key } = held;
  const through = (path: string, headers: Record<string, string> = {}, own = target) =>
    send(false, own, { path, headers });
  const code = async (path: string, own = target) => codeOf(await through(path, {}, own));
  const followed = await held.waiting;
  const min = await through(PATH, { 'x-min-revision': revision });
  return [
    ['no wait shows the other history', !followed.text.includes('Found')],
    ['no 304 for a lost ETag', (await through(PATH, { 'if-none-match': tag })).status === 200],
    [
      'a lost cursor is unknown',
      (await code(`/v3/prices/nickel?limit=1&cursor=${cursor}`)) === 'invalid_cursor',
    ],
    [
      'a lost feed position is unknown',
      (await code(`/v3/changes?after=${position}`)) === 'unknown_revision',
    ],
    [
      'a lost revision is unknown',
      (await code(`${PATH}&revision=${revision}`)) === 'unknown_revision',
    ],
    [
      'a lost x-min-revision is answered with the newest revision',
      min.status === 200 && min.headers['x-min-revision-unknown'] === revision,
    ],
    [
      'a lost key is not valid',
      (await code(PATH, { port: target.port, key })) === 'invalid_api_key',
    ],
  ];
}

/** 6: after forced lost commits, no reference to them is taken for a reference to new commits. */
export async function lostCommits(context: ClusterContext): Promise<void> {
  const { cluster, target } = context;
  const { primary, own } = await alone(context);
  const resume = await cutOff(context, primary);
  const held = await commitAlone(context, primary, own);
  const lost = await lagBytes(context, primary);
  await primary.kill(true);
  resume();
  await until('another is the primary', async () => (await cluster.primary()) !== primary, 180_000);
  const writer = await connect((await cluster.primary()).url);
  await commit(writer, renaming('Found'));
  await writer.end();
  await cluster.configure({ synchronous_mode: true, maximum_lag_on_failover: LAG_MAX });
  await restart(context, primary);
  await until('the nodes show the new commit', async () => {
    const all = await Promise.all(
      cluster.nodes.map((each) => send(false, targetOf(each, target), { path: PATH })),
    );
    return all.every(({ text }) => text.includes('Found'));
  });
  await cluster.balanced();
  const all = await Promise.all(
    cluster.nodes.map((each) => checksOf(targetOf(each, target), held)),
  );
  const checks = all.flat();
  const wrong = checks.filter(([, holds]) => !holds).map(([name]) => name);
  const holding = `${checks.length - wrong.length} of ${checks.length} hold on three nodes`;
  const figure = `${holding}; lost ${count(Math.round(lost / 1_024))} kB of WAL`;
  context.report('6 lost commits', figure, wrong.length === 0);
  for (const name of wrong) context.note(`does not hold: ${name}`);
}
