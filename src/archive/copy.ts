import { escapeIdentifier, escapeLiteral } from 'pg';
import type { ArchiveFormat } from './manifest.ts';
import type { Column, Kind, Table } from './tables.ts';

type Expressions = Readonly<Partial<Record<Kind, (column: string) => string>>>;

/** The text of a timestamp in UTC as RFC 3339; what is no moment, like infinity, stays as it is. */
const instant = (column: string): string =>
  `replace(replace(${column}::text, ' ', 'T'), '+00', 'Z')`;
const text = (column: string): string => `${column}::text`;

/** What PostgreSQL writes of each kind; a kind that is absent is written as it is. */
const EXPRESSIONS: Readonly<Record<ArchiveFormat, Expressions>> = {
  csv: { boolean: text, instant },
  // As texts, for most readers of JSON take a number for a binary one.
  ndjson: { decimal: text, number: text, instant, bytes: text, text },
  parquet: {
    date: (column) => `${column} - date '1970-01-01'`,
    instant: (column) => `(extract(epoch from ${column}) * 1000000)::bigint`,
    bytes: (column) => `encode(${column}, 'hex')`,
  },
};

/** How COPY writes each format: lines of CSV or JSON for a file, its own text for our encoder. */
const OPTIONS: Readonly<Record<ArchiveFormat, string>> = {
  csv: 'format csv, header true',
  // JSON holds no control characters, so nothing is ever quoted.
  ndjson: `format csv, quote e'\\x01', delimiter e'\\x02'`,
  parquet: 'format text',
};

const ordered = ({ columns, key }: Table): string => {
  const typeOf = new Map(columns.map((each) => [each.name, each.type]));
  const names = key.length > 0 ? key : columns.map((each) => each.name);
  return names
    .map((name) => {
      // The same order whatever the collation of the database.
      const collation = typeOf.get(name) === 'text' ? ' collate "C"' : '';
      return `t.${escapeIdentifier(name)}${collation}`;
    })
    .join(', ');
};

/** The rows of a table that an archive carries; `markets` is null when it carries all. */
export function rowsOf(table: Table, markets: readonly string[] | null): string {
  const from = `from ${escapeIdentifier(table.name)} t`;
  if (markets === null || table.ofMarkets === null) return from;
  const slugs = markets.map(escapeLiteral).join(', ');
  return `${from} where ${table.ofMarkets(`select id from market where slug in (${slugs})`)}`;
}

/** The columns of a table, quoted, as a list in SQL. */
export const columnList = (columns: readonly Pick<Column, 'name'>[]): string =>
  columns.map((each) => escapeIdentifier(each.name)).join(', ');

/** The COPY statement that writes a table in a format, in the order of its primary key. */
export function copyStatement(
  table: Table,
  format: ArchiveFormat,
  markets: readonly string[] | null,
): string {
  const expressions = EXPRESSIONS[format];
  const columns = table.columns.map(({ name, kind }) => {
    const column = `t.${escapeIdentifier(name)}`;
    return `${expressions[kind]?.(column) ?? column} as ${escapeIdentifier(name)}`;
  });
  const rows = `select ${columns.join(', ')} ${rowsOf(table, markets)} order by ${ordered(table)}`;
  const query = format === 'ndjson' ? `select row_to_json(line) from (${rows}) as line` : rows;
  return `copy (${query}) to stdout (${OPTIONS[format]}, encoding 'UTF8')`;
}

/** The escape sequences of PostgreSQL's text format, by character. */
const ESCAPED: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};
/** The most characters of one line: a file without ends of lines does not fill the memory. */
const LINE_MAX = 67_108_864;

/**
 * Lines of UTF-8, as many at once as a piece brings.
 * @throws RangeError when a line is longer than 64 Mi characters, TypeError for bytes that are not
 * UTF-8
 */
export async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let rest = '';
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LINE_MAX) throw new RangeError('a line is too long');
    if (lines.length > 0) yield lines;
  }
  rest += decoder.decode();
  if (rest !== '') yield [rest];
}

/** The values of a line of PostgreSQL's text format. */
export function valuesOf(line: string): (string | null)[] {
  const fields = line.split('\t');
  if (!line.includes('\\')) return fields;
  return fields.map((field) => {
    if (field === '\\N') return null;
    return field.replace(/\\(.)/gs, (_, letter: string) => ESCAPED[letter] ?? letter);
  });
}

/** The number of lines that end in a piece of a file or of a COPY. */
export function lineEnds(piece: Buffer): number {
  let count = 0;
  for (let at = piece.indexOf('\n'); at >= 0; at = piece.indexOf('\n', at + 1)) count += 1;
  return count;
}
