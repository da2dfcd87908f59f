import { SPANS } from '../../catalog/analytics.ts';
import { csvColumns, dimensionFields, SHORT_COLUMNS } from '../../contract/schemas/formats.ts';
import { NO_DAY } from '../../conversion/calendar.ts';
import { isUnconverted, lackingAt, type PointColumns } from '../../conversion/columns.ts';
import type { Summary } from '../../conversion/summary.ts';
import { textCell } from '../../std/csv.ts';
import type { RenderContext } from '../answer/answer.ts';
import type { Plan } from '../plan/plan.ts';
import { ascii, ByteWriter, COMMA, fullSlices, POINT_BYTES_MAX, QUOTE } from './bytes.ts';
import { POINT_COLUMNS, type PointColumn } from './point-columns.ts';
import type { Contents, Description } from './points.ts';
import type { Receipt } from './receipt.ts';
import { membersOf } from './record.ts';

/** The requested columns of a plan, in their order. */
export function columnsOf({ market, options }: Plan): readonly string[] {
  const { columns } = options;
  if (columns === null || columns === 'all') return csvColumns(market);
  return columns === 'short' ? SHORT_COLUMNS : columns.split(',');
}

/** A value that all rows of a record share. `decimal` marks the text of an exact number. */
export type SharedValue = string | boolean | null | { readonly decimal: string };

const decimal = (text: string | null): SharedValue => (text === null ? null : { decimal: text });

/** The name of a reference member of a record, if the market has it. */
const nameOf = (members: object, field: string): string | null =>
  ((members as Readonly<Record<string, unknown>>)[field] as { name: string } | null)?.name ?? null;

interface ProductMembers {
  readonly alias: string;
  readonly chemicalCode: string;
  readonly isSustainable: boolean;
}

function receiptValues(receipt: Receipt | null): Record<string, SharedValue> {
  if (receipt === null) return {};
  const { status, from, to, unitFactor, source, vat, rounding } = receipt;
  return {
    conversionStatus: status,
    fromCurrency: from.currency,
    fromUnitOfMeasure: from.unitOfMeasure,
    toCurrency: to.currency,
    toUnitOfMeasure: to.unitOfMeasure,
    unitMultiply: decimal(unitFactor?.multiply ?? null),
    unitDivide: decimal(unitFactor?.divide ?? null),
    rateSource: source,
    conversionVat: vat ?? null,
    rounding,
  };
}

function summaryValues(summary: Summary | null): Record<string, SharedValue> {
  if (summary === null) return {};
  const { latest, previous, changes } = summary;
  const values: Record<string, SharedValue> = {
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

type Reference = ReturnType<typeof membersOf>['reference'];

/** The latest reference of a payable, by column. */
const referenceValues = (reference: Reference): Record<string, SharedValue> => ({
  referenceCode: reference?.code ?? null,
  referenceSide: reference?.side ?? null,
  referenceStatistic: reference?.statistic ?? null,
  referenceElement: reference?.element ?? null,
  referenceValidFrom: reference?.validFrom ?? null,
});

/** The values of a record that all of its rows share, by column. */
export function sharedValues(
  context: RenderContext,
  contents: Description,
): Record<string, SharedValue> {
  const { market } = context.plan;
  const { currencyAndUnit, receipt, summary } = contents;
  const members = membersOf(market, contents.price, context.references, currencyAndUnit);
  const { alias, chemicalCode, isSustainable } = members.product as ProductMembers;
  const values: Record<string, SharedValue> = {
    code: members.code,
    currency: currencyAndUnit.currency?.iso ?? null,
    unitOfMeasure: currencyAndUnit.unitOfMeasure.name,
    name: members.name,
    shortName: members.shortName,
    productAlias: alias,
    chemicalCode,
    isSustainable,
    specification: members.specification.map(({ name, value }) => `${name}: ${value}`).join('; '),
    assessmentLaunchedAt: members.assessmentLaunchedAt,
    lastAssessedAt: members.lastAssessedAt,
    latestPublishedAt: members.latestPublishedAt,
    nextExpectedAt: members.nextExpectedAt,
    observes: members.observes,
    vatCountry: members.vatCountry,
    ...referenceValues(members.reference),
    ...receiptValues(receipt),
    ...summaryValues(summary),
  };
  const references = ['product', 'priceCategory', 'priceType', 'frequency'];
  for (const field of [...references, ...dimensionFields(market)]) {
    values[field] = nameOf(members, field);
  }
  return values;
}

/** Usual size of the cells of a point. */
const POINT_BYTES = 80;

const NULL = ascii('null');

/** Writes the cell of one point in one column of a record. */
type PointCell = (index: number) => void;

/** The notation of rows: lines of CSV, or flat JSON objects with numbers or texts. */
export class RowNotation {
  readonly isJson: boolean;
  /** True if decimals are texts. */
  readonly isText: boolean;
  /** Between two cells. */
  readonly separator: ',' | ';';
  readonly rowStart: string;
  readonly rowEnd: string;
  readonly out: ByteWriter;

  constructor(isJson: boolean, isText: boolean, separator: ',' | ';' = ',') {
    this.isJson = isJson;
    this.isText = isJson && isText;
    this.separator = separator;
    this.rowStart = isJson ? '{' : '';
    this.rowEnd = isJson ? '}' : '\r\n';
    this.out = new ByteWriter(isJson ? 'null' : '');
  }

  /** True if decimals have a comma instead of a point. */
  get hasDecimalCommas(): boolean {
    return this.separator === ';';
  }

  /** The bytes before a cell: the separator after the cell before it, and its name in JSON. */
  before(name: string, isFirst: boolean): string {
    return `${isFirst ? '' : this.separator}${this.isJson ? `${JSON.stringify(name)}:` : ''}`;
  }

  /** A value that all rows of a record share, as the bytes of its cell. */
  shared(value: SharedValue): string {
    if (value === null) return this.isJson ? 'null' : '';
    if (typeof value === 'object') {
      const { decimal } = value;
      if (this.hasDecimalCommas) return decimal.replace('.', ',');
      return this.isText ? `"${decimal}"` : decimal;
    }
    return this.isJson ? JSON.stringify(value) : textCell(String(value));
  }

  /** Writes an empty cell. */
  #empty(): void {
    if (this.isJson) this.out.put(NULL);
  }

  /** Writes a day; an empty cell for none. */
  day(day: number | undefined): void {
    if (day === undefined || day === NO_DAY) {
      this.#empty();
      return;
    }
    if (this.isJson) this.out.byte(QUOTE);
    this.out.day(day);
    if (this.isJson) this.out.byte(QUOTE);
  }

  #decimal(column: PointColumns['mid'], index: number): void {
    const { out } = this;
    if (!this.isText || Number.isNaN(column.scaled[index] as number)) {
      const from = out.at;
      out.number(column, index, POINT_BYTES_MAX);
      if (this.hasDecimalCommas) out.decimalCommas(from);
      return;
    }
    out.byte(QUOTE);
    out.number(column, index, POINT_BYTES_MAX);
    out.byte(QUOTE);
  }

  #instant(micros: number): void {
    if (this.isJson) this.out.byte(QUOTE);
    this.out.instant(micros);
    if (this.isJson) this.out.byte(QUOTE);
  }

  #text(text: string | null): void {
    if (text === null) this.#empty();
    else this.out.text(this.shared(text));
  }

  /** The cells of a column in the points of a record; null if all are empty. */
  cellOf(column: PointColumn, points: PointColumns): PointCell | null {
    switch (column.kind) {
      case 'day': {
        const days = column.of(points);
        return days ? (index) => this.day(days[index]) : null;
      }
      case 'instant': {
        const instants = column.of(points);
        return (index) => this.#instant(instants[index] as number);
      }
      case 'decimal': {
        const decimals = column.of(points);
        return decimals ? (index) => this.#decimal(decimals, index) : null;
      }
      case 'integer': {
        const { isZeroEmpty = false } = column;
        const integers = column.of(points);
        if (integers === undefined) return null;
        return (index) => {
          const value = integers[index] as number;
          if (value === 0 && isZeroEmpty) this.#empty();
          else this.out.integer(value);
        };
      }
      case 'text': {
        const textAt = column.of(points);
        return textAt ? (index) => this.#text(textAt(index)) : null;
      }
    }
  }
}

/** The notation of CSV in the dialect of the plan, or of JSON with its decimals. */
export const notationOf = ({ options }: Plan, isJson: boolean): RowNotation =>
  isJson
    ? new RowNotation(true, options.decimalsAsText)
    : new RowNotation(false, false, options.csvDialect === 'semicolon' ? ';' : ',');

/**
 * The reason that the points with a value were not converted. Null for a partial record, whose
 * reason applies only to its points without a rate.
 */
export const reasonOf = (receipt: Receipt | null): string | null =>
  receipt?.status === 'partial' ? null : (receipt?.reason ?? null);

/** The cell with the reason that a point was not converted. */
function reasonCell(
  receipt: Receipt | null,
  points: PointColumns,
  notation: RowNotation,
): PointCell {
  const bytesOf = (reason: string | null) => ascii(notation.shared(reason));
  const converted = bytesOf(reasonOf(receipt));
  const unconverted = { 'no-rate': bytesOf('no-rate'), 'no-vat-rate': bytesOf('no-vat-rate') };
  return (index) =>
    notation.out.put(
      isUnconverted(points, index) ? unconverted[lackingAt(points, index)] : converted,
    );
}

/** True if no point was converted or aggregated, so that each has the same reason. */
const isNative = ({ fx, vat, periods }: PointColumns): boolean =>
  fx === null && vat === null && periods === null;

/** A row: `texts` that all rows of a record share, with the cells of a point between them. */
interface RowShape {
  readonly cells: readonly PointCell[];
  /** The text before each cell, and the text after the last. */
  readonly texts: readonly Buffer[];
}

/** The shape of the rows of a record. */
function rowShape(context: RenderContext, contents: Contents, notation: RowNotation): RowShape {
  const shared = sharedValues(context, contents);
  const { points, receipt } = contents;
  const hasPoints = points !== null && points.length > 0;
  const cells: PointCell[] = [];
  const texts: Buffer[] = [];
  let text = notation.rowStart;
  const add = (cell: PointCell): void => {
    texts.push(Buffer.from(text));
    cells.push(cell);
    text = '';
  };
  for (const [place, name] of columnsOf(context.plan).entries()) {
    text += notation.before(name, place === 0);
    const column = POINT_COLUMNS[name];
    if (name === 'conversionReason') {
      if (!hasPoints) text += notation.shared(receipt?.reason ?? null);
      else if (isNative(points)) text += notation.shared(reasonOf(receipt));
      else add(reasonCell(receipt, points, notation));
    } else if (column !== undefined) {
      const cell = hasPoints ? notation.cellOf(column, points) : null;
      if (cell !== null) add(cell);
      else text += notation.shared(null);
    } else text += notation.shared(shared[name] ?? null);
  }
  texts.push(Buffer.from(text + notation.rowEnd));
  return { cells, texts };
}

/**
 * Writes the rows of one record, and yields the slices that they fill: one row for each point, or
 * one without values if it has no points.
 * @param notation of objects with commas between them, or of lines of CSV
 */
export function* recordRows(
  context: RenderContext,
  contents: Contents,
  notation: RowNotation,
): Generator<Buffer> {
  const { out, isJson } = notation;
  const { cells, texts } = rowShape(context, contents, notation);
  const { points } = contents;
  if (points === null || points.length === 0) {
    for (const text of texts) out.add(text);
    return;
  }
  const shared = texts.reduce((sum, { length }) => sum + length, 0);
  const count = cells.length;
  const end = texts[count] as Buffer;
  yield* fullSlices(out, points.length, shared + POINT_BYTES, shared + POINT_BYTES_MAX, (index) => {
    if (isJson && index > 0) out.byte(COMMA);
    for (let place = 0; place < count; place += 1) {
      out.put(texts[place] as Buffer);
      (cells[place] as PointCell)(index);
    }
    out.put(end);
  });
}

/** A byte-order mark: Excel reads a CSV without it in the encoding of its country. */
const MARK = '\ufeff';

/** The row of column names of a CSV, in the dialect for spreadsheets after a byte-order mark. */
export function headerRow(names: readonly string[], notation: RowNotation): Buffer {
  const { separator, hasDecimalCommas } = notation;
  const row = `${names.map(textCell).join(separator)}\r\n`;
  return Buffer.from(hasDecimalCommas ? MARK + row : row);
}
