import { didYouMean } from '../../catalog/nearest.ts';
import { dayAfter } from '../../std/days.ts';
import type { Factor } from '../parsing/decimals.ts';
import type { Quotation } from '../records/source-record.ts';
import { ownCopy } from '../records/texts.ts';
import { datePattern, ISO_DAY } from './date-pattern.ts';
import { DateTimeReader, Fault, type Field, type TableRow, textOf } from './fields.ts';
import type { PublicationSource, Published, QuotationPartSource } from './schema.ts';
import type { TableColumns } from './value-columns.ts';

/**
 * Minor currency units by the symbols of markets and data vendors: the currency and its number of
 * decimals.
 */
const MINOR: ReadonlyMap<string, readonly [currency: string, decimals: number]> = new Map([
  ['USc', ['USD', 2]],
  ['USX', ['USD', 2]],
  ['EUc', ['EUR', 2]],
  ['GBp', ['GBP', 2]],
  ['GBX', ['GBP', 2]],
  ['AUc', ['AUD', 2]],
  ['CAc', ['CAD', 2]],
  ['INp', ['INR', 2]],
]);
/** Symbols of minor currency units that a mapping may use. */
export const MINOR_NAMES: readonly string[] = [...MINOR.keys()];

/** The quotation of a file, and the factor that converts its values to the major currency unit. */
export interface ScaledQuotation extends Quotation {
  /** null for 1. */
  readonly factor: Factor | null;
}

/** True if values are percentages, which may carry a percent sign. */
export const isPercent = ({ unit }: ScaledQuotation): boolean => unit === '%' || unit === 'Percent';

/** States why a currency and unit are invalid; null if no fault is evident. */
export function quotationProblem(currency: string | null, unit: string | null): string | null {
  if (currency !== null && !MINOR.has(currency) && !/^[A-Z]{3}$/.test(currency)) {
    const iso = /^[a-z]{3}$/i.test(currency) ? [currency.toUpperCase()] : [];
    const hint = didYouMean(currency, [...iso, ...MINOR_NAMES]);
    const names = MINOR_NAMES.join(', ');
    return `A currency is an ISO 4217 code, or a minor unit of one: ${names}${hint}`;
  }
  if (currency !== null && (unit === '%' || unit === 'Percent'))
    return 'Percentages have no currency';
  return null;
}

/**
 * The quotation of values published in a currency and a unit. Minor units are converted to their
 * currency exactly, by a shift of the decimal point. Units of measure are not converted: the
 * service converts them in answers, with one rounding.
 */
export function quotationOf(currency: string | null, unit: string | null): ScaledQuotation {
  const [major, decimals] = MINOR.get(currency ?? '') ?? [currency, 0];
  const published = [currency, unit].filter((each) => each !== null).join(' per ');
  const factor = decimals === 0 ? null : { digits: 1n, scale: decimals };
  return { currency: major, unit, published, factor };
}

/** A currency or unit: a constant, or a column with translations. */
class QuotationPart {
  readonly at: number;
  private readonly constant: string | null;
  private readonly translate: ReadonlyMap<string, string> | null;

  constructor(source: QuotationPartSource | undefined, columns: TableColumns) {
    const isColumn = typeof source === 'object';
    const translate = isColumn ? source.translate : undefined;
    this.constant = isColumn ? null : (source ?? null);
    this.at = isColumn ? columns.indexOf(source.column) : -1;
    this.translate = translate ? new Map(Object.entries(translate)) : null;
  }

  read({ fields }: TableRow): string | null | Fault {
    if (this.at < 0) return this.constant;
    const text = textOf(fields[this.at], 'unit_mismatch');
    if (text instanceof Fault) return text;
    const translated = this.translate ? this.translate.get(text) : text;
    return translated || new Fault('unit_mismatch', 'The mapping does not translate this text');
  }
}

/** A fault in the quotation of a row, and its column. */
interface QuotationFault {
  readonly fault: Fault;
  readonly column: string;
}

/** Most cached quotations of one file. */
const QUOTATIONS_MAX = 1_000;

/** Reads the quotation of each row; equal quotations share one object. */
export class QuotationReader {
  private readonly columns: TableColumns;
  private readonly currency: QuotationPart;
  private readonly unit: QuotationPart;
  private readonly known = new Map<string, ScaledQuotation>();
  private lastRow: TableRow | null = null;
  private last: ScaledQuotation | QuotationFault | null = null;

  constructor(published: Published, columns: TableColumns) {
    this.columns = columns;
    this.currency = new QuotationPart(published.currency, columns);
    this.unit = new QuotationPart(published.unit, columns);
  }

  /** The quotation of a row, shared by all of its points. */
  read(row: TableRow): ScaledQuotation | QuotationFault {
    if (row !== this.lastRow || this.last === null) {
      this.lastRow = row;
      this.last = this.find(row);
    }
    return this.last;
  }

  private find(row: TableRow): ScaledQuotation | QuotationFault {
    const currency = this.currency.read(row);
    if (currency instanceof Fault) return this.faultAt(row, this.currency, currency);
    const unit = this.unit.read(row);
    if (unit instanceof Fault) return this.faultAt(row, this.unit, unit);
    const key = `${currency ?? ''}\n${unit ?? ''}`;
    const known = this.known.get(key);
    if (known) return known;
    const problem = quotationProblem(currency, unit);
    if (problem !== null) {
      return this.faultAt(row, this.currency, new Fault('unknown_currency', problem));
    }
    const quotation = quotationOf(currency, unit);
    // Bounded: a file may hold any number of different texts.
    if (this.known.size < QUOTATIONS_MAX) this.known.set(ownCopy(key), quotation);
    return quotation;
  }

  private faultAt(row: TableRow, { at }: QuotationPart, fault: Fault): QuotationFault {
    return { fault, column: at < 0 ? 'published' : this.columns.naming(at, row.line) };
  }
}

const seconds = (time: string): string => (time.length === 5 ? `${time}:00` : time);

/** Builds publication times, RFC 3339; null stands for the time of the load. */
export class PublicationReader {
  private readonly source: PublicationSource;
  private readonly dateTimes: DateTimeReader | null;
  private lastDay = '';
  private lastTime = '';

  constructor(source: PublicationSource, is1904: boolean) {
    const { pattern } = source;
    this.source = source;
    this.dateTimes =
      pattern === undefined && source.offset === undefined
        ? null
        : new DateTimeReader([datePattern(pattern ?? ISO_DAY)], is1904, 'invalid_time');
  }

  /** The publication time of a value. @param field of the publication column, if there is one */
  read(field: Field | undefined, day: string): string | null | Fault {
    const { column, constant } = this.source;
    if (constant !== undefined) return constant;
    return column === undefined ? this.onDay(day) : this.inField(field);
  }

  /** A fixed time, some days after the day of the value. */
  private onDay(day: string): string {
    if (day !== this.lastDay) {
      const { time = '', offset = '', days = 0 } = this.source;
      this.lastDay = day;
      this.lastTime = `${dayAfter(day, days)}T${seconds(time)}${offset}`;
    }
    return this.lastTime;
  }

  private inField(field: Field | undefined): string | null | Fault {
    if (!this.dateTimes) {
      const isDate = typeof field === 'object' && field.type !== 'text';
      if (!isDate) return textOf(field, 'invalid_time') || null;
      return new Fault('invalid_time', 'A date cell needs an offset in the mapping');
    }
    const dateTime = this.dateTimes.read(field);
    if (dateTime === '' || dateTime instanceof Fault) return dateTime || null;
    const { time, offset = '' } = this.source;
    const hasOwn = dateTime.time !== null && (time === undefined || dateTime.time !== '00:00:00');
    const clock = hasOwn ? dateTime.time : seconds(time ?? '');
    if (clock === null || clock === '') {
      return new Fault('invalid_time', 'The publication time has no time of day');
    }
    return `${dateTime.day}T${clock}${dateTime.offset ?? offset}`;
  }
}
