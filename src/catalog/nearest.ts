import { distance } from 'fastest-levenshtein';

/** Words that British and American English spell otherwise, and the spelling that is compared. */
const SPELLINGS: readonly (readonly [other: RegExp, one: string])[] = [
  [/sulph/g, 'sulf'],
  [/aluminium/g, 'aluminum'],
  // The tonne as it is called in America; the metric ton unit is another.
  [/\b(metric )?ton\b(?! unit)/g, 'tonne'],
  [/(lit|met)re/g, '$1er'],
];

/** Characters of a text that are compared. */
const LENGTH_MAX = 64;

/** What every text has that is spelt otherwise: most have none of it. */
const SPELT_OTHERWISE = /sulph|aluminium|ton|tre/;

/** A text in small letters, in the spelling that is compared. */
export function inOneSpelling(small: string): string {
  if (!SPELT_OTHERWISE.test(small)) return small;
  return SPELLINGS.reduce((text, [other, one]) => text.replace(other, one), small);
}

/** A name as it is compared: in small letters, in one spelling. */
const spelt = (name: string): string => inOneSpelling(name.slice(0, LENGTH_MAX).toLowerCase());

/** Words that have no letter in an abbreviation. */
const SMALL_WORDS: ReadonlySet<string> = new Set(['and', 'of', 'the']);

/** The first letters of the words of a name; empty for a single word. */
function initialsOf(text: string): string {
  const words = text.split(/[^\p{L}]+/u).filter((word) => word !== '' && !SMALL_WORDS.has(word));
  return words.length < 2 ? '' : words.map((word) => word[0]).join('');
}

/** A name, and how it is compared. */
interface Entry {
  readonly name: string;
  readonly text: string;
  readonly initials: string;
}

/** A name that is near, and how near; what is nearest sorts first. */
interface Near {
  readonly name: string;
  readonly begins: boolean;
  readonly score: number;
}

/** How near a name is to what was sent; null where it is not. */
function nearOf(wanted: string, { name, text, initials }: Entry): Near | null {
  const begins = wanted.length >= 2 && text.startsWith(wanted);
  // "USA" is the United States as well as "US".
  const isShort = initials !== '' && wanted.length <= initials.length + 1;
  if (isShort && wanted.startsWith(initials)) return { name, begins: true, score: 0 };
  const most = Math.max(2, Math.ceil(text.length / 3));
  const isAlike = Math.abs(text.length - wanted.length) <= most;
  const edits = isAlike ? distance(wanted, text) : most + 1;
  if (edits <= most) return { name, begins, score: edits };
  const isPart = wanted.length >= 3 && (text.includes(wanted) || wanted.includes(text));
  if (!begins && !isPart) return null;
  return { name, begins, score: Math.abs(text.length - wanted.length) / 2 + 2 };
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** The order of two texts by their last characters, then those before. */
function compareEnds(one: string, other: string): number {
  for (let at = 1; at <= one.length && at <= other.length; at += 1) {
    const difference = one.charCodeAt(one.length - at) - other.charCodeAt(other.length - at);
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}

type Order = (one: string, other: string) => number;

/** Up to so many names all of them are compared; of more, those beside what was sent. */
const COMPARED_ALL = 500;
/** Names compared on each side of what was sent, in each of two orders. */
const COMPARED_BESIDE = 100;

/** The entries beside a text in a sorted list. */
function beside(wanted: string, sorted: readonly Entry[], order: Order): readonly Entry[] {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (order((sorted[middle] as Entry).text, wanted) < 0) from = middle + 1;
    else to = middle;
  }
  return sorted.slice(Math.max(0, from - COMPARED_BESIDE), from + COMPARED_BESIDE);
}

/**
 * Names to suggest from. A search compares a bounded number of them, however many there are: a
 * mistyped name has its beginning or its end in common with the one that was meant, so it stands
 * beside it in the order of beginnings or of ends.
 */
export class Names {
  readonly #entries: readonly Entry[];
  #byEnd: readonly Entry[] | null = null;

  constructor(names: Iterable<string>) {
    const all = [...names];
    const areFew = all.length <= COMPARED_ALL;
    this.#entries = all.map((name) => {
      const text = spelt(name);
      return { name, text, initials: areFew ? initialsOf(text) : '' };
    });
    if (!areFew) this.#entries = this.#entries.toSorted((a, b) => compare(a.text, b.text));
  }

  #candidates(wanted: string): Iterable<Entry> {
    if (this.#entries.length <= COMPARED_ALL) return this.#entries;
    this.#byEnd ??= this.#entries.toSorted((one, other) => compareEnds(one.text, other.text));
    return new Set([
      ...beside(wanted, this.#entries, compare),
      ...beside(wanted, this.#byEnd, compareEnds),
    ]);
  }

  /**
   * The names nearest to what was sent, best first: those within a third of its length in edits,
   * that contain it or are contained in it, or that it abbreviates. One that begins with what was
   * sent comes before others. British and American spellings are one.
   */
  nearest(sent: string, most: number): string[] {
    const wanted = spelt(sent);
    const found: Near[] = [];
    for (const entry of this.#candidates(wanted)) {
      const near = nearOf(wanted, entry);
      if (near !== null) found.push(near);
    }
    found.sort(
      (a, b) => Number(b.begins) - Number(a.begins) || a.score - b.score || compare(a.name, b.name),
    );
    return found.slice(0, most).map((each) => each.name);
  }
}

/** The names of a short list that are nearest to what was sent, as `Names` finds them. */
export const nearest = (sent: string, names: Iterable<string>, most: number): string[] =>
  new Names(names).nearest(sent, most);

/** A question that offers up to three names like the written one; empty if none is near. */
export function didYouMean(written: string, names: Iterable<string>): string {
  const found = nearest(written, names, 3).map((name) => `"${name}"`);
  return found.length === 0 ? '' : `; did you mean ${found.join(' or ')}?`;
}
