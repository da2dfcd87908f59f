import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import t from 'tap';
import { createKey, revokeKey, rotateKey } from '../../src/auth/keys/keys.ts';
import { RETRY_SECONDS, retryAfterMs } from '../../src/webhooks/schedule.ts';
import { watchWebhooks } from '../../src/webhooks/status.ts';
import {
  addTest,
  addWebhook,
  listWebhooks,
  messageState,
  removeWebhook,
  rotateSecret,
} from '../../src/webhooks/subscriptions.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  pointRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { until } from '../support/http/sockets.ts';
import { LOCAL, senderOn, startReceiver, subscribe, verified } from './support.ts';

const CHANGES = { operations: ['published'] };

async function filled(test: Parameters<typeof testDatabase>[0]): Promise<TestDatabase> {
  const database = await testDatabase(test);
  await writeMinimalData(database.pool);
  return database;
}

let day = 0;

/** Commits one new point. */
async function publish({ pool }: TestDatabase): Promise<void> {
  day += 1;
  const date = new Date(Date.UTC(2024, 0, day)).toISOString().slice(0, 10);
  await inRevision(pool, insertOf('series', pointRow({ date: `'${date}'` })));
}

/** The outcomes of all messages, oldest first. */
async function outcomes({ pool }: TestDatabase): Promise<(string | null)[]> {
  const { rows } = await pool.query('select outcome from webhook_message order by created_at');
  return rows.map(({ outcome }) => outcome);
}

t.test('a message is tried ten times by the schedule, then given up', async (t) => {
  const database = await filled(t);
  let answer = 500;
  const receiver = await startReceiver(t, () => answer);
  const { id } = await subscribe(database, receiver.url, CHANGES);
  const bell = senderOn(t, database);
  await publish(database);
  const waits: number[] = [];
  let lastMs = bell.nowMs;
  await bell.settle();
  while (await bell.advance()) {
    waits.push((bell.nowMs - lastMs) / 1_000);
    lastMs = bell.nowMs;
    await bell.settle();
  }
  t.same([0, ...waits.map(Math.round)], RETRY_SECONDS);
  t.same(RETRY_SECONDS, [0, 5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]);
  t.equal(receiver.received.length, 10);
  t.equal(new Set(receiver.received.map((each) => each.id)).size, 1, 'with one id');
  t.equal(new Set(receiver.received.map((each) => each.text)).size, 1, 'and one body');
  t.same(await outcomes(database), ['failed']);
  t.match(bell.lines.at(-1), { level: 'error', text: /given up/ });
  answer = 204;
  await publish(database);
  await bell.settle();
  t.same(await outcomes(database), ['failed', 'delivered'], 'the next message is sent');
  t.match(await listWebhooks(database.db, id), [{ status: 'active', waiting: 0 }]);
});

t.test('Retry-After delays all messages of the receiver, and of no other', async (t) => {
  const database = await filled(t);
  let answer: number | [number, Record<string, string>] = [503, { 'retry-after': '3600' }];
  const slow = await startReceiver(t, () => answer);
  const other = await startReceiver(t);
  await subscribe(database, slow.url, CHANGES);
  await subscribe(database, other.url, CHANGES);
  const bell = senderOn(t, database);
  const begunMs = bell.nowMs;
  await publish(database);
  await bell.settle();
  await publish(database);
  bell.nowMs += 3_599_000;
  await bell.settle();
  t.same([slow.received.length, other.received.length], [1, 2]);
  answer = 204;
  bell.nowMs = begunMs + 3_600_000;
  await bell.settle();
  t.same([slow.received.length, other.received.length], [3, 2]);
  t.same(new Set(await outcomes(database)), new Set(['delivered']));
});

t.test('Retry-After is seconds or a date, and at most a day', (t) => {
  const nowMs = Date.parse('2026-01-01T00:00:00Z');
  t.equal(retryAfterMs('120', nowMs), 120_000);
  t.equal(retryAfterMs('Thu, 01 Jan 2026 00:02:00 GMT', nowMs), 120_000);
  t.equal(retryAfterMs('Wed, 31 Dec 2025 00:02:00 GMT', nowMs), 0);
  t.equal(retryAfterMs('999999999', nowMs), 86_400_000);
  t.equal(retryAfterMs('soon', nowMs), 0);
  t.equal(retryAfterMs(undefined, nowMs), 0);
  t.end();
});

t.test('410 ends a webhook with all its messages, and redirects are not followed', async (t) => {
  const database = await filled(t);
  const target = await startReceiver(t);
  const moved = await startReceiver(t, () => [307, { location: target.url }]);
  const gone = await startReceiver(t, () => 410);
  const { id } = await subscribe(database, gone.url, CHANGES);
  await subscribe(database, moved.url, CHANGES);
  const bell = senderOn(t, database);
  await publish(database);
  await publish(database);
  await bell.settle();
  t.equal(gone.received.length, 1);
  t.match(await listWebhooks(database.db, id), [{ status: 'disabled', waiting: 0 }]);
  await publish(database);
  await bell.settle();
  t.equal(gone.received.length, 1, 'nothing more is sent');
  t.ok(moved.received.length > 0);
  t.equal(target.received.length, 0);
  await t.rejects(addTest(database.db, id), /disabled/);
});

t.test('during a rotation both secrets verify, afterwards the new one alone', async (t) => {
  const database = await filled(t);
  const { db } = database;
  const receiver = await startReceiver(t);
  const { id, secret: first } = await subscribe(database, receiver.url, CHANGES);
  const bell = senderOn(t, database);
  /** The secrets that verify the next message. */
  const verifying = async (...secrets: readonly string[]): Promise<boolean[]> => {
    await publish(database);
    await bell.settle();
    const message = receiver.received.at(-1);
    if (message === undefined) throw new Error('no message');
    return secrets.map((secret) => {
      try {
        return verified(secret, message) !== undefined;
      } catch {
        return false;
      }
    });
  };
  const { secret: second, oldSecretUntil } = await rotateSecret(db, id, 60_000);
  t.type(oldSecretUntil, 'string');
  t.same(await verifying(first, second), [true, true]);
  const { secret: third } = await rotateSecret(db, id, 60_000);
  bell.nowMs = Date.now() + 1_000;
  t.same(await verifying(first, second, third), [false, true, true], 'at most two');
  bell.nowMs = Date.now() + 61_000;
  t.same(await verifying(second, third), [false, true]);
  const { secret: fourth } = await rotateSecret(db, id, 0);
  bell.nowMs = Date.now() + 1_000;
  t.same(await verifying(third, fourth), [false, true], 'without a grace the old one ends');
});

t.test('the key is checked at each send', async (t) => {
  const database = await filled(t);
  const { db, pool } = database;
  let answer = 500;
  const receiver = await startReceiver(t, () => answer);
  const scopes = ['prices:nickel', 'prices:copper'];
  const { id: key } = await createKey(db, { name: 'a', scopes, expiresAt: null });
  const filter = { markets: null, codes: null, operations: ['published'] };
  const { id } = await addWebhook(db, { ...filter, url: receiver.url, key }, LOCAL);
  const bell = senderOn(t, database);
  const copper = { price_id: "(select id from price where code = 'T-3')" };
  await inRevision(pool, insertOf('series', pointRow()), insertOf('series', pointRow(copper)));
  await bell.settle();
  t.match(receiver.received.at(-1)?.json.data, { codes: ['T-1', 'T-3'], prices: 2 });
  await pool.query("delete from api_key_scope where scope = 'prices:copper'");
  await bell.advance();
  await bell.settle();
  const { data } = receiver.received.at(-1)?.json ?? {};
  t.match(data, { codes: ['T-1'], prices: 1, markets: ['nickel'], counts: { published: 1 } });
  t.notMatch(receiver.received.at(-1)?.text, /copper|T-3/);
  const { id: next } = await rotateKey(db, key, { graceMs: 0, expiresAt: null });
  answer = 204;
  await bell.advance();
  await bell.settle();
  t.same(await outcomes(database), ['delivered'], 'a rotated key stands for its replacement');
  answer = 500;
  await publish(database);
  await bell.settle();
  const sent = receiver.received.length;
  await revokeKey(db, next, 'lost');
  await bell.advance();
  await bell.settle();
  t.equal(receiver.received.length, sent, 'nothing is sent for a revoked key');
  t.same(await outcomes(database), ['delivered', 'refused']);
  await publish(database);
  await bell.settle();
  t.same(await outcomes(database), ['delivered', 'refused'], 'and no message is made');
  t.match(await listWebhooks(db, id), [{ status: 'stopped' }]);
});

t.test('a receiver that never answers delays no other', async (t) => {
  const database = await filled(t);
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  t.teardown(() => {
    silent.closeAllConnections();
    silent.close();
  });
  await until('it listens', () => silent.listening);
  const { port } = silent.address() as AddressInfo;
  for (let each = 0; each < 20; each += 1) {
    await subscribe(database, `http://127.0.0.1:${port}/${each}`, CHANGES);
  }
  const quick = await startReceiver(t);
  await subscribe(database, quick.url, CHANGES);
  const bell = senderOn(t, database, { now: Date.now });
  bell.sender.start();
  await publish(database);
  await until('the first message is there', () => quick.received.length === 1);
  await publish(database);
  await publish(database);
  // While the others wait for an answer.
  await until('the others are there', async () => {
    const ended = (await outcomes(database)).filter((each) => each !== null);
    return ended.join() === 'delivered,delivered,delivered';
  });
  t.equal(quick.received.length, 3);
  const { rows } = await database.pool.query(
    'select count(*)::int as sending from webhook_message where claimed_until > now()',
  );
  t.same(rows, [{ sending: 20 }], 'with one connection for each');
  await bell.sender.stop();
  const { rows: waiting } = await database.pool.query(
    'select distinct attempts, claimed_until from webhook_message where outcome is null',
  );
  t.same(waiting, [{ attempts: 0, claimed_until: null }], 'a stop gives the messages back');
});

/** Answers of receivers that no HTTP server gives, each as the bytes on the connection. */
const ODD_ANSWERS = {
  upgrade: 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
  'a switch without a protocol': 'HTTP/1.1 101 Switching Protocols\r\n\r\n',
  'no HTTP': '220 mail.example ESMTP\r\n',
  'a body without an end': 'HTTP/1.1 500 Error\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\nx',
};

t.test('every answer of a receiver ends its attempt', async (t) => {
  const database = await filled(t);
  for (const [name, answer] of Object.entries(ODD_ANSWERS)) {
    const server = createTcpServer((socket) => {
      socket.on('error', () => {}).once('data', () => socket.write(answer));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => server.close());
    const { port } = server.address() as AddressInfo;
    await subscribe(database, `http://127.0.0.1:${port}/${encodeURIComponent(name)}`, CHANGES);
  }
  const bell = senderOn(t, database);
  await publish(database);
  await bell.sender.round();
  await bell.sender.idle();
  const { rows } = await database.pool.query('select attempts, outcome from webhook_message');
  t.same(rows, Array(4).fill({ attempts: 1, outcome: null }));
});

t.test('any number of receivers that do not answer leave room for the others', async (t) => {
  const database = await filled(t);
  const silent = createTcpServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  t.teardown(() => silent.close());
  const { port } = silent.address() as AddressInfo;
  const { id } = await subscribe(database, `http://127.0.0.1:${port}/`, CHANGES);
  // More than are sent at a time.
  await database.pool.query(
    `insert into webhook (public_id, url, api_key_id, operations, position, failing_since)
      select 'wh_' || lpad(n::text, 10, '0'), url, api_key_id, operations, position, now()
      from webhook, generate_series(1, 150) as n where public_id = $1`,
    [id],
  );
  await publish(database);
  const bell = senderOn(t, database);
  await bell.sender.round();
  const quick = await startReceiver(t);
  await subscribe(database, quick.url, CHANGES);
  await publish(database);
  await bell.sender.round();
  await until('the message is there', () => quick.received.length === 1);
  const { rows } = await database.pool.query(
    `select count(*)::int as sending from webhook_message m join webhook w on w.id = webhook_id
      where claimed_until is not null and failing_since is not null`,
  );
  t.same(rows, [{ sending: 50 }]);
});

t.test('several senders send each message once, and a receiver one at a time', async (t) => {
  const database = await filled(t);
  const most: Record<string, number> = {};
  const receivers = await Promise.all(
    [1, 2, 3].map((name) => {
      let sending = 0;
      return startReceiver(t, async () => {
        sending += 1;
        most[name] = Math.max(most[name] ?? 0, sending);
        // Long enough for another sender to begin.
        await database.pool.query('select pg_sleep(0.02)');
        sending -= 1;
        return 204;
      });
    }),
  );
  for (const { url } of receivers) await subscribe(database, url, CHANGES);
  const bells = [1, 2, 3].map(() => senderOn(t, database, { now: Date.now }));
  for (const { sender } of bells) sender.start();
  for (let each = 0; each < 20; each += 1) await publish(database);
  const ids = () => receivers.flatMap(({ received }) => received.map(({ id }) => id));
  await until('all are there', () => ids().length >= 60);
  await Promise.all(bells.map(({ sender }) => sender.stop()));
  t.equal(ids().length, 60);
  t.equal(new Set(ids()).size, 60);
  t.same(most, { 1: 1, 2: 1, 3: 1 });
});

t.test('a message of a sender that was killed is sent again with the same id', async (t) => {
  const database = await filled(t);
  const receiver = await startReceiver(t);
  await subscribe(database, receiver.url, CHANGES);
  const bell = senderOn(t, database);
  await publish(database);
  await bell.settle();
  // Simulates a process that ends between the answer and its record.
  await database.pool.query(
    `update webhook_message set outcome = null, ended_at = null, attempts = 0,
      claimed_until = $1::timestamptz + interval '30 s'`,
    [new Date(bell.nowMs)],
  );
  await bell.sender.round();
  t.equal(receiver.received.length, 1, 'the claim holds');
  bell.nowMs += 30_000;
  await bell.settle();
  const [first, again, ...others] = receiver.received;
  t.same(others, []);
  t.equal(again?.id, first?.id);
  t.equal(again?.text, first?.text);
});

t.test('a test takes the way of all messages, once', async (t) => {
  const database = await filled(t);
  const { db } = database;
  let answer = 204;
  const receiver = await startReceiver(t, () => answer);
  const { id, secret } = await subscribe(database, receiver.url);
  const bell = senderOn(t, database);
  const test = async () => {
    const message = await addTest(db, id);
    t.match(await messageState(db, message), { outcome: null });
    bell.nowMs = Date.now() + 60_000;
    await bell.settle();
    return await messageState(db, message);
  };
  t.same(await test(), { outcome: 'delivered', result: '204' });
  const [message] = receiver.received;
  t.match(message?.json, { type: 'webhook.test', data: { webhook: id } });
  bell.nowMs = Date.now();
  if (message) t.ok(verified(secret, message));
  answer = 500;
  t.same(await test(), { outcome: 'failed', result: '500' });
  t.equal(await bell.advance(), false);
  await t.rejects(addTest(db, 'wh_0000000000'), /there is no webhook/);
});

t.test('metrics count attempts, and the age of what waits, also without a sender', async (t) => {
  const database = await filled(t);
  const watch = watchWebhooks(database.db);
  const status = async () => {
    await watch.refresh();
    return watch.status();
  };
  t.match(await status(), { pending: 0, oldestSeconds: 0 });
  let answer = 500;
  const receiver = await startReceiver(t, () => answer);
  const { id } = await subscribe(database, receiver.url, CHANGES);
  await publish(database);
  const { pending, oldestSeconds } = await status();
  t.equal(pending, 0);
  t.ok(oldestSeconds > 0, 'a commit that no sender has seen');
  const bell = senderOn(t, database);
  await bell.settle();
  t.match(await status(), { pending: 1, attempts: { failed: 1, delivered: 0 } });
  answer = 204;
  await bell.advance();
  await bell.settle();
  t.match(await status(), { pending: 0, oldestSeconds: 0, attempts: { failed: 1, delivered: 1 } });
  await removeWebhook(database.db, id);
  t.match(await status(), { attempts: { failed: 1, delivered: 1 } }, 'counts never decrease');
});
