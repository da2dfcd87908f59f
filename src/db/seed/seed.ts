import { type Kysely, sql, type Transaction } from 'kysely';
import { type SampleMarket, sampleMarkets } from '../../../seeds/sample.ts';
import type { Client } from '../client.ts';
import { type Connection, openRevision, withConnection, withWriteLock } from '../connection.ts';
import { NO_COUNTS, nextBatch } from '../ledger.ts';
import { isSchemaCurrent } from '../migrate/migrations.ts';
import type { Database } from '../schema.ts';
import { SEED_FORMAT } from './format.ts';
import { writeReference } from './reference-data.ts';
import {
  BATCH_NAMES,
  digestOf,
  isSamplePrice,
  type RowProgress,
  type SampleReport,
  type SampleSeries,
  sampleSeries,
  wasLoaded,
  writeSample,
  writeSeedBatch,
} from './sample.ts';

/*
 * The sample data of development: reference data, prices with invented values, and their
 * corrections.
 */

const REASON = 'sample corrections: points that were first published wrong';

/** The first published value of each corrected point, with its correction; exact decimals. */
const correctionsOf = (series: readonly SampleSeries[]) =>
  series.flatMap(({ code, points }) =>
    points.flatMap(({ corrected, ...wrong }) =>
      corrected ? [{ code, date: wrong.date, wrong: wrong.mid, ...corrected }] : [],
    ),
  );

/**
 * Corrects the sample points that the seeds first publish with a wrong value, in their own
 * revision, and returns their number. Does not change points that were corrected otherwise.
 */
async function writeCorrections(
  trx: Transaction<Database>,
  series: readonly SampleSeries[],
): Promise<number> {
  const corrections = correctionsOf(series);
  const text = JSON.stringify(corrections);
  const sha256 = digestOf([text]);
  if (await wasLoaded(trx, sha256)) return 0;
  const wanted = sql`
    jsonb_to_recordset(${text}::jsonb) as n (code text, date date, wrong numeric, low numeric,
      mid numeric, high numeric, "correctedAt" timestamptz)
    join price p on p.code = n.code and ${isSamplePrice}`;
  const { rows: open } = await sql<{ price_id: number; date: string }>`
    select s.price_id, s.date from ${wanted}
    join series s on s.price_id = p.id and s.date = n.date
    where s.corrections = 0 and s.mid = n.wrong`.execute(trx);
  const isChanged = open.length > 0;
  const revision = isChanged ? await openRevision(trx, `seeds: ${REASON}`) : null;
  const batch = await nextBatch(trx);
  await sql`
    update series s set low = n.low, mid = n.mid, high = n.high, published_at = n."correctedAt",
      corrections = s.corrections + 1, batch_id = ${batch}::integer
    from ${wanted}
    where s.price_id = p.id and s.date = n.date and s.corrections = 0 and s.mid = n.wrong
  `.execute(trx);
  const [rows, corrected] = [corrections.length, open.length];
  // The batch is recorded even if it corrects nothing: it marks this step as done.
  await writeSeedBatch(trx, batch, revision, {
    fileName: BATCH_NAMES.corrections,
    sha256,
    reason: REASON,
    counts: { ...NO_COUNTS, rows, corrected, outdated: rows - corrected },
  });
  return corrected;
}

interface SeedOptions {
  /** True to seed only reference data, for a database of real prices. */
  readonly reference?: boolean;
  readonly onProgress?: RowProgress;
}

/** The rows that a run wrote. */
interface SeedReport {
  /** Rows of currencies, units, dimension values and products. */
  readonly reference: { readonly inserted: number };
  /** Sample rows inserted, and points corrected; null without samples. */
  readonly sample: (SampleReport & { readonly corrected: number }) | null;
}

const VACUUM = `vacuum (analyze, skip_locked)
  series, fx_rate, price, product, dimension_value, unit_of_measure, currency, load_batch`;

async function seedSample(
  connection: Connection,
  markets: readonly SampleMarket[],
  onProgress: RowProgress,
): Promise<SampleReport & { corrected: number }> {
  const { db } = connection;
  const series = sampleSeries(markets);
  const added = await withWriteLock(db, (trx) =>
    writeSample(trx, connection, markets, series, onProgress),
  );
  const corrected = await withWriteLock(db, (trx) => writeCorrections(trx, series));
  return { ...added, corrected };
}

/**
 * Seeds a migrated database with reference data and, unless `reference` is set, with sample prices,
 * series and rates. Three steps, each one transaction and one revision: reference data, samples,
 * corrections. Inserts missing rows and never changes present ones. A second run writes nothing; a
 * run after a crash continues with the missing steps.
 * @throws Error if the schema is not current
 */
export async function seed(client: Client, options: SeedOptions = {}): Promise<SeedReport> {
  const { reference: referenceOnly = false, onProgress = () => {} } = options;
  if (!(await isSchemaCurrent(client.db))) {
    throw new Error('the database schema is not the one this version needs: migrate it first');
  }
  return withConnection(client.pool, async (connection) => {
    const markets = await sampleMarkets();
    const reference = await withWriteLock(connection.db, (trx) => writeReference(trx, markets));
    const sample = referenceOnly ? null : await seedSample(connection, markets, onProgress);
    // After a bulk load, the planner and index-only scans would otherwise wait for autovacuum.
    if (sample && sample.points + sample.corrected > 0) await connection.driver.query(VACUUM);
    return { reference, sample };
  });
}

/**
 * True if samples are to be seeded: the database has only reference data, or a run stopped between
 * samples and corrections. The ledger decides, since samples may have been removed on purpose. A
 * database with other prices or rates gets no samples.
 */
export async function lacksSamples(db: Kysely<Database>): Promise<boolean> {
  const { rows } = await sql<{ lacks: boolean }>`
    with batch as (select file_name from load_batch
      where format = ${SEED_FORMAT} and status = 'applied')
    select case when exists (select from batch where file_name = ${BATCH_NAMES.samples})
      then not exists (select from batch where file_name = ${BATCH_NAMES.corrections})
      else not exists (select from price) and not exists (select from fx_rate)
        and not exists (select from batch) end as lacks`.execute(db);
  return rows[0]?.lacks ?? true;
}

/** A price for example requests, and the day one week before its last point. */
export interface ExamplePrice {
  readonly market: string;
  readonly code: string;
  readonly since: string;
}

/** A price with points: the exchange price of nickel if present. Null if no price has points. */
export async function examplePrice(db: Kysely<Database>): Promise<ExamplePrice | null> {
  const { rows } = await sql<ExamplePrice>`
    select m.slug as market, p.code, (s.newest - 7)::text as since
    from price p join market m on m.id = p.market_id
    cross join lateral (select max(date) as newest from series where price_id = p.id) s
    where s.newest is not null
    order by p.code <> 'CP-NI-0001', p.code limit 1`.execute(db);
  return rows[0] ?? null;
}
