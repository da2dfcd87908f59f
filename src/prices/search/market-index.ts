import { DIMENSIONS } from '../../catalog/dimensions.ts';
import type { Market } from '../../catalog/markets.ts';
import { codeKey } from '../../catalog/match-key.ts';
import { Slice } from '../../std/turns.ts';
import type { SelectedPrice } from '../market/query.ts';
import type { References } from '../market/references.ts';
import { currencyAndUnitOf, membersOf } from '../write/record.ts';
import { wordsOf } from './words.ts';

/** A value that a record refers to. */
interface NamedValue {
  readonly name: string;
}

/** A price as a search result shows it. */
export interface FoundPrice {
  readonly code: string;
  readonly name: string;
  readonly shortName: string | null;
  readonly lastAssessedAt: string | null;
  readonly latestPublishedAt: string | null;
  readonly nextExpectedAt: string | null;
  readonly product: NamedValue & { readonly alias: string; readonly chemicalCode: string };
  readonly unitOfMeasure: NamedValue & { readonly symbol: string };
  readonly currency: (NamedValue & { readonly iso: string }) | null;
  readonly [field: string]: unknown;
}

/** A price as a search result shows it: its record without the long members. */
export function foundPrice(
  market: Market,
  price: SelectedPrice,
  references: References,
): FoundPrice {
  const record = membersOf(market, price, references, currencyAndUnitOf(price, references));
  const { specification: _long, assessmentLaunchedAt: _past, ...others } = record;
  const { observes: _means, vatCountry: _tax, ...shown } = others;
  return shown as unknown as FoundPrice;
}

type TextOf = (price: FoundPrice, market: Market) => string | null;

const nameOf =
  (field: string): TextOf =>
  (price) =>
    (price[field] as NamedValue | null | undefined)?.name ?? null;

const PLACES = ['country', 'region'];

const others = Object.values(DIMENSIONS)
  .map(({ field }) => field)
  .filter((field) => !PLACES.includes(field));

/** The searched attributes and the text of each, the most important first. */
export const ATTRIBUTES: readonly (readonly [field: string, text: TextOf])[] = [
  ['code', ({ code }) => code],
  ['name', ({ name }) => name],
  ['product', nameOf('product')],
  ['alias', ({ product }) => product.alias],
  ['chemicalCode', ({ product }) => product.chemicalCode],
  ['shortName', ({ shortName }) => shortName],
  ...[...PLACES, ...others, 'priceCategory', 'frequency', 'priceType'].map(
    (field): readonly [string, TextOf] => [field, nameOf(field)],
  ),
  ['currency', ({ currency }) => currency && `${currency.iso} ${currency.name}`],
  ['unitOfMeasure', ({ unitOfMeasure: { name, symbol } }) => `${name} ${symbol}`],
  ['market', (_price, { name }) => name],
];

/** Bits of a posting for the index of its attribute in `ATTRIBUTES`. */
export const ATTRIBUTE_BITS = 5;

/** The prices of a market at one revision, and the words of their attributes. Immutable. */
export interface MarketIndex {
  readonly market: Market;
  /** In the order of their codes. */
  readonly prices: readonly FoundPrice[];
  /** The keys of the codes, in the order of the prices. */
  readonly codeKeys: readonly string[];
  /** The words of the names, in the order of the prices. */
  readonly names: readonly string[];
  /** Every word, sorted by its UTF-16 code units. */
  readonly tokens: readonly string[];
  /** All words, each between two line feeds. */
  readonly text: string;
  /** The offset of each word in `text`. */
  readonly starts: Uint32Array;
  /** The first posting of each word, and the end of the last. */
  readonly offsets: Uint32Array;
  /** The number of a price and, in the last bits, of its attribute. */
  readonly postings: Uint32Array;
}

/** Another name: a text with all of `words` is found by `alias` too. */
export interface Alias {
  readonly words: string;
  readonly alias: string;
}

interface AliasWords {
  readonly words: readonly string[];
  readonly alias: readonly string[];
}

/** The aliases of texts, by the first of their words. */
class Aliases {
  readonly #byWord: ReadonlyMap<string | undefined, readonly AliasWords[]>;

  constructor(aliases: readonly Alias[]) {
    const inWords = aliases.map(({ words, alias }) => ({
      words: wordsOf(words),
      alias: wordsOf(alias),
    }));
    this.#byWord = Map.groupBy(inWords, ({ words }) => words[0]);
  }

  /** The words of a text, and those of its aliases. */
  wordsOf(text: string): readonly string[] {
    const own = wordsOf(text);
    const aliases = own.flatMap((word) => this.#byWord.get(word) ?? []);
    if (aliases.length === 0) return own;
    const has = new Set(own);
    const fitting = aliases.filter(({ words }) => words.every((word) => has.has(word)));
    return [...new Set([...own, ...fitting.flatMap(({ alias }) => alias)])];
  }
}

/** The postings of each word, while they are collected. */
class Postings {
  readonly byWord = new Map<string, number[]>();
  /** The words of texts that many prices share. */
  readonly #known = new Map<string, readonly string[]>();
  readonly #aliases: Aliases;

  constructor(aliases: readonly Alias[]) {
    this.#aliases = new Aliases(aliases);
  }

  add(text: string, posting: number, isShared: boolean): void {
    for (const word of isShared ? this.#wordsOf(text) : this.#aliases.wordsOf(text)) {
      const found = this.byWord.get(word);
      if (found === undefined) this.byWord.set(word, [posting]);
      else if (found.at(-1) !== posting) found.push(posting);
    }
  }

  #wordsOf(text: string): readonly string[] {
    const known = this.#known.get(text) ?? this.#aliases.wordsOf(text);
    this.#known.set(text, known);
    return known;
  }
}

const OF_ONE_PRICE = ['code', 'name', 'shortName'];

/** Collects the postings of all prices, in slices. */
async function collected(
  market: Market,
  prices: readonly FoundPrice[],
  aliases: readonly Alias[],
  slice: Slice,
) {
  const postings = new Postings(aliases);
  for (const [number, price] of prices.entries()) {
    for (const [place, [field, textOf]] of ATTRIBUTES.entries()) {
      const text = textOf(price, market);
      if (text === null) continue;
      const posting = (number << ATTRIBUTE_BITS) | place;
      postings.add(text, posting, !OF_ONE_PRICE.includes(field));
    }
    if (slice.isOver) await slice.yieldIfOver();
  }
  return postings.byWord;
}

/**
 * Builds the index of a market from its prices in the order of their codes, in slices.
 * @param aliases other names of its texts
 */
export async function indexOf(
  market: Market,
  prices: readonly FoundPrice[],
  aliases: readonly Alias[],
): Promise<MarketIndex> {
  const slice = new Slice();
  const byWord = await collected(market, prices, aliases, slice);
  const tokens = [...byWord.keys()].sort();
  await slice.yieldIfOver();
  const starts = new Uint32Array(tokens.length);
  const offsets = new Uint32Array(tokens.length + 1);
  const sum = [...byWord.values()].reduce((total, { length }) => total + length, 0);
  const postings = new Uint32Array(sum);
  let start = 1;
  for (const [at, token] of tokens.entries()) {
    const own = byWord.get(token) ?? [];
    const offset = offsets[at] ?? 0;
    postings.set(own, offset);
    offsets[at + 1] = offset + own.length;
    starts[at] = start;
    start += token.length + 1;
    if (slice.isOver) await slice.yieldIfOver();
  }
  return {
    market,
    prices,
    codeKeys: prices.map(({ code }) => codeKey(code)),
    names: prices.map(({ name }) => wordsOf(name).join(' ')),
    tokens,
    text: `\n${tokens.join('\n')}\n`,
    starts,
    offsets,
    postings,
  };
}
