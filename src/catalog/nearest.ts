import { distance } from 'fastest-levenshtein';

/** Words that British and American English spell otherwise, and the spelling that is compared. */
const SPELLINGS: readonly (readonly [other: RegExp, one: string])[] = [
  [/sulph/g, 'sulf'],
  [/aluminium/g, 'aluminum'],
  // The tonne as it is called in America; the metric ton unit is another.
  [/\b(metric )?ton\b(?! unit)/g, 'tonne'],
  [/(lit|met)re/g, '$1er'],
];

/** A name as it is compared: in small letters, in one spelling. */
const spelt = (name: string): string =>
  SPELLINGS.reduce((text, [other, one]) => text.replace(other, one), name.toLowerCase());

/**
 * The names nearest to what was sent, best first: those within a third of its length in edits, or
 * that contain it or are contained in it. One that begins with what was sent comes before others.
 * British and American spellings are one.
 */
export function nearest(sent: string, names: Iterable<string>, most: number): string[] {
  const wanted = spelt(sent.slice(0, 128));
  const scored: { name: string; begins: boolean; score: number }[] = [];
  for (const name of names) {
    const candidate = spelt(name);
    const edits = distance(wanted, candidate);
    const near = edits <= Math.max(2, Math.ceil(candidate.length / 3));
    const within = wanted.length >= 3 && (candidate.includes(wanted) || wanted.includes(candidate));
    const begins = wanted !== '' && candidate.startsWith(wanted);
    if (near || within) scored.push({ name, begins, score: near ? edits : edits / 2 + 2 });
  }
  scored.sort(
    (a, b) =>
      Number(b.begins) - Number(a.begins) || a.score - b.score || (a.name < b.name ? -1 : 1),
  );
  return scored.slice(0, most).map((each) => each.name);
}
