import { CSV_GROUPS, csvColumns, dimensionFields } from '../../contract/schemas/formats.ts';
import { NO_DAY } from '../../conversion/calendar.ts';
import { isUnconverted, type PointColumns } from '../../conversion/columns.ts';
import { ascii, ByteWriter } from './bytes.ts';
import type { Contents, Terms, Writer } from './contents.ts';
import { csvCell, reasonOf, sharedValues } from './rows.ts';

/** The cells that all rows of a price have in common, with the commas around them. */
interface CommonCells {
  readonly code: Buffer;
  readonly terms: Buffer;
  readonly about: Buffer;
  /** The cells after those of the point, of a price without points. */
  readonly withoutPoints: Buffer;
  /** The same of a point that could be converted, and of one that could not. */
  readonly converted: Buffer;
  readonly unconverted: Buffer;
}

/** Upper bound of the bytes of the cells of one point, without wide numbers. */
const POINT_BYTES_MAX = 480;
/** Usual size of the cells of a point. */
const POINT_BYTES = 80;

/** Bytes of a slice. A larger slice would be held in memory for each slow reader. */
const SLICE_BYTES = 65_536;

const COMMA = 0x2c;
const NO_VALUES = ascii(',,,');
const NO_PUBLICATION = ascii(',');
const NO_PERIOD_AND_RATES = ascii(',,,,,,');
const NO_PERIOD = ascii(',,,');
const NO_RATES = ascii(',,,');
const ROW_END = ascii('\r\n');

const out = new ByteWriter('');

function writePeriod({ periods }: PointColumns, index: number): void {
  if (!periods) {
    out.put(NO_PERIOD);
    return;
  }
  out.day(periods.start[index] as number);
  out.byte(COMMA);
  out.day(periods.end[index] as number);
  out.byte(COMMA);
  out.integer(periods.observations[index] as number);
  out.byte(COMMA);
}

function writeRates({ fx }: PointColumns, index: number, base: Buffer, room: number): void {
  const day = fx?.day[index];
  if (!fx || day === undefined || day === NO_DAY) {
    out.put(NO_RATES);
    return;
  }
  out.day(day);
  out.put(base);
  out.number(fx.from, index, room);
  out.byte(COMMA);
  out.number(fx.to, index, room);
}

function writeRow(
  points: PointColumns,
  index: number,
  cells: CommonCells,
  base: Buffer,
  room: number,
): void {
  out.reserve(room);
  out.put(cells.code);
  out.day(points.day[index] as number);
  for (const column of [points.low, points.mid, points.high]) {
    out.byte(COMMA);
    out.number(column, index, room);
  }
  out.put(cells.terms);
  out.instant(points.publishedAt[index] as number);
  out.byte(COMMA);
  out.integer(points.corrections[index] as number);
  out.put(cells.about);
  writePeriod(points, index);
  writeRates(points, index, base, room);
  out.put(isUnconverted(points, index) ? cells.unconverted : cells.converted);
  out.byte(COMMA);
  const leftOut = points.periods?.leftOut[index] ?? 0;
  if (leftOut > 0) out.integer(leftOut);
  out.put(ROW_END);
}

const lengthOf = ({ code, terms, about, unconverted }: CommonCells): number =>
  code.length + terms.length + about.length + unconverted.length;

/**
 * The rows of one price as CSV, in slices: one for each point, or one without values where there is
 * none.
 */
function* slicesOfRows(points: PointColumns | null, cells: CommonCells): Generator<Buffer> {
  const { code, terms, about, withoutPoints } = cells;
  if (points === null || points.length === 0) {
    const row = [code, NO_VALUES, terms, NO_PUBLICATION, about, NO_PERIOD_AND_RATES];
    yield Buffer.concat([...row, withoutPoints, NO_PUBLICATION, ROW_END]);
    return;
  }
  const common = lengthOf(cells);
  const room = common + POINT_BYTES_MAX;
  const base = points.fx === null ? NO_RATES : ascii(`,${points.fx.pair.base},`);
  for (let index = 0; index < points.length; ) {
    const usual = (points.length - index) * (common + POINT_BYTES);
    out.begin(Math.min(usual, SLICE_BYTES) + room);
    while (index < points.length && out.written < SLICE_BYTES) {
      writeRow(points, index, cells, base, room);
      index += 1;
    }
    yield out.end();
  }
}

/** The rows of one record: one for each point, and one without values where there is none. */
function* recordRows(terms: Terms, contents: Contents): Generator<Buffer> {
  const shared = sharedValues(terms, contents);
  const { receipt, points } = contents;
  const cells = (names: readonly string[], values = shared): string =>
    names.map((name) => csvCell(values[name] ?? null)).join(',');
  const endCells = (conversionReason: string | null): Buffer => {
    const conversion = receipt === null ? {} : { conversionReason };
    const values = { ...shared, ...conversion };
    return Buffer.from(`,${cells([...CSV_GROUPS.conversion, ...CSV_GROUPS.summary], values)}`);
  };
  const described = [
    ...CSV_GROUPS.names,
    ...dimensionFields(terms.plan.market),
    ...CSV_GROUPS.about,
  ];
  yield* slicesOfRows(points, {
    code: Buffer.from(`${cells(['code'])},`),
    terms: Buffer.from(`,${cells(CSV_GROUPS.terms)},`),
    about: Buffer.from(`,${cells(described)},`),
    withoutPoints: endCells(receipt?.reason ?? null),
    converted: endCells(reasonOf(receipt)),
    unconverted: endCells('no-rate'),
  });
}

const NOTHING = Buffer.alloc(0);

/** `text/csv` as RFC 4180 has it, with a row of column names. */
export const csvWriter: Writer = {
  head: ({ context }) => [Buffer.from(`${csvColumns(context.plan.market).join(',')}\r\n`)],
  record: recordRows,
  between: NOTHING,
  end: NOTHING,
};
