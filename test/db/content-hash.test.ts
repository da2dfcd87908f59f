import t from 'tap';
import { columnName, DIMENSIONS } from '../../src/catalog/dimensions.ts';
import { MARKETS } from '../../src/catalog/markets.ts';
import { type ContentHash, contentHash } from '../../src/db/content-hash.ts';
import { CALENDARS, loadCalendarText } from '../ingest/calendar/support.ts';
import {
  CORRECTING,
  describePayable,
  describePrices,
  loadingDatabase,
  loadText,
  points,
} from '../ingest/support/loading.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { inRevision } from '../support/database/minimal-data.ts';
import { prices as command } from '../support/process/programs.ts';

/** Returns the parts whose hashes changed since the previous call. */
function watch({ client }: TestDatabase): () => Promise<string[]> {
  let before: ContentHash | null = null;
  return async () => {
    const after = await contentHash(client);
    const known = new Map(before?.parts.map(({ part, hash }) => [part, hash]));
    const changed = after.parts.filter(({ part, hash }) => hash !== known.get(part));
    t.equal(after.hash !== before?.hash, changed.length > 0);
    before = after;
    return changed.map(({ part }) => part);
  };
}

t.test('every part is counted, and the same data hash the same', async (t) => {
  const first = await contentHash((await testDatabase(t, { seeded: true })).client);
  const again = await contentHash((await testDatabase(t, { seeded: true })).client);
  t.strictSame(again, first);
  const sources = ['ECB', 'FED', 'SAMPLE'].map((slug) => `fx:${slug}`);
  const names = [...sources, ...MARKETS.map(({ slug }) => slug), 'reference'].sort();
  t.strictSame(
    first.parts.map(({ part }) => part),
    names,
  );
  t.equal(new Set(first.parts.map(({ hash }) => hash)).size, names.length);
  const { pool } = await testDatabase(t, { seeded: true });
  const count = async (query: string) => Number((await pool.query(query)).rows[0].count);
  const sum = (key: 'prices' | 'values', isOf: (part: string) => boolean) =>
    first.parts
      .filter(({ part }) => isOf(part))
      .reduce((total, part) => total + (part[key] ?? 0), 0);
  const isMarket = (part: string) => MARKETS.some(({ slug }) => slug === part);
  t.equal(sum('prices', isMarket), await count('select count(*) from price'));
  t.equal(sum('values', isMarket), await count('select count(*) from series'));
  t.equal(
    sum('values', (part) => part.startsWith('fx:')),
    await count('select count(*) from fx_rate'),
  );
});

const POINT = `where date = '2020-01-31'`;
const RATE = `where date = '2020-01-30'`;
/** A kind of change, and the part of the data that it changes. */
const CHANGES: Readonly<Record<string, string>> = {
  [`update series set low = 8 ${POINT}`]: 'aluminium',
  [`update series set mid = 10.5 ${POINT}`]: 'aluminium',
  [`update series set high = null ${POINT}`]: 'aluminium',
  [`delete from series ${POINT}`]: 'aluminium',
  "update price set name = 'Other'": 'aluminium',
  "update price set short_name = 'Short'": 'aluminium',
  [`update price set specification = '[{"name": "a", "value": "b", "order": 1}]'`]: 'aluminium',
  "update price set assessment_launched_at = '2001-02-03'": 'aluminium',
  "update price set observes = 'month-mean'": 'aluminium',
  "update price set vat_country = 'CN' where price_type = 'price'": 'aluminium',
  [`update price set payable_reference = '[{"code": "XX-1"}]' where price_type = 'payable'`]:
    'aluminium',
  [`update price set product_id =
    (select max(id) from product where market_id = price.market_id)`]: 'aluminium',
  "update product set alias = 'other' where slug = 'briq'": 'reference',
  "insert into search_alias (words, alias) values ('nickel', 'Nikl')": 'reference',
  "update currency set symbol = '¤' where iso = 'USD'": 'reference',
  "update unit_of_measure set symbol = 'to' where slug = 'tonne'": 'reference',
  "update dimension_value set name = 'other' where slug = 'gabon'": 'reference',
  [`update fx_rate set rate = 1.5 ${RATE}`]: 'fx:FED',
  [`delete from fx_rate ${RATE}`]: 'fx:FED',
  "update calendar set due_time = '17:00'": 'reference',
  "update holiday_list set known_until = '2027-12-31'": 'reference',
  'delete from price_calendar': 'aluminium',
  "update vat_rate set rate = 14 where valid_from = '2019-04-01'": 'reference',
};

t.test('every visible change changes the hash, of its own part alone', async (t) => {
  const database = await loadingDatabase(t);
  const { client, pool } = database;
  await describePrices(client, 'XX-1');
  await describePayable(client, 'XX-9');
  await loadText(t, client, 'csv', points('XX-1,2020-01-31,9,10,11,', 'XX-1,2020-02-29,,10,,'));
  const rates = 'Date,Canada\n2020-01-30,1.32\n2020-01-31,1.33\n';
  t.equal((await loadText(t, client, 'fed', rates)).status, 'applied');
  const calendars = CALENDARS.replace('  xx-2: weekly\n', '');
  t.equal((await loadCalendarText(t, client, calendars)).status, 'applied');
  const changed = watch(database);
  await changed();
  for (const [statement, part] of Object.entries(CHANGES)) {
    await inRevision(pool, statement);
    t.strictSame(await changed(), [part], statement);
  }
  for (const field of [
    'priceCategory',
    'frequency',
    ...Object.values(DIMENSIONS).map((each) => each.field),
  ]) {
    const column = columnName(field);
    const kind = field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    await inRevision(
      pool,
      `update price set ${column} = (select max(id) from dimension_value
        where kind = '${kind}' and id is distinct from price.${column})`,
    );
    t.strictSame(await changed(), ['aluminium'], field);
  }
});

t.test('when and how data came is no part of the hash', async (t) => {
  const codes = ['XX-1', 'XX-2', 'XX-3'];
  const rows = (mid: string, time: string) =>
    points(...codes.map((code) => `${code},2020-01-31,,${mid},,${time}`));
  const one = await loadingDatabase(t);
  await describePrices(one.client, ...codes);
  await loadText(t, one.client, 'csv', rows('1', '2020-02-01T00:00:00Z'));
  await loadText(t, one.client, 'csv', rows('2', '2020-03-01T00:00:00Z'), CORRECTING);
  const other = await loadingDatabase(t);
  await describePrices(other.client, ...codes.toReversed());
  await loadText(t, other.client, 'csv', rows('2', ''));
  t.strictSame(await contentHash(other.client), await contentHash(one.client));
  const changed = watch(other);
  await changed();
  await loadText(t, other.client, 'csv', rows('3', ''), CORRECTING);
  t.strictSame(await changed(), ['aluminium']);
});

t.test('the hash is that of one snapshot, while others write', async (t) => {
  const database = await loadingDatabase(t);
  const { client } = database;
  await describePrices(client, 'XX-1');
  const seen: Promise<string>[] = [];
  const hashOf = async () => (await contentHash(client)).hash;
  const valid = new Set([await hashOf()]);
  for (let mid = 1; mid <= 8; mid += 1) {
    const load = loadText(t, client, 'csv', points(`XX-1,2020-01-31,,${mid},,`), CORRECTING);
    seen.push(hashOf(), hashOf());
    await load;
    await Promise.all(seen);
    valid.add(await hashOf());
  }
  for (const hash of await Promise.all(seen)) t.ok(valid.has(hash));
});

t.test('the command prints one hash, and all of it as JSON', async (t) => {
  const { client, url: DATABASE_URL } = await testDatabase(t, { seeded: true });
  const expected = await contentHash(client);
  const json = await command(t, { DATABASE_URL }, 'db', 'hash', '--json');
  t.strictSame(JSON.parse(json.stdout), expected);
  const { stdout, code } = await command(t, { DATABASE_URL }, 'db', 'hash');
  t.equal(code, 0);
  t.match(stdout.split('\n').at(-2), new RegExp(`^all +\\d+ +[\\d,]+  ${expected.hash}$`));
  t.match(stdout, /^nickel +\d+ +[\d,]+ {2}[0-9a-f]{64}$/m);
  const lines = stdout.trimEnd().split('\n');
  t.equal(new Set(lines.map((line) => line.search(/ {2}\S+$/))).size, 1, 'numbers end together');
});
