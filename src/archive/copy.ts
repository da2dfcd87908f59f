import { escapeIdentifier, escapeLiteral } from 'pg';
import type { ArchiveFormat } from './format.ts';
import type { Column, ColumnKind, Table } from './tables.ts';

type Expressions = Readonly<Partial<Record<ColumnKind, (column: string) => string>>>;

/** Converts the text of a timestamp in UTC to RFC 3339; `infinity` remains unchanged. */
const instant = (column: string): string =>
  `replace(replace(${column}::text, ' ', 'T'), '+00', 'Z')`;
const text = (column: string): string => `${column}::text`;

/** SQL expressions of exported values; kinds without one are exported unchanged. */
const EXPRESSIONS: Readonly<Record<ArchiveFormat, Expressions>> = {
  csv: { boolean: text, instant },
  // Texts, because most JSON parsers convert numbers to binary floating point.
  ndjson: { decimal: text, number: text, instant, bytes: text, text },
  parquet: {
    date: (column) => `${column} - date '1970-01-01'`,
    instant: (column) => `(extract(epoch from ${column}) * 1000000)::bigint`,
    bytes: (column) => `encode(${column}, 'hex')`,
  },
};

/** COPY options. CSV and JSON are written to files; the Parquet encoder reads the text format. */
const OPTIONS: Readonly<Record<ArchiveFormat, string>> = {
  csv: 'format csv, header true',
  // JSON contains no control characters, so these never occur and nothing is quoted.
  ndjson: `format csv, quote e'\\x01', delimiter e'\\x02'`,
  parquet: 'format text',
};

const orderOf = ({ columns, key }: Table): string => {
  const typeOf = new Map(columns.map((each) => [each.name, each.type]));
  const names = key.length > 0 ? key : columns.map((each) => each.name);
  return names
    .map((name) => {
      // Independent of the collation of the database.
      const collation = typeOf.get(name) === 'text' ? ' collate "C"' : '';
      return `t.${escapeIdentifier(name)}${collation}`;
    })
    .join(', ');
};

/** The FROM clause for the archived rows of a table. @param markets null for all */
export function rowsOf(table: Table, markets: readonly string[] | null): string {
  const from = `from ${escapeIdentifier(table.name)} t`;
  if (markets === null || table.ofMarkets === null) return from;
  const slugs = markets.map(escapeLiteral).join(', ');
  return `${from} where ${table.ofMarkets(`select id from market where slug in (${slugs})`)}`;
}

/** The quoted column names as an SQL list. */
export const columnList = (columns: readonly Pick<Column, 'name'>[]): string =>
  columns.map((each) => escapeIdentifier(each.name)).join(', ');

/** The COPY statement that exports a table, ordered by its primary key. */
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
  const rows = `select ${columns.join(', ')} ${rowsOf(table, markets)} order by ${orderOf(table)}`;
  const query = format === 'ndjson' ? `select row_to_json(r) from (${rows}) as r` : rows;
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
/** Longest line in characters, so that a file without line ends does not fill the memory. */
const LINE_MAX = 67_108_864;

/**
 * Splits UTF-8 chunks into lines, and yields the lines that end in each chunk.
 * @throws RangeError for a line of more than 64 Mi characters, TypeError for invalid UTF-8
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

/** Parses a line of PostgreSQL's text format; null for `\N`. */
export function valuesOf(line: string): (string | null)[] {
  const fields = line.split('\t');
  if (!line.includes('\\')) return fields;
  return fields.map((field) => {
    if (field === '\\N') return null;
    return field.replace(/\\(.)/gs, (_, letter: string) => ESCAPED[letter] ?? letter);
  });
}

/** Counts the line ends in a chunk. */
export function lineEnds(piece: Buffer): number {
  let count = 0;
  for (let at = piece.indexOf('\n'); at >= 0; at = piece.indexOf('\n', at + 1)) count += 1;
  return count;
}
