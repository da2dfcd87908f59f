import { ATTRIBUTE_BITS, type MarketIndex } from './market-index.ts';
import { canBeNear, isNear, withMiddleSwapped } from './words.ts';

/**
 * The cost of a match is the cost of its kind plus the index of its attribute. A match inside a
 * word, a similar match and a missing word each cost more than 16 matches of the kind before, so
 * the worst of these decides.
 */
const EXACT = 0;
const PREFIX = 1 << 5;
const INSIDE = 1 << 10;
const SIMILAR = 1 << 15;
/** The cost of a missing word. */
export const MISSING = 1 << 20;

/** The kinds of matches by their costs, the highest first. */
const KINDS = [
  [SIMILAR, 'similar'],
  [INSIDE, 'inside'],
  [PREFIX, 'prefix'],
  [EXACT, 'exact'],
] as const;

export type MatchKind = (typeof KINDS)[number][1];

/** True if some word of a market matches as it is written. */
export function isKnown(index: MarketIndex, word: string): boolean {
  const [first, end] = beginningWith(index, word);
  return first < end || (word.length >= INSIDE_LENGTH_MIN && index.text.includes(word));
}

/** The attribute index in the cost of a word that is a part of the code: after all others. */
const PART_OF_CODE = (1 << ATTRIBUTE_BITS) - 1;

/** Minimum length of a word that is searched inside other words. */
const INSIDE_LENGTH_MIN = 3;

/** The first number from which on a condition does not hold: a binary search. */
function firstWithout(from: number, to: number, holds: (at: number) => boolean): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The range of words that begin with a text: the first index, and the index after the last. */
function beginningWith({ tokens }: MarketIndex, text: string): readonly [number, number] {
  const first = firstWithout(0, tokens.length, (at) => (tokens[at] as string) < text);
  return [first, firstWithout(first, tokens.length, (at) => tokens[at]?.startsWith(text) ?? false)];
}

/** The index of the word at an offset of the text of all words. */
const wordAt = ({ starts }: MarketIndex, place: number): number =>
  firstWithout(0, starts.length, (at) => (starts[at] as number) <= place) - 1;

/** The indexes of the words that contain a text. A line feed matches the end of a word. */
function* containing(index: MarketIndex, text: string): Generator<number> {
  const { text: all, starts, tokens } = index;
  for (let place = all.indexOf(text); place >= 0; ) {
    const word = wordAt(index, place);
    yield word;
    const end = (starts[word] as number) + (tokens[word] as string).length;
    place = all.indexOf(text, end);
  }
}

/** Calls back with every word that matches as it is written, and the kind of the match. */
function eachMatch(index: MarketIndex, word: string, found: (at: number, kind: number) => void) {
  const [first, end] = beginningWith(index, word);
  for (let at = first; at < end; at += 1) {
    found(at, index.tokens[at] === word ? EXACT : PREFIX);
  }
  if (word.length < INSIDE_LENGTH_MIN) return;
  for (const at of containing(index, word)) if (at < first || at >= end) found(at, INSIDE);
}

/**
 * Calls back with every word that differs from the written one by one typing error. One error
 * changes only one half of a word, unless it swaps the two letters in the middle.
 */
function eachNear(index: MarketIndex, word: string, found: (at: number, kind: number) => void) {
  if (!canBeNear(word)) return;
  const middle = word.length >> 1;
  const check = (at: number): void => {
    if (isNear(word, index.tokens[at] as string)) found(at, SIMILAR);
  };
  for (const beginning of [word.slice(0, middle), withMiddleSwapped(word)]) {
    const [first, end] = beginningWith(index, beginning);
    for (let at = first; at < end; at += 1) check(at);
  }
  for (const at of containing(index, `${word.slice(middle)}\n`)) check(at);
}

/** Words that share a beginning or an end of two letters with a word. */
export function* besideWord(index: MarketIndex, word: string): Generator<string> {
  const [first, end] = beginningWith(index, word.slice(0, 2));
  yield* index.tokens.slice(first, end);
  for (const at of containing(index, `${word.slice(-2)}\n`)) yield index.tokens[at] as string;
}

/** The least cost of a word for each price of a market, and true if any price has it. */
export function costsOf(
  index: MarketIndex,
  word: string,
  withErrors: boolean,
): { readonly costs: Uint32Array; readonly isFound: boolean } {
  const { offsets, postings, prices } = index;
  const costs = new Uint32Array(prices.length).fill(MISSING);
  let isFound = false;
  const found = (at: number, kind: number): void => {
    isFound = true;
    const end = offsets[at + 1] as number;
    for (let entry = offsets[at] as number; entry < end; entry += 1) {
      const posting = postings[entry] as number;
      const attribute = posting & PART_OF_CODE;
      const cost = kind + (attribute === 0 && kind !== EXACT ? PART_OF_CODE : attribute);
      const price = posting >>> ATTRIBUTE_BITS;
      if (cost < (costs[price] as number)) costs[price] = cost;
    }
  };
  eachMatch(index, word, found);
  if (withErrors) eachNear(index, word, found);
  return { costs, isFound };
}

/** The kind of a match and the index of its attribute in `ATTRIBUTES`, from its cost. */
export function matchOf(cost: number): { readonly kind: MatchKind; readonly attribute: number } {
  for (const [least, kind] of KINDS) {
    if (cost < least) continue;
    const attribute = cost - least;
    return { kind, attribute: attribute === PART_OF_CODE ? 0 : attribute };
  }
  throw new Error(`${cost} is no cost`);
}
