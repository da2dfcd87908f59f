import { createHash } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import t from 'tap';
import { sampleCalendars } from '../../seeds/calendars.ts';
import { SEARCH_ALIASES } from '../../seeds/reference/search-aliases.ts';
import { VALUES } from '../../seeds/reference/values.ts';
import { sampleMarkets } from '../../seeds/sample.ts';
import { seriesOf } from '../../seeds/series.ts';
import { MARKETS } from '../../src/catalog/markets.ts';
import type { Database } from '../../src/db/schema.ts';
import { seed } from '../../src/db/seed/seed.ts';
import { testDatabase } from '../support/database/database.ts';

const markets = await sampleMarkets();
const samples = markets.flatMap(({ prices }) => prices);

/** Numbers of rows of the seeds. A further market changes all but those of rates. */
const VALUE_COUNT = Object.values(VALUES).flatMap((values) => Object.keys(values)).length;
const PRODUCT_COUNT = markets.flatMap(({ products }) => products).length;
const ALIAS_COUNT = Object.values(SEARCH_ALIASES).flat().length;
const PRICE_COUNT = samples.length;
const POINT_COUNT = samples.flatMap((each) => seriesOf(each)).length;
const RATE_COUNT = 12_654;
const CORRECTION_COUNT = 8;
const { holidays, calendars, prices: followed } = await sampleCalendars();
const CALENDAR_COUNT = holidays.size + calendars.size + followed.size;
const ROW_COUNT = POINT_COUNT + RATE_COUNT + CALENDAR_COUNT;

const TABLES = [
  'currency',
  'unit_of_measure',
  'dimension_value',
  'product',
  'search_alias',
  'price',
  'series',
  'fx_source',
  'fx_rate',
  'series_history',
  'price_history',
  'fx_rate_history',
  'load_batch',
  'revision',
  'revision_scope',
] as const;

async function rowsOf<T>(db: Kysely<Database>, query: string): Promise<T[]> {
  const { rows } = await sql.raw<T>(query).execute(db);
  return rows;
}

/** A digest of everything that the database says. */
async function contentOf(db: Kysely<Database>): Promise<string> {
  const hash = createHash('sha256');
  for (const table of TABLES) {
    const rows = await rowsOf<{ row: string }>(
      db,
      `select r::text as row from ${table} r order by r::text collate "C"`,
    );
    hash.update(`${table} ${rows.length}\n${rows.map(({ row }) => row).join('\n')}\n`);
  }
  return hash.digest('hex');
}

async function countsOf(db: Kysely<Database>): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of TABLES) {
    const [row] = await rowsOf<{ n: number }>(db, `select count(*)::integer as n from ${table}`);
    counts[table] = row?.n ?? -1;
  }
  return counts;
}

const change = (db: Kysely<Database>, statement: string): Promise<unknown> =>
  db.transaction().execute(async (trx) => {
    await sql`select open_revision('test')`.execute(trx);
    await sql.raw(statement).execute(trx);
  });

const priceId = (code: string): string => `(select id from price where code = '${code}')`;

t.test('reference data alone brings no sample, in one revision', async (t) => {
  const { db, client } = await testDatabase(t);
  const report = await seed(client, { reference: true });
  const vatRates = 3;
  const inserted = 10 + 19 + VALUE_COUNT + PRODUCT_COUNT + ALIAS_COUNT + vatRates;
  t.same(report, { reference: { inserted }, sample: null });
  t.match(await countsOf(db), {
    currency: 10,
    unit_of_measure: 19,
    dimension_value: VALUE_COUNT,
    product: PRODUCT_COUNT,
    fx_source: 3,
    price: 0,
    series: 0,
    fx_rate: 0,
    load_batch: 0,
    revision: 1,
  });
  t.same(await rowsOf(db, 'select scope from revision_scope'), [{ scope: 'reference' }]);

  t.test('and samples can follow later, without touching it', async (t) => {
    const { reference, sample } = await seed(client);
    t.same(reference, { inserted: 0 });
    t.match(sample, { prices: PRICE_COUNT, rates: RATE_COUNT, corrected: CORRECTION_COUNT });
    t.same(
      await rowsOf(
        db,
        `select revision::text from product union select revision::text from currency
          union select revision::text from dimension_value
          union select revision::text from unit_of_measure`,
      ),
      [{ revision: '1' }],
    );
  });
});

t.test('seeding twice, or twice at once, changes nothing', async (t) => {
  const seeded = await testDatabase(t, { seeded: true });
  const before = await contentOf(seeded.db);
  t.same(await seed(seeded.client), {
    reference: { inserted: 0 },
    sample: { prices: 0, points: 0, rates: 0, corrected: 0 },
  });
  t.equal(await contentOf(seeded.db), before);

  const empty = await testDatabase(t);
  await Promise.all([seed(empty.client), seed(empty.client)]);
  t.same(await countsOf(empty.db), await countsOf(seeded.db));
});

t.test(
  'a run reports its progress, and an interrupted run leaves no partial samples',
  async (t) => {
    const { db, client } = await testDatabase(t);
    const breakOff = (done: number, total: number): void => {
      if (done > total / 2) throw new Error('broken off');
    };
    await t.rejects(seed(client, { onProgress: breakOff }), { message: 'broken off' });
    const none = { price: 0, series: 0, load_batch: 0, revision: 1 };
    t.match(await countsOf(db), { product: PRODUCT_COUNT, ...none });

    const steps: number[] = [];
    let whole = 0;
    await seed(client, {
      onProgress: (done, total) => {
        steps.push(done);
        whole = total;
      },
    });
    t.same(
      steps,
      steps.toSorted((a, b) => a - b),
    );
    t.equal(steps.at(-1), whole);
    const { series = 0, fx_rate = 0 } = await countsOf(db);
    t.equal(whole, series + fx_rate);
  },
);

t.test(
  'three revisions: reference data, samples, corrections; each step in the ledger',
  async (t) => {
    const { db } = await testDatabase(t, { seeded: true });
    t.same(
      await rowsOf(
        db,
        `select revision::text, count(*) filter (where scope not like '%:%')::integer as markets,
         string_agg(scope, ' ' order by scope collate "C")
           filter (where scope in ('reference', 'fx:SAMPLE')) as others
       from revision_scope group by revision order by revision`,
      ),
      [
        { revision: '1', markets: 1, others: 'reference' },
        { revision: '2', markets: MARKETS.length + 1, others: 'fx:SAMPLE reference' },
        { revision: '3', markets: 6, others: null },
      ],
    );
    t.match(
      await rowsOf(
        db,
        `select b.format, b.revision, b.prices_added, b.rows, b.inserted, b.corrected,
         (select count(*) from series s where s.batch_id = b.id) as points,
         (select count(*) from fx_rate r where r.batch_id = b.id) as rates
       from load_batch b order by b.id`,
      ),
      [
        {
          format: 'seed',
          revision: '2',
          prices_added: PRICE_COUNT,
          rows: `${ROW_COUNT}`,
          inserted: `${ROW_COUNT}`,
          corrected: '0',
          points: `${POINT_COUNT - CORRECTION_COUNT}`,
          rates: `${RATE_COUNT}`,
        },
        {
          format: 'seed',
          revision: '3',
          rows: `${CORRECTION_COUNT}`,
          corrected: `${CORRECTION_COUNT}`,
          points: `${CORRECTION_COUNT}`,
          rates: '0',
        },
      ],
    );
  },
);

t.test('manual changes, corrections and removals stay, also with newer seeds', async (t) => {
  const { db, client } = await testDatabase(t, { seeded: true });
  const nickel = priceId('CP-NI-0001');
  await change(
    db,
    `update price set name = 'Renamed' where code = 'CP-NI-0002';
     update series set mid = 19000, high = 19100, corrections = 1
       where price_id = ${nickel} and date = '2026-06-30';
     delete from series where price_id = ${nickel} and date = '2026-06-29';
     delete from series where price_id = ${priceId('CP-BA-0017')};
     delete from price where code = 'CP-BA-0017';
     delete from fx_rate where date = '2026-06-30'`,
  );
  // Newer seeds are seeds that this database has not loaded.
  await db.deleteFrom('load_batch').execute();
  const before = await contentOf(db);
  const { sample } = await seed(client);
  t.same(sample, { prices: 0, points: 0, rates: 0, corrected: 0 });
  const [batch] = await rowsOf<Record<string, string>>(
    db,
    'select rows, inserted, unchanged, outdated from load_batch',
  );
  // Corrections of the seeds; one correction, one removed point, 5 of the removed price and its
  // calendar, 9 rates.
  const outdated = CORRECTION_COUNT + 1 + 1 + 5 + 1 + 9;
  t.same(batch, {
    rows: `${ROW_COUNT}`,
    inserted: '0',
    unchanged: `${ROW_COUNT - outdated}`,
    outdated: `${outdated}`,
  });
  await db.deleteFrom('load_batch').execute();
  t.equal(await contentOf(db), before);
});

t.test('a price of one’s own is no sample, though it has the code of one', async (t) => {
  const { db, client } = await testDatabase(t);
  await seed(client, { reference: true });
  await change(
    db,
    `insert into price (market_id, code, code_key, price_type, currency_id, unit_id,
         unit_dimension, product_id, name, price_category_id, frequency_id)
       select p.market_id, 'CP-NI-0001', 'cp-ni-0001', 'price', c.id, u.id,
         u.dimension, p.id, 'Own',
         (select id from dimension_value where kind = 'price-category' and slug = 'spot'),
         (select id from dimension_value where kind = 'frequency' and slug = 'daily')
       from product p, currency c, unit_of_measure u
       where p.slug = 'met' and c.iso = 'EUR' and u.slug = 'tonne'
         and p.market_id = (select id from market where slug = 'nickel');
     insert into series (price_id, date, mid, published_at)
       select id, '2024-05-14', 18020, now() from price where code = 'CP-NI-0001'`,
  );
  const { sample } = await seed(client);
  t.match(sample, { prices: PRICE_COUNT - 1, corrected: CORRECTION_COUNT - 1 });
  t.same(
    await rowsOf(
      db,
      `select name, (select count(*) from series where price_id = p.id) as points
       from price p where code = 'CP-NI-0001'`,
    ),
    [{ name: 'Own', points: '1' }],
  );
});
