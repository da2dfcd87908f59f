import { SPANS } from '../../catalog/analytics.ts';
import { csvColumns, dimensionFields, SHORT_COLUMNS } from '../../contract/schemas/formats.ts';
import { NO_DAY } from '../../conversion/calendar.ts';
import { isUnconverted, type PointColumns } from '../../conversion/columns.ts';
import type { Receipt } from '../../conversion/outcome.ts';
import type { Summary } from '../../conversion/summary.ts';
import type { Plan } from '../plan/plan.ts';
import { ascii, ByteWriter } from './bytes.ts';
import type { Contents, Description, Terms } from './contents.ts';
import { textCell } from './csv-cell.ts';
import { membersOf } from './record.ts';

/** The columns that a plan asks for, in their order. */
export function columnsOf({ market, options }: Plan): readonly string[] {
  const { columns } = options;
  if (columns === null || columns === 'all') return csvColumns(market);
  return columns === 'short' ? SHORT_COLUMNS : columns.split(',');
}

/** A value that all rows of a record share. `decimal` marks the text of an exact number. */
export type Shared = string | boolean | null | { readonly decimal: string };

const decimal = (text: string | null): Shared => (text === null ? null : { decimal: text });

/** A reference of a record; the market decides which there are. */
const nameOf = (members: object, field: string): string | null =>
  ((members as Readonly<Record<string, unknown>>)[field] as { name: string } | null)?.name ?? null;

interface Product {
  readonly alias: string;
  readonly chemicalCode: string;
  readonly isSustainable: boolean;
}

function receiptValues(receipt: Receipt | null): Record<string, Shared> {
  if (receipt === null) return {};
  const { status, from, to, unitFactor, source, rounding } = receipt;
  return {
    conversionStatus: status,
    fromCurrency: from.currency,
    fromUnitOfMeasure: from.unitOfMeasure,
    toCurrency: to.currency,
    toUnitOfMeasure: to.unitOfMeasure,
    unitMultiply: decimal(unitFactor?.multiply ?? null),
    unitDivide: decimal(unitFactor?.divide ?? null),
    rateSource: source,
    rounding,
  };
}

function summaryValues(summary: Summary | null): Record<string, Shared> {
  if (summary === null) return {};
  const { latest, previous, changes } = summary;
  const values: Record<string, Shared> = {
    latestDate: latest?.date ?? null,
    latestMid: decimal(latest?.mid ?? null),
    previousDate: previous?.date ?? null,
    previousMid: decimal(previous?.mid ?? null),
  };
  for (const span of SPANS) {
    const change = changes[span];
    values[`${span}Absolute`] = decimal(change?.absolute ?? null);
    values[`${span}Percent`] = decimal(change?.percent ?? null);
    values[`${span}BaseDate`] = change?.baseDate ?? null;
  }
  return values;
}

/** The values of a record that all of its rows share, by column. */
export function sharedValues(terms: Terms, contents: Description): Record<string, Shared> {
  const { market } = terms.plan;
  const { shown, receipt, summary } = contents;
  const members = membersOf(market, contents.price, terms.references, shown);
  const { alias, chemicalCode, isSustainable } = members.product as Product;
  const values: Record<string, Shared> = {
    code: members.code,
    currency: shown.currency?.iso ?? null,
    unitOfMeasure: shown.unitOfMeasure.name,
    name: members.name,
    shortName: members.shortName,
    productAlias: alias,
    chemicalCode,
    isSustainable,
    specification: members.specification.map(({ name, value }) => `${name}: ${value}`).join('; '),
    assessmentLaunchedAt: members.assessmentLaunchedAt,
    lastAssessedAt: members.lastAssessedAt,
    latestPublishedAt: members.latestPublishedAt,
    ...receiptValues(receipt),
    ...summaryValues(summary),
  };
  const references = ['product', 'priceCategory', 'priceType', 'frequency'];
  for (const field of [...references, ...dimensionFields(market)]) {
    values[field] = nameOf(members, field);
  }
  return values;
}

/** Room that the cells of one point take at most, without wide numbers. */
const POINT_BYTES_MAX = 640;

/** Usual size of the cells of a point. */
const POINT_BYTES = 80;

/** Bytes of a slice: more would be held in memory for each slow reader. */
const SLICE_BYTES = 65_536;

const COMMA = 0x2c;
const QUOTE = 0x22;
const NULL = ascii('null');

/** Writes the cell of one point in one column. */
type PointCell = (points: PointColumns, index: number) => void;

/** The notation of rows in one format. */
class RowNotation {
  readonly isJson: boolean;
  readonly isText: boolean;
  readonly out: ByteWriter;
  /** The cells of the columns whose values differ between the points of a record. */
  readonly points: Readonly<Record<string, PointCell>>;

  constructor(isJson: boolean, isText: boolean) {
    this.isJson = isJson;
    this.isText = isJson && isText;
    this.out = new ByteWriter(isJson ? 'null' : '');
    this.points = this.#pointCells();
  }

  /** A value that all rows of a record share, as the bytes of its cell. */
  shared(value: Shared): string {
    if (value === null) return this.isJson ? 'null' : '';
    if (typeof value === 'object') return this.isText ? `"${value.decimal}"` : value.decimal;
    return this.isJson ? JSON.stringify(value) : textCell(String(value));
  }

  /** Writes an empty cell. */
  #empty(): void {
    if (this.isJson) this.out.put(NULL);
  }

  #day(day: number | undefined): void {
    if (day === undefined || day === NO_DAY) {
      this.#empty();
      return;
    }
    if (this.isJson) this.out.byte(QUOTE);
    this.out.day(day);
    if (this.isJson) this.out.byte(QUOTE);
  }

  #decimal(column: PointColumns['mid'] | undefined, index: number): void {
    const scaled = column?.scaled[index];
    if (column === undefined || scaled === undefined || Number.isNaN(scaled)) {
      this.#empty();
      return;
    }
    if (this.isText) this.out.byte(QUOTE);
    this.out.number(column, index, POINT_BYTES_MAX);
    if (this.isText) this.out.byte(QUOTE);
  }

  #integer(value: number | undefined): void {
    if (value === undefined) this.#empty();
    else this.out.integer(value);
  }

  #pointCells(): Readonly<Record<string, PointCell>> {
    const { out, isJson } = this;
    const hasRate = ({ fx }: PointColumns, index: number) =>
      fx !== null && fx.day[index] !== NO_DAY;
    return {
      date: ({ day }, index) => this.#day(day[index]),
      low: ({ low }, index) => this.#decimal(low, index),
      mid: ({ mid }, index) => this.#decimal(mid, index),
      high: ({ high }, index) => this.#decimal(high, index),
      publishedAt: ({ publishedAt }, index) => {
        if (isJson) out.byte(QUOTE);
        out.instant(publishedAt[index] as number);
        if (isJson) out.byte(QUOTE);
      },
      corrections: ({ corrections }, index) => this.#integer(corrections[index]),
      periodStart: ({ periods }, index) => this.#day(periods?.start[index]),
      periodEnd: ({ periods }, index) => this.#day(periods?.end[index]),
      observations: ({ periods }, index) => this.#integer(periods?.observations[index]),
      observationsLeftOut: ({ periods }, index) =>
        this.#integer(periods?.leftOut[index] || undefined),
      fxDate: ({ fx }, index) => this.#day(fx?.day[index]),
      fxBase: (points, index) => {
        if (hasRate(points, index)) out.text(this.shared(points.fx?.pair.base ?? null));
        else this.#empty();
      },
      fxFrom: (points, index) =>
        this.#decimal(hasRate(points, index) ? points.fx?.from : undefined, index),
      fxTo: (points, index) =>
        this.#decimal(hasRate(points, index) ? points.fx?.to : undefined, index),
    };
  }
}

const CSV = new RowNotation(false, false);
const JSON_NUMBERS = new RowNotation(true, false);
const JSON_TEXTS = new RowNotation(true, true);

/** A value that all rows of a record share, as a cell of CSV. */
export const csvCell = (value: Shared): string => CSV.shared(value);

/** The notation of CSV, or that of JSON with decimals as the plan wants them. */
const notationOf = ({ options }: Plan, isJson: boolean): RowNotation =>
  isJson ? (options.decimalsAsText ? JSON_TEXTS : JSON_NUMBERS) : CSV;

/** A row of a record: bytes that all of its rows share, and cells of its points between them. */
type RowPart = Buffer | PointCell;

/**
 * The reason why the points of a record that have a value were not converted. A partial record has
 * none: its own reason explains its points without a rate, and no others.
 */
export const reasonOf = (receipt: Receipt | null): string | null =>
  receipt?.status === 'partial' ? null : (receipt?.reason ?? null);

/** The cell with the reason why a point could not be converted. */
function reasonCell(receipt: Receipt | null, notation: RowNotation): PointCell {
  const [converted, unconverted] = [reasonOf(receipt), 'no-rate'].map((each) =>
    ascii(notation.shared(each)),
  );
  return (points, index) =>
    notation.out.put((isUnconverted(points, index) ? unconverted : converted) as Buffer);
}

/** The columns that are empty in each point of some series: those of periods and of rates. */
function isEmptyIn({ periods, fx }: PointColumns, name: string): boolean {
  if (name.startsWith('period') || name.startsWith('observations')) return periods === null;
  return name.startsWith('fx') && fx === null;
}

/** The parts of each row of a record. */
function rowParts(terms: Terms, contents: Contents, notation: RowNotation): RowPart[] {
  const { isJson } = notation;
  const shared = sharedValues(terms, contents);
  const { points } = contents;
  const hasPoints = points !== null && points.length > 0;
  const parts: RowPart[] = [];
  let text = isJson ? '{' : '';
  const add = (cell: PointCell): void => {
    parts.push(Buffer.from(text), cell);
    text = '';
  };
  for (const [place, name] of columnsOf(terms.plan).entries()) {
    if (place > 0) text += ',';
    if (isJson) text += `${JSON.stringify(name)}:`;
    const cell = notation.points[name];
    if (name === 'conversionReason') {
      if (hasPoints) add(reasonCell(contents.receipt, notation));
      else text += notation.shared(contents.receipt?.reason ?? null);
    } else if (cell !== undefined) {
      if (hasPoints && !isEmptyIn(points, name)) add(cell);
      else text += notation.shared(null);
    } else text += notation.shared(shared[name] ?? null);
  }
  parts.push(Buffer.from(isJson ? `${text}}` : `${text}\r\n`));
  return parts;
}

const sharedBytes = (parts: readonly RowPart[]): number =>
  parts.reduce((sum, part) => sum + (typeof part === 'function' ? 0 : part.length), 0);

/**
 * The rows of one record in slices: one row for each point, or one without values where there is
 * none.
 * @param isJson writes objects with commas between them; else lines of CSV
 */
export function* recordRows(terms: Terms, contents: Contents, isJson: boolean): Generator<Buffer> {
  const notation = notationOf(terms.plan, isJson);
  const { out } = notation;
  const parts = rowParts(terms, contents, notation);
  const { points } = contents;
  if (points === null || points.length === 0) {
    yield Buffer.concat(parts as Buffer[]);
    return;
  }
  const shared = sharedBytes(parts);
  const room = shared + POINT_BYTES_MAX;
  for (let index = 0; index < points.length; ) {
    const usual = (points.length - index) * (shared + POINT_BYTES);
    out.begin(Math.min(usual, SLICE_BYTES) + room);
    while (index < points.length && out.written < SLICE_BYTES) {
      out.reserve(room);
      if (isJson && index > 0) out.byte(COMMA);
      for (const part of parts) {
        if (typeof part === 'function') part(points, index);
        else if (part.length === 1) out.byte(part[0] as number);
        else out.put(part);
      }
      index += 1;
    }
    yield out.end();
  }
}

/** The row of column names of a CSV. */
export const headerRow = (names: readonly string[]): Buffer =>
  Buffer.from(`${names.map(textCell).join(',')}\r\n`);
