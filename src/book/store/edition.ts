import type { Market } from '../../catalog/markets.ts';
import type { Newest } from '../../db/newest.ts';
import type { SelectedPrice } from '../../prices/select/query.ts';
import type { References } from '../../prices/select/references.ts';
import type { SentAnswers } from '../answer/answers.ts';
import type { LongAnswer } from '../answer/body.ts';
import { outdate } from '../answer/fragment.ts';
import type { RecordHead } from '../answer/heads.ts';
import type { Selection } from '../answer/selection.ts';
import type { Block } from './block.ts';
import { type Budget, OVERHEAD_BYTES, Remembered } from './budget.ts';

/** One price as an edition shows it. */
export interface BookPrice {
  readonly price: SelectedPrice;
  /** Its series, in date order; a block is shared by all editions until a point of it changes. */
  readonly blocks: readonly Block[];
  /**
   * What is remembered of its record, its series aside; shared by the editions between which
   * neither the price nor the reference data changed.
   */
  readonly heads: Map<string, RecordHead>;
  /** Bytes of all this but the heads. */
  readonly bytes: number;
}

/** A price with its series, and nothing remembered of its record yet. */
export const bookPrice = (price: SelectedPrice, blocks: readonly Block[]): BookPrice => ({
  price,
  blocks,
  heads: new Map(),
  bytes: blocks.reduce(
    (sum, block) => sum + block.bytes,
    OVERHEAD_BYTES + 4 * JSON.stringify(price).length,
  ),
});

/** The place of a market in the book: its edition in use, if there is one, and work on another. */
export interface Shelf {
  readonly market: Market;
  readonly budget: Budget;
  /** What was asked for more than once. */
  readonly answers: SentAnswers;
  edition: Edition | null;
  /** The work that ends with another edition; requests share it. */
  work: Promise<void> | null;
  /** Whether requests may wait for it. */
  isShort: Promise<boolean>;
  /** When the market was asked for last and before that, by the count of all requests. */
  asked: number;
  askedBefore: number;
}

/** What an edition is made of. */
interface EditionParts {
  /** The look that it is made for. */
  readonly newest: Newest;
  /** The revisions of the market and of the reference data, which together are its state. */
  readonly state: { readonly market: string; readonly reference: string };
  readonly references: References;
  readonly prices: ReadonlyMap<number, BookPrice>;
  /** Whether any filters select the same prices here as in the edition before. */
  readonly selectsAsBefore: boolean;
}

/**
 * All of one market at one state of the data. What it holds never changes: a newer state is
 * another edition, which takes the place of this one and shares with it whatever is the same.
 */
export class Edition extends Remembered {
  /** The newest look at which nothing of it had changed. */
  newest: Newest;
  readonly state: EditionParts['state'];
  readonly references: References;
  readonly prices: EditionParts['prices'];
  readonly selectsAsBefore: boolean;
  readonly bytes: number;
  /** What filters select, by what they are. */
  readonly selections = new Map<string, Selection>();
  /** How long answers are put together. */
  readonly long = new Map<string, LongAnswer>();
  readonly #shelf: Shelf;

  constructor(shelf: Shelf, parts: EditionParts) {
    super();
    const { newest, state, references, prices } = parts;
    this.#shelf = shelf;
    this.newest = newest;
    this.state = state;
    this.references = references;
    this.prices = prices;
    this.selectsAsBefore = parts.selectsAsBefore;
    this.bytes = [...prices.values()].reduce((sum, { bytes }) => sum + bytes, OVERHEAD_BYTES);
  }

  /** Takes it off its shelf, and all that is remembered of it with it. */
  forget(): void {
    replaceEdition(this.#shelf, null);
  }
}

/** Puts an edition on a shelf, and forgets what it does not share with the one before. */
export function replaceEdition(shelf: Shelf, next: Edition | null): void {
  const { edition: before, budget } = shelf;
  shelf.edition = next;
  if (before) discard(before, next, budget);
  // One that is alone too big for the budget cannot be kept.
  if (next && !budget.add(next)) replaceEdition(shelf, null);
}

function discard(before: Edition, next: Edition | null, budget: Budget): void {
  budget.remove(before);
  for (const long of before.long.values()) {
    budget.remove(long);
    long.forget();
  }
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
    const kept = new Set(after?.blocks);
    for (const block of blocks) if (!kept.has(block)) outdate(block, budget);
  }
}

/** The part of the budget that editions may take; the rest is for what is made of them. */
const EDITIONS_SHARE = 0.6;

/**
 * Bytes that an edition may take. It may drive out only what nobody has asked for since this
 * market was asked for the time before last, or two markets would drive each other out for ever.
 */
export function roomFor(shelf: Shelf, all: Iterable<Shelf>): number {
  let room = EDITIONS_SHARE * shelf.budget.state.limit;
  for (const other of all) {
    if (other === shelf || other.edition === null) continue;
    if (other.asked >= shelf.askedBefore) room -= other.edition.bytes;
  }
  return room;
}
