import type { MarketSlug } from '../../catalog/markets.ts';
import { codeKey } from '../../catalog/match-key.ts';
import { nearest } from '../../catalog/nearest.ts';
import { besideWord, costsOf, isKnown, type MatchKind, MISSING, matchOf } from './find.ts';
import { ATTRIBUTES, type FoundPrice, type MarketIndex } from './market-index.ts';
import { canBeNear, isNear, withWords, wordsOf } from './words.ts';

/*
 * Search over the prices of readable markets. `reader.ts` reads the index of a market once for each
 * revision, `find.ts` finds words in it, and this file ranks the results.
 */

/** Most searched words of a text: the sum of their costs must not overflow. */
const WORDS_MAX = 12;

/** Fewest words of a text of which one may be missing, if no price matches all of them. */
const MISSING_WORDS_MIN = 3;

const SUGGESTIONS_MAX = 3;

/** Most known words that are compared with an unknown one. */
const CANDIDATES_MAX = 250;

/** Most unknown words that are searched with typing errors: each costs a search. */
const UNKNOWN_MAX = 3;

/** Most letters that a suggested word may lack: a shorter word means something else. */
const SHORTER_MAX = 2;

/** An attribute of a result that matches, its text, and how. */
interface Matched {
  readonly field: string;
  readonly value: string;
  readonly match: MatchKind;
}

export interface Result {
  readonly market: MarketSlug;
  readonly price: FoundPrice;
  readonly matched: readonly Matched[];
}

interface SearchResults {
  /** The best results. */
  readonly results: readonly Result[];
  /** The number of prices that match. */
  readonly total: number;
  /** True if nothing matches the text as written, but something similar. */
  readonly isApproximate: boolean;
  /** Alternative search texts if nothing matches the text as written. */
  readonly suggestions: readonly string[];
}

/** A price that matches. Ranks order first, the lowest before others, then codes. */
interface Candidate {
  readonly index: MarketIndex;
  readonly number: number;
  readonly rank: number;
  /** True if its name begins with the text. */
  readonly begins: boolean;
  /** The costs of each word, of all prices of the market. */
  readonly byWord: readonly Uint32Array[];
}

/** A text to search for. */
interface SearchText {
  readonly words: readonly string[];
  /** Compared with codes. */
  readonly code: string;
  /** True if codes that begin with the text match too: a text without a digit is a word. */
  readonly beginsCode: boolean;
  /** Compared with the beginnings of names. */
  readonly name: string;
}

/** The ranks of a code that is the text, and of one that begins with it. */
const IS_CODE = -2;
const BEGINS_CODE = -1;

/**
 * Finds prices in the indexes of some markets. All words of the text must match. If no price has
 * them all, words with one typing error match as well, and one of three or more words may be
 * missing.
 * @param resultsMax maximum number of results
 */
export function searchPrices(
  indexes: readonly MarketIndex[],
  text: string,
  resultsMax: number,
): SearchResults {
  const written = wordsOf(text);
  const words = [...new Set(written)].slice(0, WORDS_MAX);
  if (words.length === 0) return { results: [], total: 0, isApproximate: false, suggestions: [] };
  const code = codeKey(text.trim());
  const beginsCode = /\d/.test(code);
  const wanted: SearchText = { words, code, beginsCode, name: written.join(' ') };
  const best = new Best(resultsMax);
  const totalOf = (withErrors: boolean): number =>
    indexes.reduce((sum, index) => sum + search(index, wanted, withErrors, best), 0);
  const exact = totalOf(false);
  const unknown = exact > 0 ? null : unknownOf(indexes, words);
  const total = unknown === null ? exact : totalOf(true);
  return {
    results: best.kept.map(resultOf),
    total,
    isApproximate: exact === 0 && total > 0,
    suggestions: unknown === null ? [] : suggestionsFor(indexes, text, unknown),
  };
}

function rankOf({ code, beginsCode }: SearchText, key: string, cost: number): number {
  if (key === code) return IS_CODE;
  return beginsCode && key.startsWith(code) ? BEGINS_CODE : cost;
}

const codeOf = ({ index, number }: Candidate): string => index.prices[number]?.code ?? '';

/** The order of two results; it depends on nothing but the two. */
function order(one: Candidate, other: Candidate): number {
  if (one.rank !== other.rank) return one.rank - other.rank;
  if (one.begins !== other.begins) return one.begins ? -1 : 1;
  return codeOf(one) < codeOf(other) ? -1 : 1;
}

/** The best of many, without sorting all of them. */
class Best {
  readonly kept: Candidate[] = [];
  readonly #resultsMax: number;
  /** The worst rank that can still enter the list. */
  #rankMax = Number.POSITIVE_INFINITY;

  constructor(resultsMax: number) {
    this.#resultsMax = resultsMax;
  }

  /** False if no candidate of this rank is among the best. */
  admits(rank: number): boolean {
    return rank <= this.#rankMax;
  }

  add(candidate: Candidate): void {
    let at = this.kept.length;
    while (at > 0 && order(candidate, this.kept[at - 1] as Candidate) < 0) at -= 1;
    if (at >= this.#resultsMax) return;
    this.kept.splice(at, 0, candidate);
    if (this.kept.length > this.#resultsMax) this.kept.pop();
    if (this.kept.length === this.#resultsMax) this.#rankMax = this.kept.at(-1)?.rank ?? 0;
  }
}

/** Adds the matching prices of a market; returns how many match. */
function search(index: MarketIndex, wanted: SearchText, withErrors: boolean, best: Best): number {
  const { words } = wanted;
  if (!withErrors && !words.every((word) => isKnown(index, word))) return 0;
  const mayMiss = withErrors && words.length >= MISSING_WORDS_MIN;
  const byWord: Uint32Array[] = [];
  let misses = 0;
  for (const word of words) {
    const { costs, isFound } = costsOf(index, word, withErrors);
    if (!isFound) misses += 1;
    // No price can have enough of the words: the search ends early.
    if (misses > (mayMiss ? 1 : 0)) return 0;
    byWord.push(costs);
  }
  const tooMuch = mayMiss ? 2 * MISSING : MISSING;
  let total = 0;
  for (let number = 0; number < index.prices.length; number += 1) {
    let cost = 0;
    for (const costs of byWord) cost += costs[number] as number;
    if (cost >= tooMuch) continue;
    total += 1;
    const rank = rankOf(wanted, index.codeKeys[number] as string, cost);
    if (!best.admits(rank)) continue;
    const name = index.names[number] as string;
    const begins = name.startsWith(wanted.name) || (withErrors && isNear(words[0] ?? '', name));
    best.add({ index, number, rank, begins, byWord });
  }
  return total;
}

/** The attributes in which words were found, each once, by the first of its words. */
function resultOf({ index, number, byWord }: Candidate): Result {
  const price = index.prices[number] as FoundPrice;
  const matched = new Map<string, Matched>();
  const costs = byWord.map((each) => each[number] as number);
  for (const { kind, attribute } of costs.filter((each) => each < MISSING).map(matchOf)) {
    const [field, textOf] = ATTRIBUTES[attribute] as (typeof ATTRIBUTES)[number];
    const value = textOf(price, index.market) ?? '';
    if (!matched.has(field)) matched.set(field, { field, value, match: kind });
  }
  return { market: index.market.slug, price, matched: [...matched.values()] };
}

/** Known words that are candidates for an unknown one: a bounded number. */
function candidatesFor(indexes: readonly MarketIndex[], word: string): ReadonlySet<string> {
  const candidates = new Set<string>();
  if (!canBeNear(word)) return candidates;
  for (const index of indexes) {
    for (const each of besideWord(index, word)) {
      if (each.length >= word.length - SHORTER_MAX) candidates.add(each);
      if (candidates.size === CANDIDATES_MAX) return candidates;
    }
  }
  return candidates;
}

/** The words that no market has; null if they are too many to be typing errors. */
function unknownOf(indexes: readonly MarketIndex[], words: readonly string[]) {
  const unknown: string[] = [];
  for (const word of words) {
    if (!indexes.some((index) => isKnown(index, word))) unknown.push(word);
    if (unknown.length > UNKNOWN_MAX) return null;
  }
  return unknown;
}

/** Suggested texts: unknown words are replaced by the nearest known ones. */
function suggestionsFor(
  indexes: readonly MarketIndex[],
  text: string,
  unknown: readonly string[],
): readonly string[] {
  const nearTo = new Map<string, readonly string[]>();
  for (const word of unknown) {
    nearTo.set(word, nearest(word, candidatesFor(indexes, word), SUGGESTIONS_MAX));
  }
  if (nearTo.size === 0) return [];
  const suggestions = Array.from({ length: SUGGESTIONS_MAX }, (_, choice) =>
    withWords(text, (word) => {
      const near = nearTo.get(word);
      return near === undefined ? word : (near[choice] ?? near[0] ?? '');
    }),
  );
  return [...new Set(suggestions)].filter((each) => each !== '');
}
