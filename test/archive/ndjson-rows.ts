import { linesOf } from '../../src/archive/copy.ts';
import type { Column } from '../../src/archive/tables.ts';
import { fieldOf } from './copy-fields.ts';

/** Newer members of `JSON` that keep the source text of a number. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

/** Keeps the digits of numbers, which may lie anywhere in a JSON column. */
const exactly = (_name: string, value: unknown, context?: { source: string }): unknown =>
  typeof value === 'number' && context ? rawJSON(context.source) : value;

/** A member of an object as a text that PostgreSQL takes; null for no value. */
function textOf(value: unknown, { kind, name }: Column): string | null {
  if (value === null) return null;
  if (kind === 'json' || typeof value === 'object') return JSON.stringify(value);
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw new RangeError(`${name} is not a whole number that is exact: ${value}`);
  }
  return String(value);
}

function rowOf(line: string, columns: readonly Column[], isExact: boolean): string {
  const row: unknown = isExact ? JSON.parse(line, exactly) : JSON.parse(line);
  if (typeof row !== 'object' || row === null) throw new TypeError('not an object');
  const fields = columns.map((column) => {
    if (!Object.hasOwn(row, column.name)) throw new TypeError(`${column.name} is missing`);
    return fieldOf(textOf(row[column.name as keyof typeof row], column));
  });
  const names = Object.keys(row);
  if (names.length > columns.length) {
    const strange = names.find((name) => !columns.some((each) => each.name === name));
    throw new TypeError(`${strange} is no column`);
  }
  return `${fields.join('\t')}\n`;
}

/**
 * The objects of an NDJSON file as rows of PostgreSQL's text format, some at once.
 * @throws Error naming the line that is not an object with these members
 */
export async function* ndjsonRows(
  pieces: AsyncIterable<Uint8Array>,
  columns: readonly Column[],
): AsyncGenerator<string> {
  const isExact = columns.some((each) => each.kind === 'json');
  let number = 0;
  for await (const lines of linesOf(pieces)) {
    const rows = lines.map((line) => {
      number += 1;
      try {
        return rowOf(line, columns, isExact);
      } catch (error) {
        throw new Error(`line ${number}: ${(error as Error).message}`, { cause: error });
      }
    });
    yield rows.join('');
  }
}
