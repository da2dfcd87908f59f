import type { Kysely } from 'kysely';
import { type Judgement, type Late, lateness } from '../../calendar/lateness.ts';
import { MARKETS, type MarketSlug } from '../../catalog/markets.ts';
import type { DataRevision } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import type { PriceCalendars } from '../market/price-calendars.ts';
import type { ReferenceReader } from '../market/references.ts';
import type { SamplesReader } from '../market/samples.ts';
import type { DuePrice, DuePricesReader } from './due-prices.ts';

/** The readers that lateness needs. */
export interface LateReaders {
  readonly db: Kysely<Database>;
  readonly references: ReferenceReader;
  readonly samples: SamplesReader;
  readonly duePrices: DuePricesReader;
}

/** The prices that can be late, with their calendars, at one revision. */
export interface WatchedPrices {
  readonly prices: readonly DuePrice[];
  readonly calendars: PriceCalendars;
}

/** A late price. */
export interface LatePrice {
  readonly market: MarketSlug;
  readonly code: string;
  readonly name: string;
  readonly lastAssessedAt: string | null;
  /** The name of its calendar; null without one. */
  readonly calendar: string | null;
  readonly late: Late;
}

/**
 * Reads the prices of markets that can be late. Sample prices cannot: nobody publishes them.
 * @param withSamples reads them nevertheless
 */
export async function watchedPrices(
  { db, references, samples, duePrices }: LateReaders,
  slugs: readonly MarketSlug[],
  data: DataRevision,
  withSamples = false,
): Promise<WatchedPrices> {
  const { calendars } = await references(db, data);
  const prices: DuePrice[] = [];
  // One market after another: each reads its points.
  const markets = MARKETS.filter(({ slug }) => slugs.includes(slug));
  for (const market of markets.toSorted((a, b) => (a.slug < b.slug ? -1 : 1))) {
    const own = await duePrices(market.slug, data);
    const ids = withSamples ? new Set() : await samples(market, data);
    prices.push(...own.filter(({ id }) => !ids.has(id)));
  }
  return { prices, calendars };
}

/** The late prices, by market and code. */
export function latePrices(
  { prices, calendars }: WatchedPrices,
  judgement: Judgement,
): readonly LatePrice[] {
  return prices.flatMap((price) => {
    const named = calendars.of(price.id);
    const late = lateness(named?.calendar ?? null, price, judgement);
    if (late === null) return [];
    const { market, code, name, lastDate } = price;
    const calendar = named?.slug ?? null;
    return [{ market, code, name, lastAssessedAt: lastDate, calendar, late }];
  });
}
