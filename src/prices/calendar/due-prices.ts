import { type Kysely, sql } from 'kysely';
import { MARKETS, type MarketSlug } from '../../catalog/markets.ts';
import { type DataRevision, numberIn, requireCommit } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { cachedByRevision } from '../../db/shared-work.ts';
import { boundText } from '../../std/days.ts';

/** A price with all that decides when it is due, and whether it is late. */
export interface DuePrice {
  readonly id: number;
  readonly market: MarketSlug;
  readonly code: string;
  readonly codeKey: string;
  readonly name: string;
  /** The short name of its frequency. */
  readonly frequency: string | null;
  readonly launched: string | null;
  /** The launch, else the day of the first point; before it nothing was due. */
  readonly firstDay: string | null;
  readonly lastDate: string | null;
  /** Publication of the last point, as PostgreSQL writes it. */
  readonly lastPublishedAt: string | null;
}

/** Reads the prices of a market at its data revision, in the order of their codes. */
export type DuePricesReader = (
  market: MarketSlug,
  data: DataRevision,
) => Promise<readonly DuePrice[]>;

/** Cached prices: the newest of each market, and one before. */
const CACHED = 2 * MARKETS.length;

/**
 * A reader with an LRU cache.
 * @param shared the database of loads that requests share; an aborted request does not cancel them
 */
export const duePricesReader = (shared: Kysely<Database>): DuePricesReader =>
  cachedByRevision(
    CACHED,
    (market, { epoch, revision }) => `${market} ${epoch}.${revision}`,
    (market, { revision }) => readDuePrices(shared, market, revision),
  );

async function readDuePrices(
  db: Kysely<Database>,
  slug: MarketSlug,
  revision: string,
): Promise<readonly DuePrice[]> {
  const at = numberIn(revision);
  const { rows } = await sql<DuePrice>`
    select p.id, m.slug as market, p.code, p.code_key as "codeKey", p.name,
      f.short_name as frequency, p.assessment_launched_at as launched,
      coalesce(p.assessment_launched_at, earliest.date) as "firstDay", latest.date as "lastDate",
      latest.published_at as "lastPublishedAt"
    from price_at(${at}) as p
      join market m on m.id = p.market_id
      left join dimension_value_at(${at}) as f on f.id = p.frequency_id
      left join lateral latest_point_at(p.id, ${at}) as latest on true
      left join lateral (select s.date from series_at(${at}) as s
        where s.price_id = p.id and p.assessment_launched_at is null
        order by s.date limit 1) as earliest on true
    where m.slug = ${slug} and ${requireCommit(revision)}
    order by p.code collate "C"`.execute(db);
  return rows;
}

/** Prices of one statement: limits the rows that the driver parses without a pause. */
const PRICES_PER_STATEMENT = 500;

/** The days on which prices have points at a revision, as day numbers by price. */
export async function readPublishedDays(
  db: Kysely<Database>,
  priceIds: readonly number[],
  first: number,
  last: number,
  revision: string,
): Promise<ReadonlyMap<number, ReadonlySet<number>>> {
  const published = new Map<number, ReadonlySet<number>>();
  for (let start = 0; start < priceIds.length; start += PRICES_PER_STATEMENT) {
    const ids = priceIds.slice(start, start + PRICES_PER_STATEMENT);
    const { rows } = await sql<{ id: number; days: number[] }>`
      select s.price_id as id, array_agg(s.date - date '2000-01-01') as days
      from series_at(${numberIn(revision)}) as s
      where s.price_id = any(${ids}::int[])
        and s.date between ${boundText(first)}::date and ${boundText(last)}::date
        and ${requireCommit(revision)}
      group by s.price_id`.execute(db);
    for (const { id, days } of rows) published.set(id, new Set(days));
  }
  return published;
}
