import t from 'tap';
import { revokeKey } from '../../../src/auth/keys/keys.ts';
import { type Cluster, ownCluster } from '../../support/database/cluster.ts';
import { inRevision } from '../../support/database/minimal-data.ts';
import { cutOff, standbyOf } from '../../support/database/standby.ts';
import { tcpProxyTo } from '../../support/database/tcp-proxy.ts';
import { keyFor } from '../../support/http/service.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { within } from '../../support/process/figures.ts';
import { agentOf, codeOf, type HttpAnswer, send, type Target } from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';

type Test = typeof t;

const first = await ownCluster(t);
const second = await standbyOf(t, first);
const third = await standbyOf(t, second);
const proxy = await tcpProxyTo(t, first.url);

/** A commit changes a price, a rate and a product, so that every kind of state is lost with it. */
interface Content {
  readonly mid: number;
  readonly rate: number;
  readonly alias: string;
}

const DATE = `(select max(date) from series where price_id = (select id from price
  where code = 'CP-NI-0001'))`;

/** Commits a content; returns the revision text. */
const commit = (writer: Cluster, { mid, rate, alias }: Content): Promise<string> =>
  writer.using(async ({ pool }) => {
    const number = await inRevision(
      pool,
      `update series set low = null, high = null, mid = ${mid}, corrections = corrections + 1
        where price_id = (select id from price where code = 'CP-NI-0001') and date = ${DATE}`,
      `update fx_rate set rate = ${rate}
        where source = 'SAMPLE' and currency_id = (select id from currency where iso = 'USD')`,
      `update product set alias = '${alias}'`,
    );
    const { rows } = await pool.query('select revision_text($1) as text', [number]);
    return rows[0].text;
  });

const START: Content = { mid: 16_000, rate: 1.6, alias: 'Start' };
const A: Content = { mid: 24_000, rate: 2, alias: 'A' };
const B: Content = { mid: 30_000, rate: 1.5, alias: 'B' };

const PATH = '/v3/prices/nickel?codes=CP-NI-0001&includeSeries=true&currency=EUR';

/** The compared parts of an answer: the price in euros and the alias of its product. */
const shownIn = (text: string): string => {
  const [record] = JSON.parse(text).data;
  return `${record.series.at(-1).mid} ${record.product.alias}`;
};

const shownOf = ({ mid, rate, alias }: Content): string => `${mid / rate} ${alias}`;

const revisionOf = ({ headers }: HttpAnswer): string => String(headers['x-data-revision']);

/** An answer to a reader and its request. */
interface ReaderAnswer extends HttpAnswer {
  readonly sentAt: number;
  /** The revision of the sent ETag; null without one. */
  readonly tagOf: string | null;
}

/** Sends requests in a loop, every other one with the previous ETag. */
function readerOf(test: Test, target: Target) {
  const agent = agentOf(test, 1);
  const seen: ReaderAnswer[] = [];
  let isOver = false;
  const run = async (): Promise<void> => {
    let known: { etag: string; revision: string } | null = null;
    for (let round = 0; !isOver; round += 1) {
      const sent: { etag: string; revision: string } | null = round % 2 === 0 ? known : null;
      const headers = sent === null ? {} : { 'if-none-match': sent.etag };
      const sentAt = performance.now();
      const answer = await send(agent, target, { path: PATH, headers });
      seen.push({ ...answer, sentAt, tagOf: sent?.revision ?? null });
      if (answer.status === 200) {
        known = { etag: String(answer.headers.etag), revision: revisionOf(answer) };
      }
    }
  };
  const running = run();
  return {
    seen,
    stop: async (): Promise<void> => {
      isOver = true;
      await running;
    },
  };
}

interface ServiceInstance extends Target {
  readonly name: string;
}

/** Services with and without the price book behind a failover address. */
const instances: ServiceInstance[] = [];

async function start(): Promise<void> {
  if (instances.length > 0) return;
  const on = (url: string, env: Readonly<Record<string, string>>): Promise<ServiceProcess> =>
    first.using((database) =>
      startServiceProcess(t, { ...database, url }, { RUNNING_MAX: '0', ...env }),
    );
  const noBook = { PRICE_BOOK_BYTES: '0' };
  instances.push({ name: 'price book', ...(await on(proxy.url, {})) });
  instances.push({ name: 'database', ...(await on(proxy.url, noBook)) });
}

const eachShows = (what: string, revision: string): Promise<void> =>
  until(`${what} is shown`, async () => {
    const agent = false;
    const answers = await Promise.all(instances.map((each) => send(agent, each, { path: PATH })));
    return answers.every((each) => each.status === 200 && revisionOf(each) === revision);
  });

/** Keys to revoke; the failover loses the last key change. */
async function twoKeys(writer: Cluster) {
  const [lost, revoked] = await writer.using(async (database) => [
    await keyFor(database, ['prices:nickel']),
    await keyFor(database, ['prices:nickel']),
  ]);
  const revoke = (on: Cluster, key = '') =>
    on.using(({ db }) => revokeKey(db, key.split('_')[2] ?? '', 'a test'));
  return { lost, revoked, revoke };
}

type Keys = Awaited<ReturnType<typeof twoKeys>>;

const isRevoked = async (instance: ServiceInstance, key = ''): Promise<boolean> =>
  codeOf(await send(false, { ...instance, key }, { path: PATH })) === 'api_key_revoked';

const eachAnswers = (key = ''): Promise<void> =>
  until('the key is known everywhere', async () => {
    const answers = instances.map((each) => send(false, { ...each, key }, { path: PATH }));
    return (await Promise.all(answers)).every(({ status }) => status === 200);
  });

/**
 * Kills the primary and promotes the standby, which loses commits. The address moves once the
 * revision numbers recur; an earlier revision check would see them decrease.
 */
async function failOver(from: Cluster, to: Cluster): Promise<void> {
  await from.kill();
  await to.query('select pg_promote()');
}

const versionOf = async (server: Cluster): Promise<string> =>
  (await server.query('select keys_version from service')).rows[0].keys_version;

/** Revokes a key under the number of the lost change. */
async function revokeAgain(t: Test, to: Cluster, keys: Keys, version: string): Promise<void> {
  t.not(await versionOf(to), version, 'the change is lost');
  await keys.revoke(to, keys.revoked);
  t.equal(await versionOf(to), version, 'and its number comes back');
}

/** Time from the first answer to the refusal of a key, and the accepted requests until then. */
async function refusalOf(instance: ServiceInstance, key: string) {
  let answeredAt = Number.POSITIVE_INFINITY;
  let believed = 0;
  await until(`${instance.name} refuses it`, async () => {
    const { status, endedAt } = await send(false, instance, { path: PATH });
    if (status === 200) answeredAt = Math.min(answeredAt, endedAt);
    const answer = await send(false, { ...instance, key }, { path: PATH });
    if (answer.status === 200) believed += 1;
    return codeOf(answer) === 'api_key_revoked' && Number.isFinite(answeredAt);
  });
  return { ms: performance.now() - answeredAt, believed };
}

/** Moves the address; measures how each service rejects a key revoked on the new server. */
async function refusalsOn(t: Test, to: Cluster, { lost, revoked = '' }: Keys) {
  proxy.redirectTo(to.url);
  const all = await Promise.all(instances.map((each) => refusalOf(each, revoked)));
  const stillLost = await Promise.all(instances.map((each) => isRevoked(each, lost)));
  t.notOk(stillLost.includes(true), 'lost revisions are unknown');
  const believed = all.reduce((sum, each) => sum + each.believed, 0);
  return {
    'revoked key accepted': within(believed, 0, 'answers'),
    'key rejected after': within(Math.max(...all.map(({ ms }) => ms)), 1_000),
  };
}

/** The feed position of the newest change. */
const endOf = async (writer: Cluster): Promise<string> => {
  const { rows } = await writer.query(`
    select s.epoch || r.commit_id || '.' || (c.first_seq + c.price_changes + c.points - 1) as end
    from service s, change_segment c join revision r on r.number = c.revision
    order by c.first_seq desc limit 1`);
  return rows[0].end;
};

/** References that clients keep: a revision, a cursor and a feed position. */
async function heldOf(writer: Cluster, instance: ServiceInstance) {
  const ask = (path: string, body?: object) =>
    send(false, instance, { path, ...(body ? { body: JSON.stringify(body) } : {}) });
  const walk = await ask('/v3/prices/nickel', { options: { limit: 1 } });
  const { revision, nextCursor: cursor } = JSON.parse(walk.text).$metadata;
  const position = await endOf(writer);
  const { etag } = (await ask(PATH)).headers;
  return { revision, cursor, position, etag: String(etag) };
}

type Held = Awaited<ReturnType<typeof heldOf>>;

/** The answers to each of these references. */
async function answersTo(instance: ServiceInstance, held: Held): Promise<unknown[]> {
  const post = (options: object) =>
    send(false, instance, { path: '/v3/prices/nickel', body: JSON.stringify({ options }) });
  const tag = { 'if-none-match': held.etag };
  const answers = [
    await post({ revision: held.revision }),
    await post({ limit: 1, cursor: held.cursor }),
    await send(false, instance, { path: `/v3/changes?after=${held.position}` }),
    await send(false, instance, { path: PATH, headers: tag }),
  ];
  return answers.map((each) => (each.status === 400 ? codeOf(each) : each.status));
}

const KNOWN = [200, 200, 200, 304];
const UNKNOWN = ['unknown_revision', 'invalid_cursor', 'unknown_revision', 200];

/** Counts wrong contents and wrong 304 answers, by revision. */
function misreadIn(
  seen: readonly ReaderAnswer[],
  contents: ReadonlyMap<string, Content>,
  last: { readonly revision: string; readonly sinceMs: number },
) {
  const counts = { wrong: 0, false304: 0, stale: 0 };
  for (const answer of seen) {
    const { status, text, tagOf, sentAt } = answer;
    if (status !== 200 && status !== 304) continue;
    const revision = revisionOf(answer);
    const content = contents.get(revision);
    if (status === 200 && (!content || shownIn(text) !== shownOf(content))) counts.wrong += 1;
    if (status === 304 && tagOf !== revision) counts.false304 += 1;
    if (sentAt > last.sinceMs && revision !== last.revision) counts.stale += 1;
  }
  return counts;
}

fault(
  'F54',
  'a failover that loses a commit whose number is reused with other content',
  '0 wrong prices, 0 stale answers, 0 false 304; revision, cursor and feed position of the ' +
    'lost commit are unknown, and its key change is lost: the key revoked under the reused ' +
    'number is rejected after ≤ 1 s',
  async (t) => {
    await start();
    const begun = await commit(first, START);
    await eachShows('the start', begun);
    const keys = await twoKeys(first);
    await cutOff(first, second);
    const lost = await commit(first, A);
    await keys.revoke(first, keys.lost);
    await eachShows('what is lost', lost);
    await eachAnswers(keys.revoked);
    const held: Held[] = [];
    for (const each of instances) {
      held.push(await heldOf(first, each));
      t.same(await answersTo(each, held.at(-1) as Held), KNOWN, `${each.name}: while it is there`);
    }
    const version = await versionOf(first);
    const readers = instances.map((each) => readerOf(t, each));
    await until('they read', () => readers.every(({ seen }) => seen.length > 4));
    await failOver(first, second);
    const again = await commit(second, B);
    const sinceMs = performance.now();
    t.equal(again.split('.')[1], lost.split('.')[1], 'the number comes back');
    await revokeAgain(t, second, keys, version);
    const refusals = await refusalsOn(t, second, keys);
    await eachShows('the other content', again);
    await Promise.all(readers.map(({ stop }) => stop()));
    for (const [at, each] of instances.entries()) {
      t.same(await answersTo(each, held[at] as Held), UNKNOWN, each.name);
      const { text } = await send(false, each, {
        path: '/v3/reference/rates?base=EUR&quote=USD&from=2026-01-01',
      });
      t.equal(JSON.parse(text).data.at(-1).rate, '1.5', `${each.name}: the rate`);
    }
    const contents = new Map([
      [begun, START],
      [lost, A],
      [again, B],
    ]);
    const seen = readers.flatMap((each) => each.seen);
    const counts = misreadIn(seen, contents, { revision: again, sinceMs });
    t.same(counts, { wrong: 0, false304: 0, stale: 0 });
    return {
      services: instances.length,
      answers: seen.filter(({ status }) => status === 200 || status === 304).length,
      'rejected meanwhile': seen.filter(({ status }) => status === 503).length,
      'wrong prices': within(counts.wrong, 0, 'answers'),
      'stale answers': within(counts.stale, 0, 'answers'),
      'false 304': within(counts.false304, 0, 'answers'),
      ...refusals,
    };
  },
);

fault(
  'F54b',
  'a failover that loses only a key change, whose number is reused',
  'the key revoked under the reused number is rejected after ≤ 1 s; prices, ETags and cursors ' +
    'remain valid',
  async (t) => {
    const keys = await twoKeys(second);
    await cutOff(second, third);
    await keys.revoke(second, keys.lost);
    await until('all instances refuse the key', async () =>
      (await Promise.all(instances.map((each) => isRevoked(each, keys.lost)))).every(Boolean),
    );
    await eachAnswers(keys.revoked);
    const version = await versionOf(second);
    const held = await Promise.all(instances.map((each) => heldOf(second, each)));
    await failOver(second, third);
    await revokeAgain(t, third, keys, version);
    const refusals = await refusalsOn(t, third, keys);
    for (const [at, each] of instances.entries()) {
      t.same(await answersTo(each, held[at] as Held), KNOWN, `${each.name}: no data were lost`);
    }
    return { services: instances.length, ...refusals };
  },
);
