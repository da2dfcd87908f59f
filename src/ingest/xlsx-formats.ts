/** What a number in a cell is, by the way in which the spreadsheet program shows it. */
export type NumberKind = 'number' | 'percent' | 'date' | 'time' | 'date-time';

/** Formats that no workbook writes out (ECMA-376 part 1, 18.8.30); the others are numbers. */
const BUILT_IN: readonly (readonly [from: number, to: number, NumberKind])[] = [
  [9, 10, 'percent'],
  [14, 17, 'date'],
  [18, 21, 'time'],
  [22, 22, 'date-time'],
  // East Asian formats: what they show depends on the language, and is always a date or a time.
  [27, 31, 'date'],
  [32, 33, 'time'],
  [34, 36, 'date'],
  [45, 47, 'time'],
  [50, 58, 'date'],
];

/** The kind of a format that a workbook refers to by a number of its own. */
export const builtInKind = (id: number): NumberKind =>
  BUILT_IN.find(([from, to]) => id >= from && id <= to)?.[2] ?? 'number';

/** Hours, minutes or seconds that count on beyond a day or an hour: `[h]:mm`. */
const ELAPSED = /\[(?:h+|m+|s+)\]/i;
/** What is shown as it stands or not at all: quoted and escaped text, fillers, colours, locales. */
const LITERAL = /"[^"]*"?|[\\_*].|\[[^\]]*\]?|AM\/PM|A\/P/gi;

/** The kind of a format that is written out: `dd/mm/yyyy` is a date, `0.0%` a percentage. */
export function kindOfFormat(code: string): NumberKind {
  // What follows a semicolon is for negative numbers, zero and text.
  const first = code.replace(/"[^"]*"?|\\./g, ' ').split(';')[0] ?? '';
  const letters = first.replace(LITERAL, ' ').toLowerCase();
  if (letters.includes('general')) return 'number';
  const hasTime = ELAPSED.test(first) || /[hs]/.test(letters);
  // An m beside hours or seconds means minutes, alone it is a month.
  const hasDate = /[yd]/.test(letters) || (!hasTime && letters.includes('m'));
  if (hasDate) return hasTime ? 'date-time' : 'date';
  if (hasTime) return 'time';
  return letters.includes('%') ? 'percent' : 'number';
}
