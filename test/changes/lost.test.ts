import t from 'tap';
import { type Client, openClient } from '../../src/db/client.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  pointRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { roledDatabase } from '../support/database/roles.ts';
import { type TcpProxy, tcpProxyTo } from '../support/database/tcp-proxy.ts';
import { type ListeningService, startListening, until } from '../support/http/sockets.ts';
import { fetchChanges } from '../support/prices/feed-client.ts';

type Test = Pick<typeof t, 'teardown'>;

const publish = ({ pool }: TestDatabase, day: number): Promise<number> =>
  inRevision(pool, insertOf('series', pointRow({ date: `'2020-01-01'::date + ${day}` })));

interface LossScene {
  readonly database: TestDatabase;
  readonly service: ListeningService;
  readonly client: Client;
  readonly proxy: TcpProxy;
  readonly end: string;
}

/** A service behind a database proxy, with a short silence timeout. */
async function scene(test: Test, silenceMs = 20_000): Promise<LossScene> {
  const database = await testDatabase(test);
  await writeMinimalData(database.pool);
  const proxy = await tcpProxyTo(test, database.url);
  const client = openClient({
    url: proxy.url,
    connectionsMax: 4,
    acquireTimeoutMs: 20_000,
    silenceMs,
    statementTimeoutMs: 0,
    readOnly: false,
    applicationName: 'commodity-prices test',
  });
  test.teardown(() => client.close());
  // The price book also receives notifications of commits, before the followers do.
  const service = await startListening(test, { ...database, client }, { PRICE_BOOK_BYTES: '0' });
  const { next } = await fetchChanges(service, '');
  return { database, service, client, proxy, end: next };
}

const asleep = ({ service }: LossScene): Promise<void> =>
  until('the request waits', () => service.app.feed.waiting() === 1);

t.test('a session that listens and is ended is made again, and nothing is missed', async (t) => {
  const here = await scene(t);
  const { database, service, client, end } = here;
  const waiting = fetchChanges(service, `after=${end}&wait=25`);
  await until('the link listens', () => client.link.reportsCommits);
  await asleep(here);
  const ended = database.pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name like '% link'`);
  await Promise.all([ended, publish(database, 1)]);
  const { changes, tookMs } = await waiting;
  t.equal(changes.length, 1);
  t.ok(tookMs < 24_000, `${tookMs} ms`);
});

t.test('commits during an outage of the database are reported once it answers', async (t) => {
  const here = await scene(t, 500);
  const { database, service, client, proxy, end } = here;
  const waiting = fetchChanges(service, `after=${end}&wait=25`);
  await until('the link listens', () => client.link.reportsCommits);
  await asleep(here);
  // No connection breaks and no notification comes: only the next check finds it out.
  proxy.freeze();
  await publish(database, 1);
  await until('the silence is noticed', () => !client.link.reportsCommits);
  proxy.cut(true);
  proxy.cut(false);
  const { changes, tookMs } = await waiting;
  t.equal(changes.length, 1);
  t.ok(tookMs < 24_000, `${tookMs} ms`);
});

t.test('a database that goes away and comes back is waited for', async (t) => {
  const here = await scene(t);
  const { database, service, client, proxy, end } = here;
  const waiting = fetchChanges(service, `after=${end}&wait=25`);
  await until('the link listens', () => client.link.reportsCommits);
  await asleep(here);
  proxy.cut(true);
  await publish(database, 1);
  await until('all connections are lost', () => client.pool.totalCount === 0);
  proxy.cut(false);
  const { status, changes } = await waiting;
  t.same([status, changes.length], [200, 1]);
});

t.test('a database that stays away is a 503, at once or at the end of the wait', async (t) => {
  await until('the database goes away while a request waits', async () => {
    const here = await scene(t);
    const { service, client, proxy, end } = here;
    let isOver = false;
    const waiting = fetchChanges(service, `after=${end}&wait=8`).finally(() => {
      isOver = true;
    });
    const isAsleep = () => service.app.feed.waiting() === 1 && client.link.reportsCommits;
    await until('the request waits', () => isOver || isAsleep());
    proxy.cut(true);
    const { status, text, headers } = await waiting;
    // On a stalled machine the wait may end before the database is down.
    if (status === 204) return false;
    t.same([status, JSON.parse(text).code], [503, 'database_unavailable']);
    t.match(headers.get('retry-after'), /^\d+$/);
    const next = await fetchChanges(service, `after=${end}&wait=25`);
    t.equal(next.status, 503);
    t.ok(next.tookMs < 24_000, `${next.tookMs} ms`);
    return true;
  });
});

t.test('the account that only reads can follow the feed', async (t) => {
  const roled = await roledDatabase(t);
  await writeMinimalData(roled.pool);
  const client = roled.as('service');
  const service = await startListening(t, { ...roled, client });
  const { next } = await fetchChanges(service, '');
  const waiting = fetchChanges(service, `after=${next}&wait=25`);
  await until('the link listens', () => client.link.reportsCommits);
  await publish(roled, 1);
  t.equal((await waiting).changes.length, 1);
});
