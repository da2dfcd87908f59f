import t from 'tap';
import { scopeOf } from '../../src/catalog/scopes.ts';
import { testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  pointRow,
  priceId,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { keyFor, type Service } from '../support/http/service.ts';
import { startListening, until } from '../support/http/sockets.ts';
import { fetchChanges } from '../support/prices/feed-client.ts';
import { pastOf, type WireChange, withoutSeq } from '../support/prices/feed-oracle.ts';
import { get, page, published, readAll } from '../support/prices/feed-pages.ts';

const MARKETS = ['nickel', 'copper'];

/** The points of all prices at a revision, by code and day. Prices without points are codes. */
async function snapshotAt(service: Service, revision?: string): Promise<Map<string, string>> {
  const held = new Map<string, string>();
  for (const market of MARKETS) {
    const options = { includeSeries: true, decimalsAsText: true, ...(revision && { revision }) };
    const { status, json, text } = await service.post(market, { options });
    if (status !== 200) throw new Error(text);
    for (const { code, series } of json.data) {
      held.set(code, 'a price');
      for (const { date, low, mid, high } of series) {
        held.set(`${code} ${date}`, JSON.stringify([low, mid, high]));
      }
    }
  }
  return held;
}

function applied(held: ReadonlyMap<string, string>, changes: readonly WireChange[]) {
  const now = new Map(held);
  for (const { code, date, after } of changes) {
    const key = date === null ? code : `${code} ${date}`;
    if (after === null) now.delete(key);
    else if (date === null) now.set(key, 'a price');
    else now.set(key, JSON.stringify([after['low'], after['mid'], after['high']]));
  }
  return now;
}

const sorted = (held: ReadonlyMap<string, string>) => [...held].map(String).sort();

t.test('a snapshot and the changes after its revision are every later snapshot', async (t) => {
  const { database, service } = await published(t, 31, 40);
  const past = await pastOf(database.pool);
  const { rows } = await database.pool.query(
    'select revision_text(number) as text from revision order by number',
  );
  const revisions = rows.map(({ text }): string => text);
  const newest = sorted(await snapshotAt(service));
  for (const [index, revision] of revisions.entries()) {
    const earlier = new Set(revisions.slice(0, index + 1));
    const changes = await readAll(service, 1 + (index % 9), `revision:${revision}`);
    t.strictSame(
      changes.map(withoutSeq),
      past.filter((each) => !earlier.has(each.revision)),
      'exactly the changes that were committed after it',
    );
    t.same(sorted(applied(await snapshotAt(service, revision), changes)), newest, revision);
  }
  const [first = ''] = revisions;
  const before = `revision:${first.slice(0, 6)}.0`;
  t.strictSame(await readAll(service, 50, before), await readAll(service, 50), 'from the start');
  t.ok(revisions.length > 20);
});

t.test('a revision that an answer of one market names leads to its next changes', async (t) => {
  const { database, service, publisher } = await published(t, 32, 20);
  const key = await keyFor(database, [scopeOf('nickel')]);
  const { json } = await service.post('nickel', {});
  const after = `revision:${json.$metadata.revision}`;
  const read = () => get(service, { after, market: 'nickel' }, { 'x-api-key': key });
  const { json: none } = await read();
  t.same(none.data, []);
  const { next } = await page(service);
  for (let turn = 0; turn < 10; turn += 1) await publisher.transact();
  const { json: some } = await read();
  const { json: expected } = await get(service, { after: next, market: 'nickel' });
  t.same(some, expected);
  t.ok(some.data.length > 0);
});

t.test('latest is an empty page with the position behind all changes', async (t) => {
  const { service, publisher } = await published(t, 33, 10);
  const { next, reply } = await page(service);
  for (const query of [{}, { market: 'copper' }, { limit: 1 }]) {
    const { status, json, headers } = await get(service, { after: 'latest', ...query });
    t.same(
      [status, json],
      [200, { $metadata: { nextSeq: next, hasMore: false, warnings: [] }, data: [] }],
    );
    t.match(headers, {
      'x-next-seq': next,
      'x-data-revision': reply.headers['x-data-revision'],
    });
  }
  t.same((await page(service, { after: 'latest' })).changes, [], 'as NDJSON');
  for (let turn = 0; turn < 10; turn += 1) await publisher.transact();
  const { changes } = await page(service, { after: next });
  t.strictSame(changes, (await readAll(service, 5_000)).slice(-changes.length));
  t.ok(changes.length > 0);
});

t.test('latest and a revision wait for the next change', async (t) => {
  const database = await testDatabase(t);
  await writeMinimalData(database.pool);
  const service = await startListening(t, database);
  for (const day of [0, 1]) {
    const { next, headers } = await fetchChanges(service, '');
    const after = day === 0 ? 'latest' : `revision:${headers.get('x-data-revision')}`;
    const waiting = fetchChanges(service, `after=${after}&wait=25`);
    await until('it waits', () => service.app.feed.waiting() === 1);
    const row = pointRow({ price_id: priceId('T-1'), date: `'2020-01-01'::date + ${day}` });
    await inRevision(database.pool, insertOf('series', row));
    const { changes } = await waiting;
    t.match(changes, [{ code: 'T-1', operation: 'published' }], after);
    t.strictSame(changes, (await fetchChanges(service, `after=${next}`)).changes, 'this one only');
  }
  const { status, next } = await fetchChanges(service, 'after=latest&wait=1');
  t.same([status, next], [204, (await fetchChanges(service, '')).next]);
});

t.test(
  'a revision that is no position, or is not known, is refused with what to send',
  async (t) => {
    const { database, service } = await published(t, 34, 12);
    const { next, reply } = await page(service);
    const newest = reply.headers['x-data-revision'] ?? '';
    const [prefix = '', number] = newest.split('.');
    const epoch = prefix.slice(0, 6);
    // Revisions of reference data make no change of the feed.
    for (let count = 0; count < 100; count += 1) {
      await inRevision(database.pool, `update product set alias = 'Alias ${count}'`);
    }
    const { rows } = await database.pool.query(
      'select revision_text(max(number)) as text from revision',
    );
    for (const text of [newest, rows[0].text]) {
      const { status, json } = await get(service, { after: text });
      t.same([status, json.code], [400, 'validation_failed'], 'no reason to start again');
      t.same(json.errors, [
        {
          pointer: '?after',
          code: 'invalid_format',
          detail: `This is a revision, not a position; send after=revision:${text}`,
        },
      ]);
    }
    const unknown = async (text: string): Promise<string> => {
      const { status, json } = await get(service, { after: `revision:${text}` });
      t.same(
        [status, json.code, json.errors[0].pointer],
        [400, 'unknown_revision', '?after'],
        text,
      );
      return json.detail;
    };
    t.match(
      await unknown(`zzzzzz${prefix.slice(6)}.${number}`),
      /This revision is of another epoch/,
    );
    t.match(await unknown(`${epoch}zzzzzz.${number}`), /lost in a failover; start without after/);
    t.equal(
      await unknown(`${prefix}.9999`),
      `The newest revision is ${rows[0].text}: repeat the request once after five seconds; if it ` +
        'fails again, discard the revision and the data, and start without after',
    );
    await database.pool.query("update service set epoch = 'zyxwvu'");
    await unknown(newest);
    for (const after of ['revision:', 'revision:latest', `revision:revision:${newest}`, 'Latest']) {
      const { status, json } = await get(service, { after });
      t.same([status, json.errors[0].code], [400, 'invalid_format'], after);
      t.match(json.errors[0].detail, 'latest, or revision: and a revision');
    }
    t.equal((await get(service, { after: next })).status, 400, 'of the earlier epoch');
  },
);
