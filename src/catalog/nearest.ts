import { distance } from 'fastest-levenshtein';

/** Different British and American spellings, and the one that is compared. */
const SPELLINGS: readonly (readonly [other: RegExp, one: string])[] = [
  [/sulph/g, 'sulf'],
  [/aluminium/g, 'aluminum'],
  // The American name of the tonne; the metric ton unit is a different unit.
  [/\b(metric )?ton\b(?! unit)/g, 'tonne'],
  [/(lit|met)re/g, '$1er'],
];

/** Most compared characters of a text. */
const LENGTH_MAX = 64;

/** Finds texts with a spelling to replace; most have none. */
const HAS_OTHER_SPELLING = /sulph|aluminium|ton|tre/;

/** A lower-case text in the compared spelling. */
export function inOneSpelling(small: string): string {
  if (!HAS_OTHER_SPELLING.test(small)) return small;
  return SPELLINGS.reduce((text, [other, one]) => text.replace(other, one), small);
}

/** The compared form of a name: lower case, in one spelling. */
const spelt = (name: string): string => inOneSpelling(name.slice(0, LENGTH_MAX).toLowerCase());

/** Words without a letter in an abbreviation. */
const SMALL_WORDS: ReadonlySet<string> = new Set(['and', 'of', 'the']);

/** The first letters of the words of a name; empty for a single word. */
function initialsOf(text: string): string {
  const words = text.split(/[^\p{L}]+/u).filter((word) => word !== '' && !SMALL_WORDS.has(word));
  return words.length < 2 ? '' : words.map((word) => word[0]).join('');
}

/** A name and its compared forms. */
interface NameEntry {
  readonly name: string;
  readonly text: string;
  readonly initials: string;
}

/** A similar name and its distance; the nearest sorts first. */
interface Near {
  readonly name: string;
  readonly begins: boolean;
  readonly score: number;
}

/** The distance of a name from the sent text; null if it is not similar. */
function nearOf(wanted: string, { name, text, initials }: NameEntry): Near | null {
  const begins = wanted.length >= 2 && text.startsWith(wanted);
  // "USA" matches the United States like "US".
  const isShort = initials !== '' && wanted.length <= initials.length + 1;
  if (isShort && wanted.startsWith(initials)) return { name, begins: true, score: 0 };
  const editsMax = Math.max(2, Math.ceil(text.length / 3));
  const isAlike = Math.abs(text.length - wanted.length) <= editsMax;
  const edits = isAlike ? distance(wanted, text) : editsMax + 1;
  if (edits <= editsMax) return { name, begins, score: edits };
  const isPart = wanted.length >= 3 && (text.includes(wanted) || wanted.includes(text));
  if (!begins && !isPart) return null;
  return { name, begins, score: Math.abs(text.length - wanted.length) / 2 + 2 };
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** Longest list whose names have abbreviations; a longer one has codes. */
const ABBREVIATED_MAX = 500;

/** Names for suggestions. A search compares all of them. */
export class Names {
  readonly #entries: readonly NameEntry[];

  constructor(names: Iterable<string>) {
    const all = [...names];
    const areFew = all.length <= ABBREVIATED_MAX;
    this.#entries = all.map((name) => {
      const text = spelt(name);
      return { name, text, initials: areFew ? initialsOf(text) : '' };
    });
  }

  /**
   * The names nearest to the sent text, best first. They are within edits of a third of their
   * length, contain the text, are contained in it, or are abbreviated by it. Names that start with
   * the text come first. British and American spellings are equal.
   */
  nearest(sent: string, namesMax: number): string[] {
    const wanted = spelt(sent);
    const found: Near[] = [];
    for (const entry of this.#entries) {
      const near = nearOf(wanted, entry);
      if (near !== null) found.push(near);
    }
    found.sort(
      (a, b) => Number(b.begins) - Number(a.begins) || a.score - b.score || compare(a.name, b.name),
    );
    return found.slice(0, namesMax).map((each) => each.name);
  }
}

/** The nearest names of a short list, as `Names` finds them. */
export const nearest = (sent: string, names: Iterable<string>, namesMax: number): string[] =>
  new Names(names).nearest(sent, namesMax);

/** A question with up to three similar names; empty if none is similar. */
export function didYouMean(written: string, names: Iterable<string>): string {
  const found = nearest(written, names, 3).map((name) => `"${name}"`);
  return found.length === 0 ? '' : `; did you mean ${found.join(' or ')}?`;
}
