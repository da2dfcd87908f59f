import { ascii, ByteWriter } from '../bytes.ts';
import type { WideNotation } from '../wide.ts';
import { dayCell, lettersOf, NUMBER, NUMBER_TEXT } from './cells.ts';
import { namesRow, sheetStart, tableEnd } from './sheet.ts';

/** Widths of the dates and of the numbers, whose names have a code, and currency and unit. */
const [DATE_WIDTH, NUMBER_WIDTH] = [11, 16];

const DAYS_TO_2000 = 10_957;

/**
 * The notation of a wide table as a sheet.
 * @param names those of the columns
 * @param isText writes numbers as texts
 * @param report receives the number of the last row
 */
export function wideSheet(
  names: readonly string[],
  isText: boolean,
  report: (lastRow: number) => void,
): WideNotation {
  const out = new ByteWriter('');
  const { before, after } = isText ? NUMBER_TEXT : NUMBER;
  const references = names.slice(1).map((_, place) => ascii(`<c r="${lettersOf(place + 1)}`));
  const widths = names.map((_, place) => (place === 0 ? DATE_WIDTH : NUMBER_WIDTH));
  const start = sheetStart(widths, { isFrozen: true, isFirst: true }) + namesRow(names);
  let number = ascii('1');
  return {
    out,
    room: 128,
    start: Buffer.from(start),
    rowStart(row, day) {
      number = ascii(String(row + 2));
      out.text(`<row r="${row + 2}"><c r="A${row + 2}${dayCell(day + DAYS_TO_2000)}`);
    },
    cellStart(place, hasValue) {
      if (!hasValue) return;
      out.put(references[place] as Buffer);
      out.put(number);
      out.put(before);
    },
    cellEnd(hasValue) {
      if (hasValue) out.put(after);
    },
    rowEnd: () => out.text('</row>'),
    *end(rows) {
      report(rows + 1);
      yield Buffer.from(tableEnd(names.length, rows + 1));
    },
  };
}
