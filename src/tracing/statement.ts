/** The longest text of a statement that is shown, in characters. */
const SHOWN_MAX = 2_000;

/** Texts between dollars or quotes, and numbers that are not part of a name or of a parameter. */
const VALUES = new RegExp(
  [
    /(?<![\w$])\$([a-z_]\w*)?\$.*?\$\1\$/,
    /\be'(?:[^'\\]|\\.|'')*'/,
    /'(?:[^']|'')*'/,
    /(?<![\w$."])\d+(?:\.\d+)?\b/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gis',
);

/** A statement as traces show it: with a mark in the place of each value. */
export function withoutValues(statement: string): string {
  return statement.replace(VALUES, '?').slice(0, SHOWN_MAX);
}
