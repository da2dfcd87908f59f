import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  pointRow,
  priceId,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { keyFor } from '../support/http/service.ts';
import { type ListeningService, startListening, until } from '../support/http/sockets.ts';
import { type FeedAnswer, fetchChanges, type Source } from '../support/prices/feed-client.ts';

let day = 0;

/** Publishes one point of a price, on a day of its own. */
const publish = ({ pool }: TestDatabase, code = 'T-1'): Promise<number> => {
  day += 1;
  const date = `'2020-01-01'::date + ${day}`;
  return inRevision(pool, insertOf('series', pointRow({ price_id: priceId(code), date })));
};

interface Waiting {
  readonly database: TestDatabase;
  readonly service: ListeningService;
  /** The position behind all that there is. */
  readonly end: string;
}

async function start(test: Pick<typeof t, 'teardown'>, env: Record<string, string> = {}) {
  const database = await testDatabase(test);
  await writeMinimalData(database.pool);
  const service = await startListening(test, database, env);
  const { next } = await fetchChanges(service, '');
  const waiting: Waiting = { database, service, end: next };
  return waiting;
}

/** True if this many requests found no change and wait for one. */
const isAsleep = ({ service, database }: Waiting, requests: number): boolean =>
  service.app.feed.waiting() === requests && isHeard(database);

const asleep = (waiting: Waiting, requests: number): Promise<void> =>
  until(`${requests} wait`, () => isAsleep(waiting, requests));

const isHeard = ({ client }: TestDatabase): boolean => client.link.reportsCommits;

t.test('a waiting request is answered at the first visible change', async (t) => {
  const waiting = await start(t);
  const { service, database, end } = waiting;
  const copper: Source = { ...service, key: await keyFor(database, ['prices:copper']) };
  const both = [
    fetchChanges(service, `after=${end}&wait=25`),
    fetchChanges(copper, `after=${end}&wait=25`),
  ];
  await asleep(waiting, 2);
  await publish(database);
  const all = (await both[0]) as FeedAnswer;
  t.match(all, { status: 200, changes: [{ code: 'T-1', operation: 'published' }] });
  t.ok(all.tookMs < 24_000, `${all.tookMs} ms`);
  await asleep(waiting, 1);
  await publish(database, 'T-3');
  const own = (await both[1]) as FeedAnswer;
  t.match(own.changes, [{ code: 'T-3', market: 'copper' }]);
  t.equal(own.changes.length, 1);
  const again = await fetchChanges(service, `after=${end}&wait=25`);
  t.equal(again.changes.length, 2, 'present changes are returned without a wait');
  t.equal(again.next, own.next);
});

t.test('without a visible change, a 204 names the position to continue from', async (t) => {
  const waiting = await start(t);
  const { service, database, end } = waiting;
  const copper: Source = { ...service, key: await keyFor(database, ['prices:copper']) };
  let next = end;
  // A wait that was over before the commit, as where a machine stalls, is followed by another.
  await until('a change is published while a request waits', async () => {
    let isOver = false;
    const nothing = fetchChanges(copper, `after=${next}&wait=2`).finally(() => {
      isOver = true;
    });
    await until('he waits', () => isOver || isAsleep(waiting, 1));
    const number = await publish(database);
    const { status, headers, text, tookMs, ...heard } = await nothing;
    t.same([status, text], [204, '']);
    t.equal(headers.get('cache-control'), 'no-store');
    t.ok(tookMs > 1_900 && tookMs < 24_000, `${tookMs} ms`);
    next = heard.next;
    return headers.get('x-data-revision')?.endsWith(`.${number}`) === true;
  });
  const all = await fetchChanges(service, `after=${end}`);
  t.equal(next, all.next, 'past what he may not see');
  const now = await fetchChanges(copper, `after=${end}&wait=0`);
  t.same([now.status, now.text, now.next], [200, '', all.next], 'a request without wait gets 200');
});

t.test(
  'a limited number of requests of one credential may wait, and the next is told when to retry',
  async (t) => {
    const waiting = await start(t);
    const { service, database, end } = waiting;
    const leaver = new AbortController();
    const first = fetchChanges(service, `after=${end}&wait=25`);
    const begun = performance.now();
    const second = fetchChanges(service, `after=${end}&wait=20`, leaver.signal);
    await asleep(waiting, 2);
    const third = await fetchChanges(service, `after=${end}&wait=25`);
    t.equal(third.status, 429);
    t.match(JSON.parse(third.text), { code: 'too_many_concurrent_requests' });
    const seconds = Number(third.headers.get('retry-after'));
    const left = 20 - (performance.now() - begun) / 1_000;
    t.ok(
      seconds > left - 1 && seconds <= 20,
      `after ${seconds} s one of them has ended for certain`,
    );
    t.equal(
      (await fetchChanges(service, `after=${end}`)).status,
      200,
      'a request without wait needs no slot',
    );
    const refused = await fetchChanges(service, 'after=nowhere&wait=25');
    t.equal(refused.status, 400);
    const other: Source = { ...service, key: await keyFor(database, ['prices:nickel']) };
    const third2 = fetchChanges(other, `after=${end}&wait=25`);
    await asleep(waiting, 3);
    leaver.abort();
    await t.rejects(second);
    await asleep(waiting, 2);
    const third3 = fetchChanges(service, `after=${end}&wait=25`);
    await asleep(waiting, 3);
    t.equal(
      (await fetchChanges(service, `after=${end}&wait=25`)).status,
      429,
      'and no more than that',
    );
    await publish(database);
    for (const each of await Promise.all([first, third2, third3])) t.equal(each.changes.length, 1);
    const { next } = await fetchChanges(service, `after=${end}`);
    const freed = [1, 1].map((wait) => fetchChanges(service, `after=${next}&wait=${wait}`));
    for (const each of await Promise.all(freed)) t.equal(each.status, 204, 'slots are released');
    t.same(service.failures(), []);
  },
);

/** A reader that follows the feed and obeys Retry-After, until `isOver`. */
async function follow(
  { service, end }: Waiting,
  statuses: number[],
  isOver: () => boolean,
): Promise<void> {
  for (let after = end; !isOver(); ) {
    const { status, headers, next } = await fetchChanges(service, `after=${after}&wait=2`);
    statuses.push(status);
    if (status === 429) await pause(Number(headers.get('retry-after')) * 1_000);
    else after = next;
  }
}

const served = (statuses: readonly number[]): number =>
  statuses.filter((status) => status !== 429).length;

for (const [feed, periodMs] of [
  ['a quiet feed', 0],
  ['a feed whose commits end the waits early', 400],
] as const) {
  t.test(
    `three readers of one credential that obey Retry-After take turns, of ${feed}`,
    async (t) => {
      const waiting = await start(t);
      const statuses: [number[], number[], number[]] = [[], [], []];
      const [first, second, third] = statuses;
      let isOver = false;
      const over = () => isOver;
      const readers = [follow(waiting, first, over), follow(waiting, second, over)];
      await asleep(waiting, 2);
      // Its Retry-After then ends in the middle of the next waits of the others.
      await pause(500);
      readers.push(follow(waiting, third, over));
      const commits =
        periodMs === 0 ? null : setInterval(() => publish(waiting.database), periodMs);
      t.teardown(() => clearInterval(commits ?? undefined));
      await until('the third was refused', async () => third.length > 0);
      t.equal(third[0], 429);
      await until('each had two turns', async () => statuses.every((each) => served(each) >= 2));
      clearInterval(commits ?? undefined);
      isOver = true;
      await Promise.all(readers);
    },
  );
}

t.test('hundreds may wait: they hold no connection, and one read serves them all', async (t) => {
  const waiting = await start(t, { CHANGES_WAITING_MAX: '1000' });
  const { service, database, end } = waiting;
  // It takes connections of its own while it is filled.
  const { book } = service.app;
  await until('the price book is filled', () => book?.counts.builds === MARKETS.length);
  const all = Array.from({ length: 200 }, () => fetchChanges(service, `after=${end}&wait=25`));
  await asleep(waiting, 200);
  t.equal((await fetchChanges(service, '')).status, 200);
  let taken = 0;
  await publish(database);
  database.pool.on('acquire', () => {
    taken += 1;
  });
  const answers = await Promise.all(all);
  t.ok(answers.every(({ changes }) => changes.length === 1));
  t.equal(new Set(answers.map(({ text }) => text)).size, 1);
  t.ok(taken < 20, `${taken} connections were taken for it`);
});

t.test('a waiting request uses no slot of the gate', async (t) => {
  const limits = { RUNNING_MAX: '1', WAITING_MAX: '0', CONCURRENT_MAX: '1' };
  const waiting = await start(t, limits);
  const { service, database, end } = waiting;
  const both = [25, 25].map((wait) => fetchChanges(service, `after=${end}&wait=${wait}`));
  await asleep(waiting, 2);
  t.equal((await fetchChanges(service, `after=${end}`)).status, 200, 'the one slot is free');
  await publish(database);
  for (const each of await Promise.all(both)) t.equal(each.changes.length, 1);
  const busy = await Promise.all([1, 2, 3, 4, 5, 6].map(() => fetchChanges(service, '')));
  t.ok(
    busy.some(({ status }) => status === 429 || status === 503),
    'requests without wait are among them',
  );
});

t.test('a stop answers every waiting follower at once', async (t) => {
  const waiting = await start(t, { CHANGES_WAITING_MAX: '50' });
  const { service, end } = waiting;
  const all = Array.from({ length: 20 }, () => fetchChanges(service, `after=${end}&wait=25`));
  await asleep(waiting, 20);
  const startedAt = Date.now();
  await service.app.close();
  t.ok(Date.now() - startedAt < 24_000, `${Date.now() - startedAt} ms`);
  for (const { status, next, headers } of await Promise.all(all)) {
    t.same([status, next, headers.get('connection')], [204, end, 'close']);
  }
  t.same(service.failures(), []);
  t.equal(service.app.feed.waiting(), 0, 'no request waits any more');
});

t.test('a waiting connection may be silent for longer than a reader may stall', async (t) => {
  const waiting = await start(t, { STALL_TIMEOUT_MS: '2000', KEEP_ALIVE_TIMEOUT_MS: '3000' });
  const { service, end } = waiting;
  // A database that is as slow to answer as a reader may stall would end it as well.
  await until('the request is answered', async () => {
    const answer = await fetchChanges(service, `after=${end}&wait=5`).catch(() => null);
    return answer?.status === 204;
  });
});
