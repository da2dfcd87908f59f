import type { Warning } from '../select/warnings.ts';
import { textCell } from './csv-cell.ts';

/** Warnings in one slice: there may be one for each record. */
const WARNINGS_PER_SLICE = 200;

function* slicesOf(warnings: readonly Warning[], line: (warning: Warning) => string) {
  for (let at = 0; at < warnings.length; at += WARNINGS_PER_SLICE) {
    const some = warnings.slice(at, at + WARNINGS_PER_SLICE);
    yield Buffer.from(some.map(line).join(''));
  }
}

/**
 * Warnings as the last rows of a CSV, each in the first cell after `# warning`. No code begins with
 * that text.
 */
export const warningRows = (warnings: readonly Warning[], columns: number): Iterable<Buffer> =>
  slicesOf(warnings, ({ code, pointer, detail }) => {
    const cell = textCell(`# warning ${code} ${pointer}: ${detail}`);
    return `${cell}${','.repeat(columns - 1)}\r\n`;
  });

/** Warnings as the last lines of NDJSON: objects with one member, `warning`. */
export const warningLines = (warnings: readonly Warning[]): Iterable<Buffer> =>
  slicesOf(warnings, (warning) => `${JSON.stringify({ warning })}\n`);
