import type { Market } from '../catalog/markets.ts';
import type { NewestRevision } from '../db/newest-revision.ts';
import type { DataRevision } from '../db/revisions.ts';
import { type LazyDatabase, type SelectedPrice, selectIds } from '../prices/market/query.ts';
import type { References } from '../prices/market/references.ts';
import type { Selection } from '../prices/market/select.ts';
import { type Unmatched, unmatchedIn } from '../prices/market/unmatched.ts';
import type { VocabularyReader } from '../prices/market/vocabulary.ts';
import type { Plan } from '../prices/plan/plan.ts';
import type { Block } from './block.ts';
import { type Budget, CacheEntry, OVERHEAD_BYTES } from './budget.ts';
import { outdate } from './fragment.ts';

/** One price of an edition. */
export interface BookPrice {
  readonly price: SelectedPrice;
  /** Its series, in date order. Editions share a block until one of its points changes. */
  readonly blocks: readonly Block[];
  /** Its cached heads and cells. Editions share them until the price or reference data changes. */
  readonly heads: Map<string, CacheEntry>;
  /** Bytes without the heads. */
  readonly bytes: number;
}

/** A price with its series and no cached heads. */
export const bookPrice = (price: SelectedPrice, blocks: readonly Block[]): BookPrice => ({
  price,
  blocks,
  heads: new Map(),
  bytes: blocks.reduce(
    (sum, block) => sum + block.bytes,
    OVERHEAD_BYTES + 4 * JSON.stringify(price).length,
  ),
});

/** A market in the book: its current edition, if any, and the build of the next. */
export interface MarketSlot {
  readonly market: Market;
  readonly budget: Budget;
  edition: Edition | null;
  /** The build or refresh in progress. Concurrent requests share it. */
  work: Promise<void> | null;
  /** Resolves to true if the work is short enough for requests to wait for it. */
  isShort: Promise<boolean>;
  /** Numbers of the last request of this market and of the request before it. */
  lastRequest: number;
  requestBefore: number;
}

interface EditionParts {
  /** The newest revision when the edition was read. */
  readonly newest: NewestRevision;
  /** The revisions of the market and of the reference data. */
  readonly revisions: { readonly market: string; readonly reference: string };
  readonly references: References;
  readonly prices: ReadonlyMap<number, BookPrice>;
  /** True if all filters select the same prices as in the previous edition. */
  readonly selectsAsBefore: boolean;
}

/**
 * All of one market at one revision. An edition is immutable. A later edition replaces it and
 * shares the parts that did not change.
 */
export class Edition extends CacheEntry {
  /** The newest revision at which the edition is known to be current. */
  newest: NewestRevision;
  readonly revisions: EditionParts['revisions'];
  readonly references: References;
  readonly prices: EditionParts['prices'];
  readonly selectsAsBefore: boolean;
  readonly bytes: number;
  /** The cached selections, by filters. */
  readonly selections = new Map<string, CachedSelection>();
  readonly #slot: MarketSlot;

  constructor(slot: MarketSlot, parts: EditionParts) {
    super();
    const { newest, revisions, references, prices } = parts;
    this.#slot = slot;
    this.newest = newest;
    this.revisions = revisions;
    this.references = references;
    this.prices = prices;
    this.selectsAsBefore = parts.selectsAsBefore;
    this.bytes = [...prices.values()].reduce((sum, { bytes }) => sum + bytes, OVERHEAD_BYTES);
  }

  /** Removes the edition from its slot, with every entry that is cached for it. */
  detach(): void {
    replaceEdition(this.#slot, null);
  }
}

/** Puts an edition into a slot. Drops the entries that it does not share with the previous one. */
export function replaceEdition(slot: MarketSlot, next: Edition | null): void {
  const { edition: before, budget } = slot;
  slot.edition = next;
  if (before) discard(before, next, budget);
  // An edition that alone exceeds the budget cannot stay.
  if (next && !budget.add(next)) replaceEdition(slot, null);
}

function discard(before: Edition, next: Edition | null, budget: Budget): void {
  budget.remove(before);
  for (const selection of before.selections.values()) {
    if (next?.selectsAsBefore) selection.moveTo(next.selections);
    else budget.remove(selection);
  }
  before.selections.clear();
  for (const [id, { blocks, heads }] of before.prices) {
    const after = next?.prices.get(id);
    if (after?.heads !== heads) {
      for (const head of heads.values()) budget.remove(head);
      heads.clear();
    }
    if (after?.blocks === blocks) continue;
    const shared = new Set(after?.blocks);
    for (const block of blocks) if (!shared.has(block)) outdate(block, budget);
  }
}

/** The share of the budget for editions; the rest is for the entries that are made from them. */
const EDITIONS_SHARE = 0.6;

/**
 * Bytes that a new edition may take. It may evict only markets without a request since the request
 * before last of this market; otherwise two markets would evict each other forever.
 */
export function roomFor(slot: MarketSlot, all: Iterable<MarketSlot>): number {
  let room = EDITIONS_SHARE * slot.budget.state.limit;
  for (const other of all) {
    if (other === slot || other.edition === null) continue;
    if (other.lastRequest >= slot.requestBefore) room -= other.edition.bytes;
  }
  return room;
}

/**
 * The prices that filters select, with the unmatched values. Valid while filters select the same.
 */
class CachedSelection extends CacheEntry {
  readonly unmatched: readonly Unmatched[];
  readonly bytes: number;
  readonly #ids: readonly number[];
  readonly #key: string;
  #cache: Map<string, CachedSelection>;
  #edition: Edition | null = null;
  #prices: readonly SelectedPrice[] = [];

  constructor(
    cache: Map<string, CachedSelection>,
    key: string,
    ids: readonly number[],
    found: Selection,
  ) {
    super();
    this.#cache = cache;
    this.#key = key;
    this.#ids = ids;
    this.unmatched = found.unmatched;
    const warnings = found.unmatched.length > 0 ? JSON.stringify(found.unmatched) : '';
    this.bytes = OVERHEAD_BYTES + 16 * ids.length + 2 * key.length + 4 * warnings.length;
  }

  /** The selected prices, with their values in an edition. */
  pricesIn(edition: Edition): readonly SelectedPrice[] {
    if (this.#edition !== edition) {
      this.#prices = this.#ids.map((id) => priceIn(edition, id));
      this.#edition = edition;
    }
    return this.#prices;
  }

  /** Moves it to the cache of an edition in which the filters select the same. */
  moveTo(cache: Map<string, CachedSelection>): void {
    this.#cache = cache;
    // It must not retain the previous edition.
    this.#edition = null;
    this.#prices = [];
    cache.set(this.#key, this);
  }

  detach(): void {
    this.#cache.delete(this.#key);
  }
}

function priceIn(edition: Edition, id: number): SelectedPrice {
  const found = edition.prices.get(id)?.price;
  if (found) return found;
  // Only a database that was replaced without a new epoch has another price.
  edition.detach();
  throw new Error(`the book has no price ${id}`);
}

/** The filters as text. Values count as they were sent, because warnings quote them. */
const keyOf = ({ codes, lists }: Plan): string =>
  JSON.stringify([codes, ...lists.map(({ name, values }) => [name, values])]);

/** Selects the prices of a plan in an edition, from the cache or by a query of the database. */
export async function selectIn(
  lazyDb: LazyDatabase,
  edition: Edition,
  plan: Plan,
  data: DataRevision,
  vocabularies: VocabularyReader,
  budget: Budget,
): Promise<Selection> {
  const { selections } = edition;
  const key = keyOf(plan);
  const known = selections.get(key);
  if (known) {
    budget.use(known);
    return { prices: known.pricesIn(edition), unmatched: known.unmatched };
  }
  const ids = await selectIds(lazyDb(), plan, data.revision);
  const prices = ids.map((id) => priceIn(edition, id));
  const found = { prices, unmatched: await unmatchedIn(lazyDb, vocabularies, plan, data, prices) };
  // Another market may add an unmatched code later, which creates no edition of this market.
  if (plan.codes !== null && found.unmatched.length > 0) return found;
  const selection = new CachedSelection(selections, key, ids, found);
  // An edition that was replaced during the query caches nothing.
  if (edition.budget === budget && budget.add(selection)) {
    if (edition.budget === budget) selections.set(key, selection);
    else budget.remove(selection);
  }
  return found;
}
