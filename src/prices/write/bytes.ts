import type { DecimalColumn } from '../../conversion/columns.ts';
import { dayText } from '../../std/days.ts';

/** Bytes of a slice. A larger slice would be held in memory for each slow reader. */
export const SLICE_BYTES = 65_536;

/** Upper bound of the bytes of one point in any format, without wide numbers: reserved first. */
export const POINT_BYTES_MAX = 640;

/** Warnings in one slice: there may be one for each record. */
export const WARNINGS_PER_SLICE = 200;

export const COMMA = 0x2c;
export const QUOTE = 0x22;

/** ASCII text as bytes. */
export const ascii = (text: string): Buffer => Buffer.from(text, 'latin1');

const MICROS_PER_DAY = 86_400_000_000;

/** Bytes up to which copying one by one is faster than a call of `set`. */
const SHORT_BYTES = 24;

const days = new Map<number, Buffer>();

/** `YYYY-MM-DD` of a day counted from 2000-01-01; cached, because the same days recur. */
function dayBytes(day: number): Buffer {
  let text = days.get(day);
  if (!text) {
    text = ascii(dayText(day));
    days.set(day, text);
  }
  return text;
}

const LEAST_INT32 = -2_147_483_648;

/** Number of digits of a 32-bit integer. */
function smallDigitsOf(value: number): number {
  let digits = 1;
  for (let rest = (value / 10) | 0; rest > 0; rest = (rest / 10) | 0) digits += 1;
  return digits;
}

function digitsOf(value: number): number {
  let digits = 1;
  for (let limit = 10; value >= limit; limit *= 10) digits += 1;
  return digits;
}

/** Maximum size of a buffer that is reused. */
const REUSED_BYTES_MAX = 1_048_576;

/**
 * A growing buffer for the values of points: days, instants, and numbers as the digits of their
 * scaled integers. Callers reserve room before they write.
 */
export class ByteWriter {
  #bytes = Buffer.alloc(0);
  #at = 0;
  readonly #null: Buffer;

  /** @param nothing the notation of null */
  constructor(nothing: string) {
    this.#null = ascii(nothing);
  }

  /** Starts a new buffer with room for some bytes. */
  begin(bytes: number): void {
    this.#bytes = Buffer.allocUnsafe(bytes);
    this.#at = 0;
  }

  /** Starts again in the same buffer; the caller must copy the result. */
  beginAgain(bytes: number): void {
    if (this.#bytes.length < bytes) this.begin(bytes);
    this.#at = 0;
  }

  /** The written bytes, whose ownership passes to the caller. */
  end(): Buffer {
    const written = this.#bytes.subarray(0, this.#at);
    this.#bytes = Buffer.alloc(0);
    return written;
  }

  /** A copy of the written bytes, of the exact size. */
  copied(): Buffer {
    const copy = Buffer.allocUnsafeSlow(this.#at);
    this.#bytes.copy(copy, 0, 0, this.#at);
    // Reuses the buffer unless it is too large.
    if (this.#bytes.length > REUSED_BYTES_MAX) this.#bytes = Buffer.alloc(0);
    return copy;
  }

  /** Number of written bytes. */
  get written(): number {
    return this.#at;
  }

  /** Reserves room for more bytes. */
  reserve(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const bigger = Buffer.allocUnsafe(2 * this.#bytes.length + bytes);
    this.#bytes.copy(bigger, 0, 0, this.#at);
    this.#bytes = bigger;
  }

  put(text: Buffer): void {
    const { length } = text;
    if (length > SHORT_BYTES) {
      this.#bytes.set(text, this.#at);
    } else {
      for (let index = 0; index < length; index += 1) {
        this.#bytes[this.#at + index] = text[index] as number;
      }
    }
    this.#at += length;
  }

  /** ASCII letters. */
  text(letters: string): void {
    this.#at += this.#bytes.write(letters, this.#at, 'latin1');
  }

  byte(value: number): void {
    this.#bytes[this.#at++] = value;
  }

  /** A day counted from 2000-01-01. */
  day(day: number): void {
    this.put(dayBytes(day));
  }

  /**
   * A number of a column: a decimal, null, or the text of one too wide for a double.
   * @param room bytes that must still fit after it
   */
  number(column: DecimalColumn, index: number, room: number): void {
    const scaled = column.scaled[index] as number;
    if (scaled !== Number.POSITIVE_INFINITY) {
      this.decimal(scaled, column.scale[index] as number);
      return;
    }
    const wide = column.wide?.get(index);
    const text = wide === undefined ? this.#null : ascii(wide);
    this.reserve(text.length + room);
    this.put(text);
  }

  /** A decimal without trailing zeros; NaN is null. */
  decimal(scaled: number, scale: number): void {
    if (Number.isNaN(scaled)) {
      this.put(this.#null);
      return;
    }
    const small = scaled | 0;
    if (small === scaled && small !== LEAST_INT32) {
      this.#smallDecimal(small, scale);
      return;
    }
    let value = scaled;
    let decimals = scale;
    while (decimals > 0 && value % 10 === 0) {
      value /= 10;
      decimals -= 1;
    }
    if (value < 0) {
      this.#bytes[this.#at++] = 0x2d;
      value = -value;
    }
    if (decimals === 0) this.integer(value);
    else this.#fraction(value, decimals);
  }

  /** A decimal of a 32-bit integer, whose arithmetic is several times faster. */
  #smallDecimal(scaled: number, scale: number): void {
    let value = scaled | 0;
    let decimals = scale | 0;
    while (decimals > 0 && value % 10 === 0) {
      value = (value / 10) | 0;
      decimals -= 1;
    }
    if (value < 0) {
      this.#bytes[this.#at++] = 0x2d;
      value = -value | 0;
    }
    const digits = Math.max(smallDigitsOf(value), decimals + 1);
    const start = this.#at;
    let at = start + digits + (decimals > 0 ? 1 : 0);
    this.#at = at;
    for (let place = 0; at > start; place += 1) {
      at -= 1;
      if (place === decimals && decimals > 0) {
        this.#bytes[at] = 0x2e;
        at -= 1;
      }
      const next = (value / 10) | 0;
      this.#bytes[at] = 0x30 + (value - next * 10);
      value = next;
    }
  }

  /** A whole number from 0 to 2^53. */
  integer(value: number): void {
    const small = value | 0;
    if (small === value) {
      this.#smallDecimal(small, 0);
      return;
    }
    const end = this.#at + digitsOf(value);
    this.#digits(value, end, end - this.#at);
    this.#at = end;
  }

  #fraction(value: number, decimals: number): void {
    const unit = 10 ** decimals;
    const whole = Math.floor(value / unit);
    this.integer(whole);
    this.#bytes[this.#at++] = 0x2e;
    const end = this.#at + decimals;
    this.#digits(value - whole * unit, end, decimals);
    this.#at = end;
  }

  /** Writes `count` digits of a whole number so that they end before `end`. */
  #digits(value: number, end: number, count: number): void {
    let rest = value;
    for (let at = end - 1; at >= end - count; at -= 1) {
      const next = Math.floor(rest / 10);
      this.#bytes[at] = 0x30 + (rest - next * 10);
      rest = next;
    }
  }

  /** Microseconds since 2000-01-01 in RFC 3339, with as many decimals of a second as needed. */
  instant(micros: number): void {
    const day = Math.floor(micros / MICROS_PER_DAY);
    let rest = micros - day * MICROS_PER_DAY;
    const fraction = rest % 1_000_000;
    rest = (rest - fraction) / 1_000_000;
    this.put(dayBytes(day));
    this.#bytes[this.#at++] = 0x54;
    this.#pair(Math.floor(rest / 3600), 0x3a);
    this.#pair(Math.floor(rest / 60) % 60, 0x3a);
    if (fraction === 0) {
      this.#pair(rest % 60, 0x5a);
      return;
    }
    this.#pair(rest % 60, 0x2e);
    this.put(ascii(String(fraction).padStart(6, '0').replace(/0+$/, '')));
    this.#bytes[this.#at++] = 0x5a;
  }

  #pair(value: number, after: number): void {
    this.#bytes[this.#at] = 0x30 + Math.floor(value / 10);
    this.#bytes[this.#at + 1] = 0x30 + (value % 10);
    this.#bytes[this.#at + 2] = after;
    this.#at += 3;
  }
}
