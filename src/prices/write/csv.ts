import { SPANS } from '../../catalog/analytics.ts';
import { CSV_GROUPS, csvColumns, dimensionFields } from '../../contract/schemas/formats.ts';
import { NO_DAY } from '../../conversion/calendar.ts';
import { isUnconverted, type PointColumns } from '../../conversion/columns.ts';
import type { Receipt } from '../../conversion/outcome.ts';
import type { Change, Observed, Summary } from '../../conversion/summary.ts';
import { ascii, ByteWriter } from './bytes.ts';
import type { Contents, Terms, Writer } from './contents.ts';
import { textCell } from './csv-cell.ts';
import { membersOf } from './record.ts';

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

const nothing = (columns: readonly string[]): string[] => columns.map(() => '');

type Members = ReturnType<typeof membersOf>;

/** A reference of a record; which ones there are depends on the market. */
const nameOf = (members: Members, field: string): string | null => {
  const reference = (members as Readonly<Record<string, unknown>>)[field];
  return (reference as { readonly name: string } | null)?.name ?? null;
};

const namesOf = (terms: Terms, members: Members): string[] => [
  ...[members.name, members.shortName].map(textCell),
  ...['product', 'priceCategory', 'priceType', 'frequency'].map((field) =>
    textCell(nameOf(members, field)),
  ),
  ...dimensionFields(terms.plan.market).map((field) => textCell(nameOf(members, field))),
];

interface Product {
  readonly alias: string;
  readonly chemicalCode: string;
  readonly isSustainable: boolean;
}

function aboutOf(members: Members): string[] {
  const { alias, chemicalCode, isSustainable } = members.product as Product;
  const specification = members.specification.map(({ name, value }) => `${name}: ${value}`);
  return [
    textCell(alias),
    textCell(chemicalCode),
    String(isSustainable),
    textCell(specification.join('; ')),
    members.assessmentLaunchedAt ?? '',
    members.lastAssessedAt ?? '',
    members.latestPublishedAt ?? '',
  ];
}

function conversionOf(receipt: Receipt | null, reason: Receipt['reason']): string[] {
  if (receipt === null) return nothing(CSV_GROUPS.conversion);
  const { status, from, to, unitFactor, source, rounding } = receipt;
  return [
    status,
    reason ?? '',
    ...[from, to].flatMap((each) => [each.currency ?? '', textCell(each.unitOfMeasure)]),
    unitFactor?.multiply ?? '',
    unitFactor?.divide ?? '',
    textCell(source),
    textCell(rounding),
  ];
}

const observedCells = (each: Observed | null): string[] => [each?.date ?? '', each?.mid ?? ''];

const changeCells = (each: Change | null): string[] => [
  each?.absolute ?? '',
  each?.percent ?? '',
  each?.baseDate ?? '',
];

function summaryCells(summary: Summary | null): string[] {
  if (summary === null) return nothing(CSV_GROUPS.summary);
  const { latest, previous, changes } = summary;
  return [
    ...observedCells(latest),
    ...observedCells(previous),
    ...SPANS.flatMap((span) => changeCells(changes[span])),
  ];
}

/** The rows of one record: one for each point, and one without values where there is none. */
function* recordRows(terms: Terms, contents: Contents): Generator<Buffer> {
  const { shown, receipt, summary, points } = contents;
  const members = membersOf(terms.plan.market, contents.price, terms.references, shown);
  const cells = (...values: readonly string[]) => Buffer.from(values.join(','));
  const endCells = (reason: Receipt['reason']) =>
    cells('', ...conversionOf(receipt, reason), ...summaryCells(summary));
  const reason = receipt?.reason ?? null;
  yield* slicesOfRows(points, {
    code: cells(textCell(members.code), ''),
    terms: cells('', textCell(shown.currency?.iso ?? null), textCell(shown.unitOfMeasure.name), ''),
    about: cells('', ...namesOf(terms, members), ...aboutOf(members), ''),
    withoutPoints: endCells(reason),
    // Of a partial record the reason explains the points without a rate, and no others.
    converted: endCells(receipt?.status === 'partial' ? null : reason),
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
