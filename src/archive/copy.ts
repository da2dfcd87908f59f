import { escapeIdentifier, escapeLiteral } from 'pg';
import type { Column, Table } from './tables.ts';

/** SQL expressions of exported values by type; other types are exported unchanged. */
const EXPRESSIONS: Readonly<Record<string, (column: string) => string>> = {
  boolean: (column) => `${column}::text`,
  // The text of a timestamp in UTC as RFC 3339; `infinity` remains unchanged.
  'timestamp with time zone': (column) => `replace(replace(${column}::text, ' ', 'T'), '+00', 'Z')`,
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

/** The COPY statement that exports a table as CSV, ordered by its primary key. */
export function copyStatement(table: Table, markets: readonly string[] | null): string {
  const columns = table.columns.map(({ name, type }) => {
    const column = `t.${escapeIdentifier(name)}`;
    return `${EXPRESSIONS[type]?.(column) ?? column} as ${escapeIdentifier(name)}`;
  });
  const rows = `select ${columns.join(', ')} ${rowsOf(table, markets)} order by ${orderOf(table)}`;
  return `copy (${rows}) to stdout (format csv, header true, encoding 'UTF8')`;
}

/** Counts the line ends in a chunk. */
export function lineEnds(piece: Buffer): number {
  let count = 0;
  for (let at = piece.indexOf('\n'); at >= 0; at = piece.indexOf('\n', at + 1)) count += 1;
  return count;
}
