import { createHash } from 'node:crypto';
import { type Insertable, type RawBuilder, sql, type Transaction } from 'kysely';
import { sampleCalendars } from '../../../seeds/calendars.ts';
import { SAMPLE_SOURCE, type SampleRate, sampleRates } from '../../../seeds/rates.ts';
import { UNITS } from '../../../seeds/reference/units.ts';
import { VALUES } from '../../../seeds/reference/values.ts';
import { SAMPLE_MARK, type SampleMarket, type SamplePrice } from '../../../seeds/sample.ts';
import { type SamplePoint, seriesOf } from '../../../seeds/series.ts';
import { columnName, DIMENSIONS, type ValueKind } from '../../catalog/dimensions.ts';
import { matchKey } from '../../catalog/match-key.ts';
import { type Connection, copyInto, openRevision } from '../connection.ts';
import { type BatchEntry, NO_COUNTS, nextBatch, writeBatch } from '../ledger.ts';
import type { Database, PriceDimensions, PriceRow } from '../schema.ts';
import { writeSampleCalendars } from './calendars.ts';
import { SEED_FORMAT } from './format.ts';
import { ReferenceIds } from './reference-data.ts';

type Trx = Transaction<Database>;

/** File names of the two batches of the sample data in the ledger. */
export const BATCH_NAMES = { samples: 'seeds', corrections: 'seeds, corrections' } as const;

/** SHA-256 of all rows of a batch, by which a repeated batch is found. */
export function digestOf(lines: Iterable<string>): Buffer {
  const hash = createHash('sha256');
  for (const line of lines) hash.update(line);
  return hash.digest();
}

/** True if exactly these seeds are loaded. */
export async function wasLoaded(trx: Trx, sha256: Buffer): Promise<boolean> {
  const rows = await trx
    .selectFrom('load_batch')
    .select('id')
    .where('sha256', '=', sha256)
    .where('format', '=', SEED_FORMAT)
    .where('status', '=', 'applied')
    .execute();
  return rows.length > 0;
}

/** Writes a batch of seeds to the ledger. @param revision null if the batch changed nothing */
export const writeSeedBatch = (
  trx: Trx,
  id: number,
  revision: string | null,
  batch: Pick<BatchEntry, 'fileName' | 'sha256' | 'reason' | 'counts'>,
): Promise<void> =>
  writeBatch(trx, id, 'applied', revision, {
    ...batch,
    format: SEED_FORMAT,
    mappingSha256: null,
    vintage: null,
    actor: 'seed',
    startedAt: sql<string>`now()`,
  });

const sampleMark = JSON.stringify([{ name: SAMPLE_MARK.name }]);

/** True if the price `p` is a seed. Other prices get no points or corrections from seeds. */
export const isSamplePrice = sql`p.specification @> ${sampleMark}::jsonb`;

/** The id of a value. */
function valueId(ids: ReferenceIds, kind: ValueKind, name: string): number {
  const values: Readonly<Record<string, string>> = VALUES[kind];
  const slug = Object.keys(values).find((each) => values[each] === name);
  return ids.get('dimension_value', { kind, slug, match_key: matchKey(name) });
}

function dimensionsOf(ids: ReferenceIds, price: SamplePrice): PriceDimensions {
  const columns = Object.values(DIMENSIONS).map(({ field, kind }) => {
    const name = price.dimensions[field] ?? null;
    return [columnName(field), name === null ? null : valueId(ids, kind, name)];
  });
  return {
    ...Object.fromEntries(columns),
    price_category_id: valueId(ids, 'price-category', price.category),
    frequency_id: valueId(ids, 'frequency', price.frequency),
  };
}

const referenceText = ({ reference }: SamplePrice): string | null =>
  reference && JSON.stringify([reference]);

function rowOf(ids: ReferenceIds, market: SampleMarket, price: SamplePrice): Insertable<PriceRow> {
  const unit = UNITS[price.unit];
  const product = market.products.find(({ slug }) => slug === price.product);
  const market_id = ids.get('market', { slug: market.slug });
  return {
    market_id,
    code: price.code,
    code_key: matchKey(price.code),
    price_type: price.type,
    currency_id: price.currency === null ? null : ids.get('currency', { iso: price.currency }),
    unit_id: ids.get('unit_of_measure', { slug: price.unit, name_key: matchKey(unit.name) }),
    unit_dimension: unit.dimension,
    product_id: ids.get('product', {
      market_id,
      slug: price.product,
      match_key: matchKey(product?.name ?? price.product),
    }),
    name: price.name,
    short_name: price.shortName,
    specification: JSON.stringify(price.specification),
    assessment_launched_at: price.launched,
    observes: price.observes,
    vat_country: price.vatCountry,
    payable_reference: referenceText(price),
    ...dimensionsOf(ids, price),
  };
}

/**
 * Inserts sample prices that the database never had, and returns their number. Does not change
 * present prices, or restore removed ones.
 */
async function writePrices(trx: Trx, markets: readonly SampleMarket[]): Promise<number> {
  const present = await trx
    .selectFrom('price')
    .select('code_key')
    .union(trx.selectFrom('price_history').select('code_key'))
    .execute();
  const known = new Set(present.map((row) => row.code_key));
  const ids = await ReferenceIds.read(trx);
  const rows = markets.flatMap((market) =>
    market.prices
      .filter(({ code }) => !known.has(matchKey(code)))
      .map((price) => rowOf(ids, market, price)),
  );
  if (rows.length === 0) return 0;
  await openRevision(trx, 'seeds: sample data');
  await trx.insertInto('price').values(rows).execute();
  return rows.length;
}

/**
 * Adds the references of sample payables of an earlier version, which had none, and returns their
 * number.
 */
async function completeReferences(trx: Trx, markets: readonly SampleMarket[]): Promise<number> {
  const stated = markets
    .flatMap(({ prices }) => prices)
    .filter(({ reference }) => reference !== null);
  const lacking = sql`
    unnest(${stated.map(({ code }) => code)}::text[], ${stated.map(referenceText)}::text[])
      as n (code, reference)
    where p.code = n.code and p.payable_reference is null and p.price_type = 'payable'
      and ${isSamplePrice}`;
  if ((await countOf(trx, sql`price p, ${lacking}`)) === 0) return 0;
  await openRevision(trx, 'seeds: sample data');
  return affectedBy(
    trx,
    sql`update price p set payable_reference = n.reference::jsonb from ${lacking}`,
  );
}

/** Called with the number of rows sent, the total, and the kind of row (`points` or `rates`). */
export type RowProgress = (done: number, total: number, kind: string) => void;

/** The points of one sample price. */
export interface SampleSeries {
  readonly code: string;
  readonly points: readonly SamplePoint[];
}

/** Computes the points of every sample price. */
export const sampleSeries = (markets: readonly SampleMarket[]): SampleSeries[] =>
  markets.flatMap(({ prices }) =>
    prices.map((price) => ({ code: price.code, points: seriesOf(price) })),
  );

/** The first published values, in COPY's text format. Corrections get their own revision. */
const pointLines = ({ code, points }: SampleSeries): string =>
  points
    .map(({ date, low, mid, high, publishedAt }) =>
      [code, date, low, mid, high, `${publishedAt}\n`].join('\t'),
    )
    .join('');

const rateLine = ({ currency, date, rate }: SampleRate): string =>
  `${currency}\t${date}\t${rate}\n`;

const STAGING = `
  create temporary table seed_point (
    code text, date date, low numeric, mid numeric, high numeric, published_at timestamptz
  ) on commit drop;
  create temporary table seed_rate (iso text, date date, rate numeric) on commit drop;
  create temporary table new_point (
    price_id integer, date date, low numeric, mid numeric, high numeric, published_at timestamptz
  ) on commit drop;
  create temporary table new_rate (currency_id smallint, date date, rate numeric) on commit drop`;

/**
 * Stages the points that the database never had, so that withdrawn points are not published again.
 * The insert reads the staged rows: an insert that queries its own target slows down with every row
 * if the planner believes that the table is empty.
 */
const stageNewPoints = sql`
  insert into new_point
  select p.id, n.date, n.low, n.mid, n.high, n.published_at
  from seed_point n join price p on p.code = n.code and ${isSamplePrice}
  where not exists (select from series s where s.price_id = p.id and s.date = n.date)
    and not exists (select from series_history h where h.price_id = p.id and h.date = n.date)`;
const stageNewRates = sql`
  insert into new_rate
  select c.id, n.date, n.rate from seed_rate n join currency c on c.iso = n.iso
  where not exists (select from fx_rate r
      where r.source = ${SAMPLE_SOURCE} and r.currency_id = c.id and r.date = n.date)
    and not exists (select from fx_rate_history h
      where h.source = ${SAMPLE_SOURCE} and h.currency_id = c.id and h.date = n.date)`;
const samePoints = sql`
  seed_point n join price p on p.code = n.code and ${isSamplePrice}
  join series s on s.price_id = p.id and s.date = n.date
  where (s.low, s.mid, s.high) is not distinct from (n.low, n.mid, n.high)`;
const sameRates = sql`
  seed_rate n join currency c on c.iso = n.iso
  join fx_rate r on r.source = ${SAMPLE_SOURCE} and r.currency_id = c.id and r.date = n.date
  where r.rate = n.rate`;

async function countOf(trx: Trx, rows: RawBuilder<unknown>): Promise<number> {
  const { rows: counted } = await sql<{ count: number }>`
    select count(*)::integer as count from ${rows}`.execute(trx);
  return counted[0]?.count ?? 0;
}

const affectedBy = async (trx: Trx, statement: RawBuilder<unknown>): Promise<number> =>
  Number((await statement.execute(trx)).numAffectedRows ?? 0);

/** Copies points and rates to the staging tables. */
async function stage(
  { driver }: Connection,
  series: readonly SampleSeries[],
  rates: readonly SampleRate[],
  onProgress: RowProgress,
): Promise<void> {
  const total = series.reduce((sum, { points }) => sum + points.length, rates.length);
  let done = 0;
  function* points(): Generator<string> {
    for (const each of series) {
      yield pointLines(each);
      done += each.points.length;
      onProgress(done, total, 'points');
    }
  }
  await driver.query(STAGING);
  await copyInto(driver, 'seed_point', points());
  await copyInto(driver, 'seed_rate', [rates.map(rateLine).join('')]);
  await driver.query('analyze seed_point; analyze seed_rate');
  onProgress(total, total, 'rates');
}

export interface SampleReport {
  readonly prices: number;
  readonly points: number;
  readonly rates: number;
}

const NOTHING: SampleReport = { prices: 0, points: 0, rates: 0 };

/**
 * Inserts sample prices, points, rates and calendars that the database never had, in one revision
 * and one batch. Does nothing if exactly these are loaded. Never overwrites a stored value: a value
 * that differs is counted as outdated.
 */
export async function writeSample(
  trx: Trx,
  connection: Connection,
  markets: readonly SampleMarket[],
  series: readonly SampleSeries[],
  onProgress: RowProgress,
): Promise<SampleReport> {
  const rates = sampleRates();
  const calendars = await sampleCalendars();
  const entries = [...calendars.holidays, ...calendars.calendars, ...calendars.prices];
  const sha256 = digestOf([
    ...series.map(pointLines),
    ...rates.map(rateLine),
    ...entries.map((each) => JSON.stringify(each)),
    ...markets.flatMap(({ prices }) => prices.map((price) => `${referenceText(price)}\n`)),
  ]);
  if (await wasLoaded(trx, sha256)) return NOTHING;
  const prices = await writePrices(trx, markets);
  const completed = await completeReferences(trx, markets);
  await stage(connection, series, rates, onProgress);
  const points = await affectedBy(trx, stageNewPoints);
  const newRates = await affectedBy(trx, stageNewRates);
  const batch = await nextBatch(trx);
  const followed = await writeSampleCalendars(trx, calendars, sampleMark, batch);
  const rows = series.reduce((sum, each) => sum + each.points.length, rates.length + followed.rows);
  const inserted = points + newRates + followed.inserted;
  const unchanged =
    (await countOf(trx, samePoints)) + (await countOf(trx, sameRates)) + followed.unchanged;
  const isChanged = prices + completed + inserted > 0;
  const revision = isChanged ? await openRevision(trx, 'seeds: sample data') : null;
  await sql`
    insert into series (price_id, date, low, mid, high, published_at, batch_id)
    select price_id, date, low, mid, high, published_at, ${batch}::integer
    from new_point`.execute(trx);
  await sql`
    insert into fx_rate (source, currency_id, date, rate, batch_id)
    select ${SAMPLE_SOURCE}, currency_id, date, rate, ${batch}::integer
    from new_rate`.execute(trx);
  const outdated = rows - inserted - unchanged;
  await writeSeedBatch(trx, batch, revision, {
    fileName: BATCH_NAMES.samples,
    sha256,
    reason: null,
    counts: {
      ...NO_COUNTS,
      pricesAdded: prices,
      pricesChanged: completed,
      rows,
      inserted,
      unchanged,
      outdated,
    },
  });
  return { prices, points, rates: newRates };
}
