import t from 'tap';
import type { Scope } from '../../src/catalog/scopes.ts';
import { bodyOf, changedContent } from '../../src/webhooks/message.ts';
import { loadCalendarText } from '../ingest/calendar/support.ts';
import { describePrices, loadingDatabase, loadText, points } from '../ingest/support/loading.ts';
import { seededDatabase, testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  pointRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { serviceOn } from '../support/http/service.ts';
import { changesOf } from '../support/prices/feed-oracle.ts';
import { page } from '../support/prices/feed-pages.ts';
import { publisherOn } from '../support/prices/random-commits.ts';
import {
  type Received,
  type Receiver,
  senderOn,
  startReceiver,
  subscribe,
  verified,
} from './support.ts';

/** The messages about commits: prices of the past are late too. */
const changesIn = ({ received }: Receiver): Received[] =>
  received.filter(({ json }) => json.type === 'prices.changed');

/** The path and the query of a link of a message. */
const pathOf = (link: string): string => link.replace('http://prices.test', '');

t.test('a load of 5,000 points is one small message, whose link reads exactly these', async (t) => {
  const database = await loadingDatabase(t);
  const codes = Array.from({ length: 100 }, (_, at) => `XX-${at}`);
  await describePrices(database.client, ...codes);
  const service = await serviceOn(t, database);
  const receiver = await startReceiver(t);
  await subscribe(database, receiver.url);
  const bell = senderOn(t, database);
  const rows = codes.flatMap((code) =>
    Array.from({ length: 50 }, (_, at) => {
      const day = new Date(Date.UTC(2025, 0, 1 + at)).toISOString().slice(0, 10);
      return `${code},${day},,10,,`;
    }),
  );
  t.match(await loadText(t, database.client, 'csv', points(...rows)), { status: 'applied' });
  await bell.settle();
  const [message, ...others] = changesIn(receiver);
  t.same(others, []);
  const { text = '', json } = message ?? {};
  t.ok(text.length < 20_000, `${text.length} bytes`);
  const { data } = json;
  t.match(data, { counts: { published: 5_000 }, prices: 100, markets: ['aluminium'] });
  t.equal(data.codes.length, 50);
  const reply = await service.request({
    method: 'GET',
    url: `${pathOf(data.changes)}&limit=5000`,
    headers: { accept: 'application/x-ndjson' },
  });
  const changes = changesOf(reply.text);
  t.equal(changes.length, 5_000);
  t.same([changes[0]?.seq, changes.at(-1)?.seq], [data.fromSeq, data.toSeq]);
  await bell.settle();
  t.equal(changesIn(receiver).length, 1, 'and no other');
});

t.test('each commit is one message, whose counts are those of the feed', async (t) => {
  const database = await testDatabase(t);
  await writeMinimalData(database.pool);
  const receiver = await startReceiver(t);
  await subscribe(database, receiver.url);
  const publisher = await publisherOn(database.pool, 11);
  for (let turn = 0; turn < 40; turn += 1) await publisher.transact();
  const bell = senderOn(t, database);
  await bell.settle();
  const service = await serviceOn(t, database);
  const revisions = [...new Set(publisher.changes.map(({ revision }) => revision))];
  // The commit before the subscription has none.
  t.equal(changesIn(receiver).length, revisions.length - 1);
  for (const { json } of changesIn(receiver)) {
    const { fromSeq, toSeq, revision, counts, changes: link } = json.data;
    const query = Object.fromEntries(new URL(link).searchParams);
    const { changes } = await page(service, { after: String(query['after']), limit: 1_000 });
    const own = changes.filter((each) => each.revision === revision);
    t.same([own[0]?.seq, own.at(-1)?.seq], [fromSeq, toSeq]);
    const counted = Map.groupBy(own, ({ operation }) => operation);
    t.same(counts, Object.fromEntries([...counted].map(([name, all]) => [name, all.length])));
  }
});

t.test('a filter and the scopes of the key select markets, codes and operations', async (t) => {
  const database = await testDatabase(t);
  const { pool } = database;
  await writeMinimalData(pool);
  const receiver = await startReceiver(t);
  const all: readonly Scope[] = ['prices:*'];
  const subscriptions = {
    all: await subscribe(database, receiver.url),
    copper: await subscribe(database, receiver.url, { markets: ['copper'] }),
    code: await subscribe(database, receiver.url, { codes: ['t-1'] }),
    corrected: await subscribe(database, receiver.url, { operations: ['corrected'] }, all),
    nickel: await subscribe(database, receiver.url, {}, ['prices:nickel']),
  };
  const bell = senderOn(t, database);
  /** The names of the subscriptions that got a message since the last call. */
  const rung = async (): Promise<string[]> => {
    await bell.settle();
    const ids = changesIn(receiver).map(({ json }) => json.data.webhook);
    receiver.received.length = 0;
    return Object.entries(subscriptions)
      .filter(([, { id }]) => ids.includes(id))
      .map(([name]) => name);
  };
  await inRevision(pool, insertOf('series', pointRow()));
  t.same(await rung(), ['all', 'code', 'nickel']);
  const copper = { price_id: "(select id from price where code = 'T-3')" };
  await inRevision(pool, insertOf('series', pointRow(copper)));
  t.same(await rung(), ['all', 'copper']);
  await inRevision(
    pool,
    `update series set mid = 11, corrections = 1
      where price_id = (select id from price where code = 'T-1')`,
  );
  t.same(await rung(), ['all', 'code', 'corrected', 'nickel']);
  await inRevision(pool, "update currency set symbol = '€' where iso = 'USD'");
  t.same(await rung(), [], 'a commit without a change of a price rings nowhere');
});

t.test('the verifier of the library accepts a message, and no other byte or time', async (t) => {
  const database = await testDatabase(t);
  await writeMinimalData(database.pool);
  const receiver = await startReceiver(t);
  const { secret } = await subscribe(database, receiver.url);
  const bell = senderOn(t, database);
  await inRevision(database.pool, insertOf('series', pointRow()));
  await bell.settle();
  const [message] = changesIn(receiver);
  if (message === undefined) throw new Error('no message');
  t.same(verified(secret, message), message.json);
  t.match(message.headers, { 'content-type': 'application/json', 'webhook-id': /^msg_[\w-]{36}$/ });
  for (let at = 0; at < message.text.length; at += 7) {
    const changed = String.fromCharCode(message.text.charCodeAt(at) ^ 1);
    const text = message.text.slice(0, at) + changed + message.text.slice(at + 1);
    t.throws(() => verified(secret, { ...message, text }), /No matching signature/);
  }
  for (const name of ['webhook-id', 'webhook-timestamp'] as const) {
    const other = { ...message.headers, [name]: `${message.headers[name]}`.replace(/.$/, '_') };
    t.throws(() => verified(secret, { ...message, headers: other }));
  }
  // An old message, as a recorded one that is sent again.
  bell.nowMs = Date.now() - 301_000;
  await inRevision(database.pool, 'update series set mid = 11, corrections = 1');
  await bell.settle();
  const old = changesIn(receiver).at(-1);
  if (old === undefined || old === message) throw new Error('no second message');
  t.throws(() => verified(secret, old), /too old/);
});

t.test('the largest message has less than 20 KB', (t) => {
  const code = (at: number): string => `${'%'.repeat(60)}${String(at).padStart(4, '0')}`;
  const prices = Array.from({ length: 2_000 }, (_, at) => ({
    ...{ market: at % 2 ? 'nickel' : 'lithium-ion-battery', code: code(at) },
    ...{ first: '999999999999999', last: '999999999999999' },
    counts: { published: 9e9, corrected: 9e9, withdrawn: 9e9, 'price-changed': 1 },
  }));
  const filter = {
    markets: ['nickel', 'lithium-ion-battery'],
    codes: Array.from({ length: 50 }, (_, at) => `${'C'.repeat(62)}${10 + at}`),
    operations: ['published', 'corrected', 'withdrawn', 'price-changed'],
  };
  const revision = '999999999999999.abcdefghijkl';
  const commit = {
    revision,
    previous: revision,
    recordedAt: '2026-01-01T00:00:00.000000Z',
    prices,
  };
  const scopes = new Set(['prices:*']);
  const content = changedContent(commit, { ...filter, codes: null }, scopes);
  if (content === null) throw new Error('no content');
  const sight = {
    ...{ webhook: 'wh_0123456789', filter, scopes, epoch: 'abcdef' },
    publicUrl: `https://${'prices.'.repeat(30)}example.com`,
  };
  const body = bodyOf({ id: 'x', type: 'prices.changed', content }, sight);
  t.ok(Buffer.byteLength(body ?? '') < 20_000, `${body?.length} bytes`);
  const { changes, codes } = JSON.parse(body ?? '').data;
  t.equal(codes.length, 50);
  t.ok(changes.length > 3_500 && changes.length < 8_000, 'and a link that the service takes');
  t.end();
});

const CALENDAR = `holidays:
  london:
    source: a test
    from: 2020-01-01
    until: 2029-12-31
    days: {}
calendars:
  weekly:
    rule: { weekly: [friday] }
    at: 16:00
    zone: Europe/London
    holidays: london
    policy: nearest
prices:
  XX-1: weekly
  XX-2: weekly
`;

t.test('a price that becomes late rings once, until another day is missing', async (t) => {
  const database = await loadingDatabase(t);
  const { client } = database;
  await describePrices(client, 'XX-1', 'XX-2');
  await loadText(t, client, 'csv', points('XX-1,2025-12-12,,10,,', 'XX-2,2025-12-12,,10,,'));
  await loadCalendarText(t, client, CALENDAR);
  const receiver = await startReceiver(t);
  await subscribe(database, receiver.url, { operations: ['late'] });
  await subscribe(database, receiver.url, { operations: ['published'], codes: ['XX-9'] });
  const bell = senderOn(t, database);
  /** Returns the late prices of the messages since the last call. */
  const late = async (now: string) => {
    bell.nowMs = Date.parse(now);
    await database.pool.query('update webhook_message set due_at = to_timestamp(0)');
    await bell.settle();
    return receiver.received.splice(0).map(({ json }) => ({
      type: json.type,
      codes: json.data.late.map(
        (each: { code: string; day: string }) => `${each.code} ${each.day}`,
      ),
    }));
  };
  t.same(await late('2025-12-19T17:00:00Z'), [], 'the grace is not over');
  t.same(await late('2025-12-19T17:01:01Z'), [
    { type: 'price.late', codes: ['XX-1 2025-12-19', 'XX-2 2025-12-19'] },
  ]);
  t.same(await late('2025-12-20T17:00:00Z'), [], 'once');
  await loadText(t, client, 'csv', points('XX-1,2025-12-19,,10,,'));
  t.same(await late('2025-12-26T17:02:00Z'), [{ type: 'price.late', codes: ['XX-1 2025-12-26'] }]);
});

t.test('late messages link to the due days of the prices', async (t) => {
  const database = await seededDatabase(t);
  const service = await serviceOn(t, database);
  const content = {
    recordedAt: '2026-01-01T00:00:00Z',
    markets: [
      {
        ...{ market: 'nickel', prices: 1 },
        late: [
          {
            ...{ market: 'nickel', code: 'CP-NI-0001', by: 'calendar' as const },
            ...{ day: '2026-07-01', since: '2026-07-01T17:00:00Z' },
          },
        ],
      },
    ],
  };
  const body = bodyOf(
    { id: 'x', type: 'price.late', content },
    {
      webhook: 'wh_0123456789',
      filter: { markets: null, codes: ['CP-NI-0001'], operations: null },
      ...{ scopes: new Set(['prices:*']), epoch: 'abcdef', publicUrl: 'http://prices.test' },
    },
  );
  const link = pathOf(JSON.parse(body ?? '').data.calendar);
  const { status, json } = await service.request({ method: 'GET', url: link });
  t.equal(status, 200);
  t.same(
    json.data.map(({ code }: { code: string }) => code),
    ['CP-NI-0001'],
  );
});
