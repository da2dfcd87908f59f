import type { LookupFunction } from 'node:net';
import t from 'tap';
import { createKey } from '../../src/auth/keys/keys.ts';
import { mayReach, networksOf } from '../../src/webhooks/receiver.ts';
import { send } from '../../src/webhooks/send.ts';
import { addWebhook } from '../../src/webhooks/subscriptions.ts';
import { testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  pointRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { LOCAL, senderOn, startReceiver, subscribe } from './support.ts';

const NONE = networksOf('');

const REFUSED = [
  ...['127.0.0.1', '127.255.255.254', '0.0.0.0', '10.0.0.1', '172.16.0.1', '192.168.1.1'],
  ...['169.254.169.254', '100.64.0.1', '192.0.0.170', '192.0.2.1', '198.18.0.1', '224.0.0.1'],
  ...['240.0.0.1', '255.255.255.255', '192.88.99.1', '203.0.113.9', '198.51.100.1'],
  ...['::', '::1', 'fe80::1', 'fe80::1%eth0', 'fc00::1', 'fd12::1', 'ff02::1', 'fec0::1'],
  // IPv4 in IPv6: compatible, mapped, translated, NAT64, 6to4, Teredo.
  ...['::127.0.0.1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:a9fe:a9fe', '::ffff:0:7f00:1'],
  ...['64:ff9b::7f00:1', '64:ff9b:1::a9fe:a9fe', '2002:7f00:1::', '2002:a9fe:a9fe::1'],
  ...['2001:0:4136:e378:8000:63bf:3fff:fdd2', '2001:db8::1', '3fff::1', '100::1', '5f00::1'],
  ...['', 'nonsense', 'localhost'],
];

t.test('only public addresses are reached', (t) => {
  for (const address of REFUSED) t.notOk(mayReach(address, NONE), address);
  for (const address of ['8.8.8.8', '93.184.215.14', '2606:4700::6810:84e5', '2a00:1450::1']) {
    t.ok(mayReach(address, NONE), address);
    t.notOk(mayReach(address, NONE, true), `${address} is not reached without TLS`);
  }
  t.ok(mayReach('::ffff:8.8.8.8', NONE), 'a mapped address is judged as itself');
  t.end();
});

t.test('WEBHOOK_NETWORKS allows what it names, and nothing beside it', (t) => {
  const networks = networksOf('10.20.0.0/16,192.168.7.7,fd00:1::/32');
  for (const address of ['10.20.255.1', '192.168.7.7', 'fd00:1::5', '::ffff:10.20.0.1']) {
    t.ok(mayReach(address, networks), address);
    t.ok(mayReach(address, networks, true), `${address} without TLS`);
  }
  for (const address of ['10.21.0.1', '192.168.7.8', 'fd00:2::5', '169.254.169.254']) {
    t.notOk(mayReach(address, networks), address);
  }
  t.end();
});

/** The result of a message to an address; `lookUp` resolves names. */
async function resultOf(url: string, networks = NONE, lookUp?: LookupFunction): Promise<string> {
  const secrets = [`whsec_${Buffer.alloc(32).toString('base64')}`];
  const { signal } = new AbortController();
  const options = { networks, lookUp, nowMs: Date.now(), signal };
  return (await send({ id: 'msg_1', url, body: '{}', secrets }, options)).text;
}

/** A lookup that returns these addresses, one after another. */
const resolving = (...answers: readonly string[][]): LookupFunction => {
  let asked = 0;
  return (_name, _options, callback) => {
    const found = answers[Math.min(asked, answers.length - 1)] ?? [];
    asked += 1;
    callback(
      null,
      found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
};

t.test('an address of this machine or of a cloud is refused in every spelling', async (t) => {
  const { port } = new URL((await startReceiver(t)).url);
  for (const host of [
    ...['127.0.0.1', '127.1', '2130706433', '0x7f.0.0.1', '0177.0.0.1', '[::1]', '0.0.0.0'],
    ...['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[64:ff9b::7f00:1]', '169.254.169.254'],
  ]) {
    t.match(await resultOf(`https://${host}:${port}/`), /is not a public address/, host);
  }
  t.match(await resultOf('https://localhost/'), /is not a public address/);
  t.match(await resultOf('http://8.8.8.8/'), /over https only/);
});

t.test('a name is judged by the address that is used, also when it changes', async (t) => {
  const receiver = await startReceiver(t);
  const { port } = new URL(receiver.url);
  const url = `http://rebinding.test:${port}/`;
  const networks = networksOf('127.0.0.1');
  // Allowed at the first look, and an address of the cloud at the second.
  const rebinding = resolving(['127.0.0.1'], ['169.254.169.254'], ['127.0.0.2']);
  t.equal(await resultOf(url, networks, rebinding), '204');
  t.match(await resultOf(url, networks, rebinding), /no network of WEBHOOK_NETWORKS/);
  t.match(await resultOf(url, networks, rebinding), /no network of WEBHOOK_NETWORKS/);
  t.equal(receiver.received.length, 1);
  const both = resolving(['::ffff:169.254.169.254', '10.0.0.1', '127.0.0.1']);
  t.equal(await resultOf(url, networks, both), '204', 'an allowed address of several is used');
  t.match(await resultOf(url, networks, resolving([])), /no network of WEBHOOK_NETWORKS/);
});

t.test('a refused address waits for the next attempt, and is never connected to', async (t) => {
  const database = await testDatabase(t);
  await writeMinimalData(database.pool);
  const receiver = await startReceiver(t);
  await subscribe(database, receiver.url, { operations: ['published'] });
  const { pool } = database;
  await inRevision(pool, insertOf('series', pointRow()));
  const bell = senderOn(t, database, { networks: networksOf('10.0.0.0/8') });
  await bell.settle();
  t.equal(receiver.received.length, 0);
  const { rows } = await pool.query('select attempts, last_result from webhook_message');
  t.match(rows, [{ attempts: 1, last_result: /127\.0\.0\.1 may be reached over https only/ }]);
});

t.test('add refuses addresses that no message could reach', async (t) => {
  const { db } = await testDatabase(t);
  const { id } = await createKey(db, { name: 'a', scopes: ['prices:nickel'], expiresAt: null });
  const add = (url: string, networks = NONE, key = id, markets: string[] | null = null) =>
    addWebhook(db, { url, key, markets, codes: null, operations: null }, networks);
  for (const [url, why] of [
    ['ftp://example.com/', /an address like/],
    ['nonsense', /an address like/],
    ['https://user:secret@example.com/', /must not name a user/],
    ['http://example.com/', /over https only/],
    ['https://127.0.0.1/', /not a public address/],
    ['https://[::ffff:10.0.0.1]/', /not a public address/],
    [`https://example.com/${'a'.repeat(1_100)}`, /more than 1024/],
  ] as const) {
    await t.rejects(add(url), why, url);
  }
  await t.rejects(add('https://example.com/', NONE, 'unknown000'), /no key with the id/);
  await t.rejects(add('https://example.com/', NONE, id, ['copper']), /may not read copper/);
  const calendar = { name: 'c', scopes: ['prices:*'], expiresAt: null, kind: 'calendar' } as const;
  const token = (await createKey(db, calendar)).id;
  await t.rejects(add('https://example.com/', NONE, token), /calendar token/);
  const codes = Array.from({ length: 50 }, (_, at) => `${'('.repeat(60)}${at}`);
  const long = { url: 'https://example.com/', key: id, markets: null, codes, operations: null };
  await t.rejects(addWebhook(db, long, NONE), /too long for the links/);
  t.match(await add('https://example.com/hook?x=1#y'), { url: 'https://example.com/hook?x=1' });
  t.match(await add('http://127.0.0.1:1/', LOCAL), { status: 'active' });
});
