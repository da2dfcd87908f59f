import { type RawBuilder, sql, type Transaction } from 'kysely';
import { SAMPLE_SOURCE, type SampleRate, sampleRates } from '../../seeds/rates.ts';
import type { SampleMarket } from '../../seeds/sample.ts';
import { type SamplePoint, seriesOf } from '../../seeds/series.ts';
import { type Connection, copyInto, openRevision } from './connection.ts';
import type { Database } from './schema.ts';
import {
  digestOf,
  finishBatch,
  isSamplePrice,
  LINES,
  recordBatch,
  wasLoaded,
} from './seed-batch.ts';
import { writePrices } from './seed-prices.ts';

/** Told as rows are sent: how many of how many, and which kind of row. */
export type Progress = (done: number, total: number, what: string) => void;

/** The points of one sample price. */
export interface SampleSeries {
  readonly code: string;
  readonly points: readonly SamplePoint[];
}

/** The points of every sample price, made by the recipe of the seeds. */
export const sampleSeries = (markets: readonly SampleMarket[]): SampleSeries[] =>
  markets.flatMap(({ prices }) =>
    prices.map((price) => ({ code: price.code, points: seriesOf(price) })),
  );

/** What was first published, in COPY's text format; corrections come in a revision of their own. */
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
 * Picks what the database lacks and never had: what was withdrawn is not published again. The
 * insert reads from what was picked, because a statement that also looks into the table it fills
 * can slow down with every row, when the planner takes that table for an empty one.
 */
const pickPoints = sql`
  insert into new_point
  select p.id, n.date, n.low, n.mid, n.high, n.published_at
  from seed_point n join price p on p.code = n.code and ${isSamplePrice}
  where not exists (select from series s where s.price_id = p.id and s.date = n.date)
    and not exists (select from series_history h where h.price_id = p.id and h.date = n.date)`;
const pickRates = sql`
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

async function countOf(trx: Transaction<Database>, rows: RawBuilder<unknown>): Promise<number> {
  const { rows: counted } = await sql<{ count: number }>`
    select count(*)::integer as count from ${rows}`.execute(trx);
  return counted[0]?.count ?? 0;
}

const affectedBy = async (
  trx: Transaction<Database>,
  statement: RawBuilder<unknown>,
): Promise<number> => Number((await statement.execute(trx)).numAffectedRows ?? 0);

/** Sends everything to the staging tables, reporting as it goes. */
async function stage(
  { driver }: Connection,
  series: readonly SampleSeries[],
  rates: readonly SampleRate[],
  onProgress: Progress,
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
 * Adds the sample prices, series and rates that the database never had, in one revision and with
 * a line in the ledger; does nothing when exactly these were loaded before. What is there already
 * is never overwritten: points that differ count as outdated.
 */
export async function writeSample(
  trx: Transaction<Database>,
  connection: Connection,
  markets: readonly SampleMarket[],
  series: readonly SampleSeries[],
  onProgress: Progress,
): Promise<SampleReport> {
  const rates = sampleRates();
  const sha256 = digestOf([...series.map(pointLines), ...rates.map(rateLine)]);
  if (await wasLoaded(trx, sha256)) return NOTHING;
  const prices = await writePrices(trx, markets);
  await stage(connection, series, rates, onProgress);
  const points = await affectedBy(trx, pickPoints);
  const newRates = await affectedBy(trx, pickRates);
  const rows = series.reduce((sum, each) => sum + each.points.length, rates.length);
  const inserted = points + newRates;
  const unchanged = (await countOf(trx, samePoints)) + (await countOf(trx, sameRates));
  if (inserted > 0) await openRevision(trx, 'seeds: sample data');
  const batch = await recordBatch(trx, {
    file_name: LINES.samples,
    sha256,
    reason: null,
    prices_added: prices,
    rows,
    inserted,
    unchanged,
    corrected: 0,
    outdated: rows - inserted - unchanged,
  });
  await sql`
    insert into series (price_id, date, low, mid, high, published_at, batch_id)
    select price_id, date, low, mid, high, published_at, ${batch}::integer
    from new_point`.execute(trx);
  await sql`
    insert into fx_rate (source, currency_id, date, rate, batch_id)
    select ${SAMPLE_SOURCE}, currency_id, date, rate, ${batch}::integer
    from new_rate`.execute(trx);
  await finishBatch(trx, batch);
  return { prices, points, rates: newRates };
}
