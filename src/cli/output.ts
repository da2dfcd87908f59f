import { once } from 'node:events';

/** Prints any number of lines; as arguments, more than some 100,000 would overflow the stack. */
export function printAll(lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(''));
}

/** Prints lines of text. */
export const printLines = (...lines: readonly string[]): void => printAll(lines);

/** Reports on stderr which sessions a command waits for. */
export function reportHeld(holders: string): void {
  process.stderr.write(`Waiting for a lock that is held by ${holders}\n`);
}

/** Prints a text with backpressure, so that long output is not buffered. */
export async function writeText(text: string): Promise<void> {
  if (process.stdout.write(text)) return;
  await once(process.stdout, 'drain');
}

const cellOf = (value: unknown): string => {
  if (value === null || value === undefined || value === '') return '–';
  return Array.isArray(value) ? value.join(' ') : String(value);
};

/** Formats an instant (RFC 3339 in UTC) to the second: `2026-03-05T16:00:00Z`. */
export const timeText = (instant: string): string => `${instant.slice(0, 19)}Z`;

/** A whole number, in groups of three digits. */
export const countText = (value: number): string => Math.floor(value).toLocaleString('en');

/** True for a column of numbers, which is right-aligned. */
const areNumbers = (cells: readonly string[]): boolean =>
  cells.some((each) => each !== '–') && cells.every((each) => /^(–|[\d,]+(\.\d+)?)$/.test(each));

/** Prints a table with headings; columns of numbers are right-aligned. */
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
