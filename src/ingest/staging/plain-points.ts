import { dayNumber, dayOf } from '../../std/days.ts';
import { exactPower } from '../../std/decimal.ts';
import { DATE_MIN, daysIn, microsOf } from '../parsing/dates.ts';
import { DECIMALS_MAX, DIGITS_MAX, type ExactDecimal } from '../parsing/decimals.ts';
import type { PointFieldIndexes } from '../records/source-record.ts';
import type { ParsedValue } from './copy-rows.ts';
import type { Bounds } from './validate.ts';

const COMMA = 0x2c;
const DASH = 0x2d;
const POINT = 0x2e;
const COLON = 0x3a;
const QUOTE = 0x22;
const CR = 0x0d;
const LF = 0x0a;
const ZERO = 0x30;
const LETTER_T = 0x54;
const LETTER_Z = 0x5a;

/** The visible characters of ASCII. */
const FIRST_VISIBLE = 0x21;
const LAST_VISIBLE = 0x7e;

const CODE_BYTES_MAX = 64;
/** Digits, a sign and a point. */
const DECIMAL_BYTES_MAX = DIGITS_MAX + 2;

const LIMIT = exactPower(DIGITS_MAX);

const SECOND_MICROS = 1_000_000;
const DAY_MICROS = 86_400 * SECOND_MICROS;

/** The two digits at a position as a number; NaN if they are not digits. */
function twoDigits(bytes: Buffer, at: number): number {
  const tens = (bytes[at] as number) - ZERO;
  const units = (bytes[at + 1] as number) - ZERO;
  return tens >= 0 && tens <= 9 && units >= 0 && units <= 9 ? 10 * tens + units : Number.NaN;
}

/** A decimal that is parsed in place. */
class PlainDecimal implements ExactDecimal {
  digits = 0;
  scale = 0;

  /** @returns false unless the bytes are a plain decimal of at most 15 digits and 10 decimals */
  parse(bytes: Buffer, from: number, to: number): boolean {
    const isNegative = bytes[from] === DASH;
    const first = isNegative ? from + 1 : from;
    if (to - from > DECIMAL_BYTES_MAX) return false;
    let digits = 0;
    let point = -1;
    for (let at = first; at < to; at += 1) {
      const byte = bytes[at] as number;
      const digit = byte - ZERO;
      if (digit >= 0 && digit <= 9) digits = 10 * digits + digit;
      else if (byte === POINT && point < 0) point = at;
      else return false;
    }
    let scale = point < 0 ? 0 : to - point - 1;
    const count = to - first - (point < 0 ? 0 : 1);
    // Digits are needed on both sides of a point.
    if (count === 0 || count > DIGITS_MAX || point === first || point === to - 1) return false;
    while (scale > 0 && digits % 10 === 0) {
      digits /= 10;
      scale -= 1;
    }
    this.digits = isNegative ? -digits : digits;
    this.scale = scale;
    return scale <= DECIMALS_MAX;
  }
}

/**
 * True if low ≤ mid ≤ high, and all have at most 15 digits at the finest decimals. The comparison
 * of integers below 10^15 is exact. A greater product stays above 10^15 when it is rounded.
 */
function isExact(low: ExactDecimal, mid: ExactDecimal, high: ExactDecimal): boolean {
  const scale = Math.max(low.scale, mid.scale, high.scale);
  const lowest = low.digits * exactPower(scale - low.scale);
  const middle = mid.digits * exactPower(scale - mid.scale);
  const highest = high.digits * exactPower(scale - high.scale);
  return lowest <= middle && middle <= highest && -LIMIT < lowest && highest < LIMIT;
}

/**
 * Parses points from the bytes of lines, many times faster than from records. It accepts only lines
 * that are certainly valid, in plain notation, and returns the values that `Validator` would
 * return. All other lines must be read as records, which `Validator` checks.
 */
export class PlainPoints implements ParsedValue {
  /** The end of the last line: the position of its LF, or the length of the bytes. */
  end = 0;
  /** The series number of the last line. */
  series = 0;
  day = 0;
  low: ExactDecimal | null = null;
  mid: ExactDecimal | null = null;
  high: ExactDecimal | null = null;
  publishedAt: number | null = null;

  readonly #columns: PointFieldIndexes;
  readonly #numberOf: (code: string, line: number) => number;
  readonly #dayMin = dayOf(DATE_MIN);
  readonly #dayMax: number;
  readonly #nowMicros: number;
  /** Start of each field, and one past the end of the line. */
  readonly #starts: Int32Array;
  readonly #low = new PlainDecimal();
  readonly #mid = new PlainDecimal();
  readonly #high = new PlainDecimal();
  /** Day numbers by YYYYMMDD, of valid days. */
  readonly #days = new Map<number, number>();
  #code: Buffer = Buffer.alloc(0);

  /** @param numberOf returns the series number of a code */
  constructor(
    columns: PointFieldIndexes,
    { dateMax, now }: Bounds,
    numberOf: (code: string, line: number) => number,
  ) {
    this.#columns = columns;
    this.#numberOf = numberOf;
    this.#dayMax = dayOf(dateMax);
    this.#nowMicros = microsOf(now);
    this.#starts = new Int32Array(columns.width + 1);
  }

  /**
   * Parses the line that begins at a position.
   * @returns false if the line must be read as a record
   */
  parse(bytes: Buffer, start: number, line: number): boolean {
    if (!this.#split(bytes, start)) return false;
    const { code, date, low, mid, high, publishedAt } = this.#columns;
    const starts = this.#starts;
    const from = starts[date] as number;
    if ((starts[date + 1] as number) - from !== 11) return false;
    this.day = this.#dayAt(bytes, from);
    if (Number.isNaN(this.day)) return false;
    if (!this.#parseTime(bytes, publishedAt)) return false;
    const lowest = this.#decimalAt(bytes, low, this.#low);
    const middle = this.#decimalAt(bytes, mid, this.#mid);
    const highest = this.#decimalAt(bytes, high, this.#high);
    if (lowest === undefined || !middle || highest === undefined) return false;
    this.low = lowest;
    this.mid = middle;
    this.high = highest;
    return (
      isExact(lowest ?? middle, middle, highest ?? middle) && this.#parseCode(bytes, code, line)
    );
  }

  /** Finds the fields of a line, and its end. */
  #split(bytes: Buffer, start: number): boolean {
    const { width } = this.#columns;
    const starts = this.#starts;
    const { length } = bytes;
    let field = 0;
    let at = start;
    starts[0] = start;
    for (; at < length; at += 1) {
      const byte = bytes[at] as number;
      if (byte === COMMA) {
        field += 1;
        if (field === width) break;
        starts[field] = at + 1;
      } else if (byte === LF) break;
    }
    if (field === width) at = bytes.indexOf(LF, at);
    this.end = at < 0 ? length : at;
    const stop = bytes[this.end - 1] === CR && this.end > start ? this.end - 1 : this.end;
    starts[width] = stop + 1;
    return field === width - 1;
  }

  #parseCode(bytes: Buffer, field: number, line: number): boolean {
    const from = this.#starts[field] as number;
    const to = (this.#starts[field + 1] as number) - 1;
    const length = to - from;
    const code = this.#code;
    let same = code.length === length ? 0 : -1;
    while (same >= 0 && same < length) same = code[same] === bytes[from + same] ? same + 1 : -1;
    if (same === length && length > 0) return true;
    if (length === 0 || length > CODE_BYTES_MAX) return false;
    for (let at = from; at < to; at += 1) {
      const byte = bytes[at] as number;
      if (byte < FIRST_VISIBLE || byte > LAST_VISIBLE || byte === QUOTE) return false;
    }
    this.series = this.#numberOf(bytes.toString('latin1', from, to), line);
    this.#code = Buffer.from(bytes.subarray(from, to));
    return true;
  }

  /** A decimal field; null if empty or absent, undefined if it must be read as a record. */
  #decimalAt(bytes: Buffer, field: number, into: PlainDecimal): PlainDecimal | null | undefined {
    if (field < 0) return null;
    const from = this.#starts[field] as number;
    const to = (this.#starts[field + 1] as number) - 1;
    if (from === to) return null;
    return into.parse(bytes, from, to) ? into : undefined;
  }

  /** The day at a position, YYYY-MM-DD, in days since 2000-01-01; NaN if it is not valid. */
  #dayAt(bytes: Buffer, at: number): number {
    if (bytes[at + 4] !== DASH || bytes[at + 7] !== DASH) return Number.NaN;
    const year = 100 * twoDigits(bytes, at) + twoDigits(bytes, at + 2);
    const month = twoDigits(bytes, at + 5);
    const day = twoDigits(bytes, at + 8);
    const key = 10_000 * year + 100 * month + day;
    const known = this.#days.get(key);
    if (known !== undefined) return known;
    if (!(day > 0 && day <= daysIn(year, month))) return Number.NaN;
    const number = dayNumber(year, month, day);
    if (!(number >= this.#dayMin && number <= this.#dayMax)) return Number.NaN;
    this.#days.set(key, number);
    return number;
  }

  /** Parses a time of publication: YYYY-MM-DDTHH:MM:SSZ, or nothing. */
  #parseTime(bytes: Buffer, field: number): boolean {
    this.publishedAt = null;
    if (field < 0) return true;
    const at = this.#starts[field] as number;
    const length = (this.#starts[field + 1] as number) - 1 - at;
    if (length === 0) return true;
    const isForm =
      length === 20 &&
      bytes[at + 10] === LETTER_T &&
      bytes[at + 13] === COLON &&
      bytes[at + 16] === COLON &&
      bytes[at + 19] === LETTER_Z;
    if (!isForm) return false;
    const day = this.#dayAt(bytes, at);
    const hours = twoDigits(bytes, at + 11);
    const minutes = twoDigits(bytes, at + 14);
    const seconds = twoDigits(bytes, at + 17);
    if (!(hours < 24 && minutes < 60 && seconds < 60)) return false;
    const time = day * DAY_MICROS + (3_600 * hours + 60 * minutes + seconds) * SECOND_MICROS;
    this.publishedAt = time;
    return time <= this.#nowMicros;
  }
}
