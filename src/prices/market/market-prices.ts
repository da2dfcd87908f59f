import type { Kysely } from 'kysely';
import { LRUCache } from 'lru-cache';
import type { Market } from '../../catalog/markets.ts';
import { codeKey } from '../../catalog/match-key.ts';
import type { DataRevision } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import type { ListFilter } from '../plan/plan.ts';
import {
  ALL_CODES,
  type CodeRange,
  columnOf,
  type PriceFilters,
  type SelectedPrice,
  selectionOf,
} from './query.ts';
import type { Vocabulary } from './vocabulary.ts';

/** True if a price has one of the values of a list. */
function conditionOf(
  filter: ListFilter,
  vocabulary: Vocabulary,
): (price: SelectedPrice) => boolean {
  const { name } = filter;
  const column = columnOf(name).column as keyof SelectedPrice;
  const keys = vocabulary.storedKeys(filter);
  const wanted = new Set<unknown>(name === 'priceTypes' ? keys : keys.map(Number));
  return (price) => wanted.has(price[column]);
}

/** The prices of a market at one revision. Selects the same as `selectionOf`, without a query. */
export class MarketPrices {
  /** In the order of the codes. */
  readonly #prices: readonly SelectedPrice[];
  readonly #indexes: ReadonlyMap<string, number>;

  /** @param prices in the order of their codes */
  constructor(prices: readonly SelectedPrice[]) {
    this.#prices = prices;
    this.#indexes = new Map(prices.map(({ code }, index) => [codeKey(code), index]));
  }

  get length(): number {
    return this.#prices.length;
  }

  /** The prices that filters select, in the order of their codes. */
  select(
    { codes, lists }: PriceFilters,
    vocabulary: Vocabulary | null,
    { after, pricesMax }: CodeRange = ALL_CODES,
  ): readonly SelectedPrice[] {
    const conditions =
      vocabulary === null ? [] : lists.map((each) => conditionOf(each, vocabulary));
    const selected: SelectedPrice[] = [];
    for (const price of codes === null ? this.#prices : this.#withCodes(codes)) {
      if (selected.length === pricesMax) break;
      // Codes are ASCII, so that their order is the same here as in the database.
      if (after !== null && price.code <= after) continue;
      if (conditions.every((holds) => holds(price))) selected.push(price);
    }
    return selected;
  }

  #withCodes(codes: readonly string[]): readonly SelectedPrice[] {
    const found = new Set(codes.map((code) => this.#indexes.get(codeKey(code)) ?? -1));
    found.delete(-1);
    return [...found]
      .sort((one, other) => one - other)
      .map((index) => this.#prices[index] as SelectedPrice);
  }
}

/** Most prices of a cached market. */
const MARKET_PRICES_MAX = 2_000;

/** Most prices of all cached markets, of about 2 KB each. */
const CACHED_PRICES_MAX = 10_000;

/** Markets and revisions that were requested once. */
const REQUESTED_ONCE = 256;

/** Returns the prices of a market at a data revision; null if the database has to select. */
export type MarketPricesReader = (
  market: Market,
  data: DataRevision,
) => Promise<MarketPrices | null>;

/**
 * A reader with an LRU cache. It loads a market at the second request for a revision, because a
 * load takes longer than the selection of a few prices. Each commit to a market invalidates its
 * load.
 * @param shared the database of loads that requests share; an aborted request does not cancel them
 */
export function marketPricesReader(shared: Kysely<Database>): MarketPricesReader {
  const once = new LRUCache<string, true>({ max: REQUESTED_ONCE });
  const cached = new LRUCache<string, Promise<MarketPrices | null>>({ maxSize: CACHED_PRICES_MAX });
  /** Markets with too many prices to be cached. */
  const large = new Set<string>();
  const load = async (market: Market, revision: string): Promise<MarketPrices | null> => {
    const all = { market, codes: null, lists: [] };
    const range = { after: null, pricesMax: MARKET_PRICES_MAX + 1 };
    const prices = await selectionOf(shared, all, revision, range).execute();
    if (prices.length <= MARKET_PRICES_MAX) return new MarketPrices(prices);
    large.add(market.slug);
    return null;
  };
  return async (market, { epoch, revision }) => {
    if (large.has(market.slug)) return null;
    const key = `${market.slug} ${epoch}.${revision}`;
    const known = cached.get(key);
    if (known !== undefined) return known;
    if (!once.delete(key)) {
      once.set(key, true);
      return null;
    }
    const loading = load(market, revision);
    cached.set(key, loading, { size: 1 });
    const isCurrent = () => cached.peek(key) === loading;
    loading.then(
      (loaded) => {
        if (loaded !== null && isCurrent()) cached.set(key, loading, { size: 1 + loaded.length });
      },
      () => isCurrent() && cached.delete(key),
    );
    return loading;
  };
}
