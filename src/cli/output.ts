import { once } from 'node:events';

/** Prints data for a program. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}

/** Prints lines for a person. */
export function printLines(...lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(''));
}

/** Reports on stderr which sessions a command waits for. */
export function tellHeld(holders: string): void {
  process.stderr.write(`Waiting for a lock that is held by ${holders}\n`);
}

/** Prints a text, and waits when the reader is behind: what is long must not pile up. */
export async function writeText(text: string): Promise<void> {
  if (process.stdout.write(text)) return;
  await once(process.stdout, 'drain');
}

const cellOf = (value: unknown): string => {
  if (value === null || value === undefined || value === '') return '–';
  return Array.isArray(value) ? value.join(' ') : String(value);
};

/** An instant (RFC 3339 in UTC) as a person is told it, to the second: `2026-03-05T16:00:00Z`. */
export const timeText = (instant: string): string => `${instant.slice(0, 19)}Z`;

/** A whole number, in groups of three digits. */
export const countText = (value: number): string => Math.floor(value).toLocaleString('en');

/** True if the cells of a column are numbers, so that they stand at its right. */
const areNumbers = (cells: readonly string[]): boolean =>
  cells.some((each) => each !== '–') && cells.every((each) => /^(–|[\d,]+(\.\d+)?)$/.test(each));

/** Prints rows under headings, in columns as wide as their longest cell; numbers end together. */
export function printTable<T extends object>(
  rows: readonly T[],
  columns: Readonly<Record<string, (row: T) => unknown>>,
): void {
  const headings = Object.keys(columns);
  const cells = rows.map((row) => headings.map((name) => cellOf(columns[name]?.(row))));
  const widths = headings.map((name, at) =>
    Math.max(name.length, ...cells.map((line) => line[at]?.length ?? 0)),
  );
  const isNumber = headings.map((_, at) => areNumbers(cells.map((line) => line[at] ?? '–')));
  const fill = (cell: string, at: number): string =>
    isNumber[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0);
  const lineOf = (line: readonly string[]): string => line.map(fill).join('  ').trimEnd();
  printLines(lineOf(headings.map((name) => name.toUpperCase())), ...cells.map(lineOf));
}
