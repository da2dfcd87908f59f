import t from 'tap';
import { type Client, openClient } from '../../src/db/client.ts';
import { noticesOf } from '../../src/db/link/notices.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { hear } from '../support/following.ts';
import { roledDatabase } from '../support/roles.ts';
import { type Listening, listening, until } from '../support/sockets.ts';
import { type Wire, wireTo } from '../support/tcp-proxy.ts';
import { inRevision, insertOf, pointRow, writeWorld } from '../support/world.ts';

type Test = Pick<typeof t, 'teardown'>;

const publish = ({ pool }: TestDatabase, day: number): Promise<number> =>
  inRevision(pool, insertOf('series', pointRow({ date: `'2020-01-01'::date + ${day}` })));

/** A client whose notices come over a wire of their own, and perhaps all else over another. */
function clientOver(test: Test, { url }: TestDatabase, ofNotices: string, timeoutMs: number) {
  const own = openClient({
    url,
    connectionsMax: 4,
    acquireTimeoutMs: 20_000,
    statementTimeoutMs: 0,
    readOnly: false,
    applicationName: 'commodity-prices test',
  });
  const notices = noticesOf({
    connection: () => ({ connectionString: ofNotices, connectionTimeoutMillis: timeoutMs }),
    onError: () => {},
    heartbeatMs: 1_000,
  });
  test.teardown(async () => {
    await notices.close();
    await own.close();
  });
  const client: Client = { ...own, notices };
  return client;
}

interface Scene {
  readonly database: TestDatabase;
  readonly service: Listening;
  readonly client: Client;
  readonly wire: Wire;
  readonly end: string;
}

/** A service whose notices, or with `all` whose every connection, runs over a wire. */
async function scene(test: Test, part: 'notices' | 'all', timeoutMs = 500): Promise<Scene> {
  const database = await testDatabase(test);
  await writeWorld(database.pool);
  const wire = await wireTo(test, database.url);
  const over = part === 'all' ? { ...database, url: wire.url } : database;
  const client = clientOver(test, over, wire.url, timeoutMs);
  // The price book hears of commits as well, and sooner than those who wait.
  const service = await listening(test, { ...database, client }, { PRICE_BOOK_BYTES: '0' });
  const { next } = await hear(service, '');
  return { database, service, client, wire, end: next };
}

const asleep = ({ service }: Scene): Promise<void> =>
  until('it waits', () => service.app.feed.waiting() === 1);

t.test('while notices cannot be heard, who waits looks by himself', async (t) => {
  // Who is let in and never answered has nothing to tell before the time is over.
  const here = await scene(t, 'notices', 60_000);
  const { database, service, client, wire, end } = here;
  wire.freeze();
  const never = hear(service, `after=${end}&wait=25`);
  await until('a connection is being made', () => wire.count() === 1);
  await asleep(here);
  await publish(database, 1);
  const first = await never;
  t.equal(first.changes.length, 1);
  t.ok(first.tookMs < 24_000, `${first.tookMs} ms`);
  t.notOk(client.notices.isHeard('revision'));

  wire.cut(true);
  wire.cut(false);
  const heard = hear(service, `after=${first.next}&wait=25`);
  await until('it listens', () => client.notices.isHeard('revision'));
  await asleep(here);
  wire.cut(true);
  await publish(database, 2);
  t.equal((await heard).changes.length, 1, 'also when they stop while he waits');
});

t.test('what is committed while the ear is deaf is told once it hears again', async (t) => {
  const here = await scene(t, 'notices');
  const { database, service, client, wire, end } = here;
  const waiting = hear(service, `after=${end}&wait=25`);
  await until('it listens', () => client.notices.isHeard('revision'));
  await asleep(here);
  // No connection breaks and no notice comes: only the look whether the line lives finds it out.
  wire.freeze();
  await publish(database, 1);
  const { changes, tookMs } = await waiting;
  t.equal(changes.length, 1);
  t.ok(tookMs < 24_000, `${tookMs} ms`);
});

t.test('a database that goes away and comes back is waited for', async (t) => {
  const here = await scene(t, 'all');
  const { database, service, client, wire, end } = here;
  const waiting = hear(service, `after=${end}&wait=25`);
  await until('it listens', () => client.notices.isHeard('revision'));
  await asleep(here);
  wire.cut(true);
  await publish(database, 1);
  await until('all connections are lost', () => client.pool.totalCount === 0);
  wire.cut(false);
  const { status, changes } = await waiting;
  t.same([status, changes.length], [200, 1]);
});

t.test('a database that stays away is a 503, at once or at the end of the wait', async (t) => {
  await until('it goes away while he waits', async () => {
    const here = await scene(t, 'all');
    const { service, client, wire, end } = here;
    let isOver = false;
    const waiting = hear(service, `after=${end}&wait=8`).finally(() => {
      isOver = true;
    });
    const isAsleep = () => service.app.feed.waiting() === 1 && client.notices.isHeard('revision');
    await until('it waits', () => isOver || isAsleep());
    wire.cut(true);
    const { status, text, headers } = await waiting;
    // Where a machine stalls, the wait may be over before the database has gone.
    if (status === 204) return false;
    t.same([status, JSON.parse(text).code], [503, 'database_unavailable']);
    t.match(headers.get('retry-after'), /^\d+$/);
    const next = await hear(service, `after=${end}&wait=25`);
    t.equal(next.status, 503);
    t.ok(next.tookMs < 24_000, `${next.tookMs} ms`);
    return true;
  });
});

t.test('the account that only reads can follow the feed', async (t) => {
  const roled = await roledDatabase(t);
  await writeWorld(roled.pool);
  const client = roled.as('service');
  const service = await listening(t, { ...roled, client });
  const { next } = await hear(service, '');
  const waiting = hear(service, `after=${next}&wait=25`);
  await until('it listens', () => client.notices.isHeard('revision'));
  await publish(roled, 1);
  t.equal((await waiting).changes.length, 1);
});
