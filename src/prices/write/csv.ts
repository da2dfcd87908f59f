import { CSV_GROUPS, csvColumns, dimensionFields } from '../../contract/schemas/formats.ts';
import { NO_DAY } from '../../conversion/calendar.ts';
import { isUnconverted, type PointColumns } from '../../conversion/columns.ts';
import type { RenderContext } from '../answer/answer.ts';
import type { Plan } from '../plan/plan.ts';
import { ascii, ByteWriter, COMMA, POINT_BYTES_MAX, slicesOf } from './bytes.ts';
import type { Description, Writer } from './points.ts';
import { csvCell, reasonOf, sharedValues } from './rows.ts';

/** The cells that all rows of a price have in common, with the commas around them. */
interface CommonCells {
  readonly code: Buffer;
  readonly currencyAndUnit: Buffer;
  /** The description of the price. */
  readonly about: Buffer;
  /** The row of a price without points. */
  readonly withoutPoints: Buffer;
  /** The cells after those of a point, with and without a successful conversion. */
  readonly converted: Buffer;
  readonly unconverted: Buffer;
  /** The end of the row of a point without a computed number. */
  readonly nativeEnd: Buffer;
}

/** Usual size of the cells of a point. */
const POINT_BYTES = 80;

const NO_VALUES = ascii(',,,');
const NO_PUBLICATION = ascii(',');
const NO_COUNT_AND_AVERAGE = ascii(',,');
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

/** Writes the cells of a row up to its corrections. */
function writePoint(points: PointColumns, index: number, cells: CommonCells, room: number): void {
  out.reserve(room);
  out.put(cells.code);
  out.day(points.day[index] as number);
  for (const column of [points.low, points.mid, points.high]) {
    out.byte(COMMA);
    out.number(column, index, room);
  }
  out.put(cells.currencyAndUnit);
  out.instant(points.publishedAt[index] as number);
  out.byte(COMMA);
  out.integer(points.corrections[index] as number);
}

function writeRow(
  points: PointColumns,
  index: number,
  cells: CommonCells,
  base: Buffer,
  room: number,
): void {
  writePoint(points, index, cells, room);
  const { fx, periods, movingAverage } = points;
  if (fx === null && periods === null && movingAverage === undefined) {
    out.put(cells.nativeEnd);
    return;
  }
  out.put(cells.about);
  writePeriod(points, index);
  writeRates(points, index, base, room);
  out.put(isUnconverted(points, index) ? cells.unconverted : cells.converted);
  out.byte(COMMA);
  const leftOut = periods?.leftOut[index] ?? 0;
  if (leftOut > 0) out.integer(leftOut);
  out.byte(COMMA);
  if (movingAverage !== undefined) out.number(movingAverage, index, room);
  out.put(ROW_END);
}

/** Room for one row. */
const roomOf = ({ code, currencyAndUnit, nativeEnd, unconverted }: CommonCells): number =>
  code.length + currencyAndUnit.length + nativeEnd.length + unconverted.length + POINT_BYTES_MAX;

/** Usual size of one row. */
const usualOf = ({ code, currencyAndUnit, nativeEnd }: CommonCells): number =>
  code.length + currencyAndUnit.length + nativeEnd.length + POINT_BYTES;

const baseOf = ({ fx }: PointColumns): Buffer =>
  fx === null ? NO_RATES : ascii(`,${fx.pair.base},`);

/**
 * The rows of one price as CSV, in slices: one for each point, or one without values if the price
 * has no points.
 */
function* slicesOfRows(points: PointColumns | null, cells: CommonCells): Generator<Buffer> {
  if (points === null || points.length === 0) {
    yield cells.withoutPoints;
    return;
  }
  const room = roomOf(cells);
  const base = baseOf(points);
  yield* slicesOf(out, points.length, usualOf(cells), room, (index) =>
    writeRow(points, index, cells, base, room),
  );
}

/** The cells that the rows of one record have in common. */
function commonCells(context: RenderContext, description: Description): CommonCells {
  const shared = sharedValues(context, description);
  const { receipt } = description;
  const cells = (names: readonly string[], values = shared): string =>
    names.map((name) => csvCell(values[name] ?? null)).join(',');
  const endCells = (conversionReason: string | null): Buffer => {
    const conversion = receipt === null ? {} : { conversionReason };
    const values = { ...shared, ...conversion };
    return Buffer.from(`,${cells([...CSV_GROUPS.conversion, ...CSV_GROUPS.summary], values)}`);
  };
  const described = [
    ...CSV_GROUPS.names,
    ...dimensionFields(context.plan.market),
    ...CSV_GROUPS.about,
  ];
  const code = Buffer.from(`${cells(['code'])},`);
  const common = Buffer.from(`,${cells(CSV_GROUPS.currencyAndUnit)},`);
  const about = Buffer.from(`,${cells(described)},`);
  const end = [NO_COUNT_AND_AVERAGE, ROW_END];
  const endWithout = [about, NO_PERIOD_AND_RATES, endCells(receipt?.reason ?? null), ...end];
  const converted = endCells(reasonOf(receipt));
  return {
    code,
    currencyAndUnit: common,
    about,
    withoutPoints: Buffer.concat([code, NO_VALUES, common, NO_PUBLICATION, ...endWithout]),
    converted,
    unconverted: endCells('no-rate'),
    nativeEnd: Buffer.concat([about, NO_PERIOD_AND_RATES, converted, ...end]),
  };
}

/** The row of column names. */
const csvHeader = ({ market }: Plan): Buffer => Buffer.from(`${csvColumns(market).join(',')}\r\n`);

const NOTHING = Buffer.alloc(0);

/** `text/csv` of RFC 4180, with a header row. */
export const csvWriter: Writer = {
  start: ({ context }) => [csvHeader(context.plan)],
  record: (context, contents) => slicesOfRows(contents.points, commonCells(context, contents)),
  between: NOTHING,
  end: NOTHING,
};
