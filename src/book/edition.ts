import type { NewestRevision } from '../db/newest-revision.ts';
import { MarketPrices } from '../prices/market/market-prices.ts';
import type { SelectedPrice } from '../prices/market/query.ts';
import type { MarketReader } from '../prices/market/reader.ts';
import type { References } from '../prices/market/references.ts';
import { codeRangeOf } from '../prices/market/select.ts';
import type { Vocabulary } from '../prices/market/vocabulary.ts';
import type { Plan } from '../prices/plan/plan.ts';
import type { PriceStretch, SeriesRange } from '../prices/series/ranges.ts';
import { mapped } from '../std/turns.ts';
import { type Block, columnsIn, extentIn } from './block.ts';

/** Bytes of the objects of an edition, and of a price. */
const OBJECT_BYTES = 256;

/** One price of an edition. */
export interface BookPrice {
  readonly price: SelectedPrice;
  /** Its series, in date order. Editions share a block until one of its points changes. */
  readonly blocks: readonly Block[];
  /** An estimate of its memory. */
  readonly bytes: number;
}

/** A price with its series. */
export const bookPrice = (price: SelectedPrice, blocks: readonly Block[]): BookPrice => ({
  price,
  blocks,
  bytes: blocks.reduce(
    (sum, block) => sum + block.bytes,
    OBJECT_BYTES + 4 * JSON.stringify(price).length,
  ),
});

/** The prices in the order of their codes, which are ASCII. */
const inCodeOrder = (prices: Iterable<BookPrice>): SelectedPrice[] =>
  [...prices]
    .map(({ price }) => price)
    .sort(({ code: one }, { code: other }) => (one < other ? -1 : one > other ? 1 : 0));

interface EditionParts {
  /** The newest revision when the edition was read. */
  readonly newest: NewestRevision;
  /** The revisions of the market and of the reference data. */
  readonly revisions: { readonly market: string; readonly reference: string };
  readonly references: References;
  /** By id. */
  readonly prices: ReadonlyMap<number, BookPrice>;
  /** Reads the vocabulary of the market, once. */
  readonly vocabulary: () => Promise<Vocabulary>;
}

/** Each read is a wait of the writer; more prices at a time gain nothing. */
const PRICES_PER_READ = 16;

const NO_BLOCKS: readonly Block[] = [];

/**
 * All of one market at one revision, in memory. It is immutable: a later edition replaces it, and
 * shares what did not change.
 */
export class Edition implements MarketReader {
  /** The newest revision at which the edition is known to be current. */
  newest: NewestRevision;
  readonly revisions: EditionParts['revisions'];
  readonly prices: EditionParts['prices'];
  readonly vocabulary: EditionParts['vocabulary'];
  /** An estimate of its memory. */
  readonly bytes: number;
  readonly pricesPerRead = PRICES_PER_READ;
  readonly #references: References;
  readonly #inCodeOrder: MarketPrices;

  constructor({ newest, revisions, references, prices, vocabulary }: EditionParts) {
    this.newest = newest;
    this.revisions = revisions;
    this.prices = prices;
    this.vocabulary = vocabulary;
    this.#references = references;
    this.#inCodeOrder = new MarketPrices(inCodeOrder(prices.values()));
    this.bytes = [...prices.values()].reduce((sum, { bytes }) => sum + bytes, OBJECT_BYTES);
  }

  async references(): Promise<References> {
    return this.#references;
  }

  async select(plan: Plan): Promise<readonly SelectedPrice[]> {
    const vocabulary = plan.lists.length === 0 ? null : await this.vocabulary();
    return this.#inCodeOrder.select(plan, vocabulary, codeRangeOf(plan));
  }

  async series(priceIds: readonly number[], { days, last }: SeriesRange) {
    const all = priceIds.map((id) => [id, columnsIn(this.#blocksOf(id), days, last)] as const);
    return new Map(all.filter(([, { length }]) => length > 0));
  }

  /** Yields to the event loop if the list is long. */
  extents(stretches: readonly PriceStretch[]) {
    return mapped(stretches, (each) => extentIn(this.#blocksOf(each.priceId), each));
  }

  #blocksOf(id: number): readonly Block[] {
    return this.prices.get(id)?.blocks ?? NO_BLOCKS;
  }
}
