import t from 'tap';
import { randomOf } from '../conversion/support.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  OF_COPPER,
  priceRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { type Service, serviceOn } from '../support/http/service.ts';
import type { WireChange } from '../support/prices/feed-oracle.ts';
import { get, page, readAll } from '../support/prices/feed-pages.ts';

const COMMITS = 10_000;
const CODES = ['S-1', 'S-2', 'S-3', 'S-4'];

/** Random commits in one session, each with what it changes in a table of its own. */
const PUBLISH = `
do $$
declare
  changed_price integer;
  day date;
begin
  perform setseed(0.42);
  for turn in 1..${COMMITS} loop
    perform open_revision('random');
    for step in 0..floor(random() * 3)::integer loop
      select id into changed_price from price where code like 'S-%'
        order by random() limit 1;
      day := date '2026-01-01' + floor(random() * 40)::integer;
      continue when exists (select from expected where revision = current_revision()
        and price_id = changed_price and date = day);
      if not exists (select from series where price_id = changed_price and date = day) then
        insert into series (price_id, date, mid, published_at)
          values (changed_price, day, turn, '2026-03-01Z');
        insert into expected values (current_revision(), changed_price, day, 'published');
      elsif random() < 0.3 then
        delete from series where price_id = changed_price and date = day;
        insert into expected values (current_revision(), changed_price, day, 'withdrawn');
      else
        update series set mid = turn, corrections = corrections + 1
          where price_id = changed_price and date = day;
        insert into expected values (current_revision(), changed_price, day, 'corrected');
      end if;
    end loop;
    if random() < 0.05 then
      update price set name = 'Name ' || turn where id = changed_price;
      insert into expected values (current_revision(), changed_price, null, 'price-changed');
    end if;
    commit;
  end loop;
end $$`;

/** The expected changes in the order of the feed, with the times of their commits. */
const EXPECTED = `
  select p.code, e.date::text, e.operation,
    to_char(r.committed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at
  from expected e join price p on p.id = e.price_id join revision r on r.number = e.revision
  order by e.revision, e.price_id, e.date nulls first`;

interface ExpectedChange {
  readonly code: string;
  readonly date: string | null;
  readonly operation: string;
  readonly at: string;
}

let database: TestDatabase;
let service: Service;
let expected: readonly ExpectedChange[] = [];

t.before(async () => {
  database = await testDatabase(t);
  const { pool } = database;
  await writeMinimalData(pool);
  for (const [index, code] of CODES.entries()) {
    await inRevision(pool, insertOf('price', priceRow(code, index % 2 === 0 ? {} : OF_COPPER)));
  }
  await pool.query(`create table expected
    (revision bigint, price_id integer, date date, operation text);
    create index on expected (revision)`);
  await pool.query(PUBLISH);
  expected = (await pool.query<ExpectedChange>(EXPECTED)).rows;
  service = await serviceOn(t, database);
});

const shown = ({ code, date, operation }: WireChange | ExpectedChange) =>
  `${operation} ${code} ${date}`;

/** Changes as lines, which are compared much faster than objects. */
const linesOf = (changes: readonly WireChange[]): string =>
  changes.map((each) => JSON.stringify(each)).join('\n');

/** The changes of a request, page by page while there are more. */
async function changesFrom(query: string, limit: number): Promise<WireChange[]> {
  const found: WireChange[] = [];
  let more = query;
  for (;;) {
    const { changes, reply, next } = await page(service, { limit }, more);
    found.push(...changes);
    if (reply.headers['x-has-more'] === 'false') return found;
    more = `${query.replace(/since=[^&]*/, '')}&after=${next}`;
  }
}

t.test(`since on ${COMMITS} random commits loses no change, and adds none`, async (t) => {
  const random = randomOf(7);
  const first = expected[0]?.at ?? '';
  const last = expected.at(-1)?.at ?? '';
  const whole = await changesFrom(`since=${first}`, 5_000);
  const texts = (changes: readonly (WireChange | ExpectedChange)[]) =>
    changes.map(shown).join('\n');
  t.equal(texts(whole), texts(expected), 'from the first commit on');
  for (let turn = 0; turn < 200; turn += 1) {
    const at = expected[Math.floor(random() * expected.length)]?.at ?? '';
    // Exactly at a commit, a part of a microsecond after it, or a microsecond and more later.
    const digits = ['', '000', '0004', '9999'][turn % 4] ?? '';
    const since = at.replace('Z', `${digits}Z`);
    const isLater = Number(digits) > 0;
    const place = expected.findIndex((each) => (isLater ? each.at > at : each.at >= at));
    const wanted = place < 0 ? [] : expected.slice(place, place + 20);
    const { changes } = await page(service, { since, limit: 20 });
    t.strictSame(changes.map(shown), wanted.map(shown), since);
  }
  const none = await page(service, { since: last.replace('Z', '9Z') });
  t.same(none.changes, [], 'after the last commit');
  const inUtc = await page(service, { since: `${first.slice(0, 19)}Z` });
  const zoned = new Date(Date.parse(first) + 3_600_000).toISOString().slice(0, 19);
  const inZone = await page(service, { since: `${zoned}%2B01:00` });
  t.strictSame(inZone.changes, inUtc.changes, 'with an offset');
  const beginning = await page(service, { since: '0001-01-01T00:00:00Z', limit: 1 });
  t.same(beginning.changes[0]?.operation, 'price-added', 'before the first: the beginning');
});

t.test('an instant and its position continue alike, and both name the same page', async (t) => {
  const at = expected[Math.floor(expected.length / 2)]?.at ?? '';
  const one = await page(service, { since: at, limit: 7 });
  const rest = await readAll(service, 1_000, one.next);
  const whole = await changesFrom(`since=${at}`, 1_000);
  t.equal(linesOf([...one.changes, ...rest]), linesOf(whole));
});

t.test(
  'codes, operations and markets together are the feed without all other changes',
  async (t) => {
    const all = await readAll(service, 5_000);
    const random = randomOf(11);
    const some = <T>(list: readonly T[]): T[] => list.filter(() => random() < 0.4);
    const kinds = ['price-added', 'price-changed', 'published', 'corrected', 'withdrawn'];
    for (let turn = 0; turn < 40; turn += 1) {
      const [markets, codes, operations] = [some(['nickel', 'copper']), some(CODES), some(kinds)];
      const start = all[Math.floor(random() ** 0.3 * all.length)];
      const query = [
        ...markets.map((each) => `market=${each}`),
        // Codes ignore case.
        ...codes.map((each) => `codes=${turn % 2 === 0 ? each : each.toLowerCase()}`),
        ...operations.map((each) => `operations=${each}`),
      ].join('&');
      const rest = all.slice(all.indexOf(start as WireChange));
      const wanted = rest.filter(
        (each) =>
          (markets.length === 0 || markets.includes(each.market)) &&
          (codes.length === 0 || codes.includes(each.code)) &&
          (operations.length === 0 || operations.includes(each.operation)),
      );
      const limit = [2 + Math.ceil(wanted.length / 20), 400, 5_000][turn % 3] ?? 1;
      const found = await changesFrom(`${query}&since=${start?.recordedAt}`, limit);
      const ofCommit = wanted.filter(({ recordedAt }) => recordedAt !== start?.recordedAt);
      const later = found.filter(({ recordedAt }) => recordedAt !== start?.recordedAt);
      t.equal(linesOf(later), linesOf(ofCommit), query);
      // `start` may lie within its commit, which `since` includes as a whole.
      t.ok(found.length - later.length >= wanted.length - ofCommit.length, `${query}: its commit`);
    }
  },
);

t.test('a code that no price has is reported, and matches nothing', async (t) => {
  const none = await get(service, { codes: 'S-9' });
  t.match(none.json, {
    $metadata: {
      hasMore: false,
      warnings: [{ code: 'unmatched_value', pointer: '?codes/0', suggestions: [] }],
    },
    data: [],
  });
  const elsewhere = await get(service, { market: 'nickel', codes: 's-2', limit: 1 });
  t.match(elsewhere.json.$metadata.warnings[0].detail, /"s-2" is a code of copper; ask market=/);
  t.same(elsewhere.json.data, []);
  const lines = await get(service, { codes: 'S-9' }, { accept: 'application/x-ndjson' });
  t.same([lines.headers['x-warnings-count'], lines.text], ['1', '']);
});

t.test('the CSV has a row for each change, with the same values as the JSON', async (t) => {
  const query = { since: expected[50]?.at ?? '', limit: 300 };
  const { json, headers } = await get(service, query);
  const csv = await get(service, query, { accept: 'text/csv' });
  t.match(csv.headers['content-type'], /^text\/csv/);
  t.equal(csv.headers['x-next-seq'], headers['x-next-seq']);
  const [head = '', ...rows] = csv.text.split('\r\n');
  t.equal(
    head,
    'seq,recordedAt,operation,market,code,date,revision,' +
      'beforeLow,beforeMid,beforeHigh,beforePublishedAt,beforeCorrections,' +
      'afterLow,afterMid,afterHigh,afterPublishedAt,afterCorrections,beforePrice,afterPrice',
  );
  t.equal(rows.pop(), '', 'the last row ends too');
  t.equal(rows.length, json.data.length);
  const cellOf = (value: unknown) => (value === null || value === undefined ? '' : String(value));
  const priceCell = (value: unknown) =>
    value === null ? '' : `"${JSON.stringify(value).replaceAll('"', '""')}"`;
  for (const [index, change] of json.data.entries()) {
    const { before, after, ...members } = change;
    const isPrice = change.date === null;
    const names = ['low', 'mid', 'high', 'publishedAt', 'corrections'];
    const sides = [before, after].flatMap((side) =>
      names.map((name) => (isPrice ? '' : cellOf(side?.[name]))),
    );
    const prices = isPrice ? [priceCell(before), priceCell(after)] : ['', ''];
    const { seq, recordedAt, operation, market, code, date, revision } = members;
    const own = [seq, recordedAt, operation, market, code, cellOf(date), revision];
    t.equal(rows[index], [...own, ...sides, ...prices].join(','));
  }
  const empty = await get(service, { after: 'latest' }, { accept: 'text/csv' });
  t.equal(empty.text, `${head}\r\n`, 'without changes: the names of the columns');
});

t.test('a wait for corrections ends with the first correction only', async (t) => {
  const { next } = await page(service, { after: 'latest' });
  const waiting = page(service, { after: next, operations: 'corrected', wait: 20 });
  const point = (mid: number) => `insert into series (price_id, date, mid, published_at)
    select id, '2025-12-01', ${mid}, '2026-03-01Z' from price where code = 'S-1'
    on conflict (price_id, date) do update set mid = excluded.mid, corrections = 1`;
  await inRevision(database.pool, point(1));
  await inRevision(database.pool, point(2));
  const { changes } = await waiting;
  t.same(changes.map(shown), ['corrected S-1 2025-12-01']);
});
