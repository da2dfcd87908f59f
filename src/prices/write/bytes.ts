import type { DecimalColumn } from '../../conversion/columns.ts';
import { dayText } from '../../std/days.ts';

/** Bytes of a slice. A larger slice would be held in memory for each slow reader. */
export const SLICE_BYTES = 65_536;

/** Upper bound of the bytes of one point in any format, without wide numbers: reserved first. */
export const POINT_BYTES_MAX = 768;

/** Warnings in one slice: there may be one for each record. */
export const WARNINGS_PER_SLICE = 200;

export const COMMA = 0x2c;
const POINT = 0x2e;
export const QUOTE = 0x22;

/** ASCII text as bytes. */
export const ascii = (text: string): Buffer => Buffer.from(text, 'latin1');

const MICROS_PER_DAY = 86_400_000_000;

/** Bytes up to which copying one by one is faster than a call of `set`. */
const SHORT_BYTES = 24;

/*
 * The functions below write at an offset of a buffer that has room, and return the offset after
 * what they wrote: plain functions of numbers cost half as much as methods that keep an offset.
 */

/** Writes bytes. */
export function putText(out: Buffer, at: number, text: Uint8Array): number {
  const { length } = text;
  if (length > SHORT_BYTES) out.set(text, at);
  else for (let index = 0; index < length; index += 1) out[at + index] = text[index] as number;
  return at + length;
}

/** Days whose texts are cached, because the same days recur: eleven years. */
const DAY_SLOTS = 4_096;
/** Bytes of `YYYY-MM-DD`. */
const DAY_BYTES = 10;
const LEAST_INT32 = -2_147_483_648;
const slotDays = new Int32Array(DAY_SLOTS).fill(LEAST_INT32);
const slotTexts = new Uint8Array(DAY_SLOTS * DAY_BYTES);

/** `YYYY-MM-DD` of a day counted from 2000-01-01. */
export function putDay(out: Buffer, at: number, day: number): number {
  const slot = day & (DAY_SLOTS - 1);
  const from = slot * DAY_BYTES;
  if (slotDays[slot] !== day) {
    slotTexts.set(ascii(dayText(day)), from);
    slotDays[slot] = day;
  }
  for (let index = 0; index < DAY_BYTES; index += 1) {
    out[at + index] = slotTexts[from + index] as number;
  }
  return at + DAY_BYTES;
}

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

/** Writes `count` digits of a whole number. */
function putDigits(out: Buffer, start: number, value: number, count: number): number {
  let rest = value;
  for (let at = start + count - 1; at >= start; at -= 1) {
    const next = Math.floor(rest / 10);
    out[at] = 0x30 + (rest - next * 10);
    rest = next;
  }
  return start + count;
}

/** A decimal of a 32-bit integer, whose arithmetic is several times faster. */
function putSmallDecimal(out: Buffer, start: number, scaled: number, scale: number): number {
  let value = scaled | 0;
  let decimals = scale | 0;
  while (decimals > 0 && value % 10 === 0) {
    value = (value / 10) | 0;
    decimals -= 1;
  }
  let first = start;
  if (value < 0) {
    out[first++] = 0x2d;
    value = -value | 0;
  }
  const digits = Math.max(smallDigitsOf(value), decimals + 1);
  const end = first + digits + (decimals > 0 ? 1 : 0);
  let at = end;
  for (let place = 0; at > first; place += 1) {
    at -= 1;
    if (place === decimals && decimals > 0) {
      out[at] = 0x2e;
      at -= 1;
    }
    const next = (value / 10) | 0;
    out[at] = 0x30 + (value - next * 10);
    value = next;
  }
  return end;
}

/** A whole number from 0 to 2^53. */
export function putInteger(out: Buffer, at: number, value: number): number {
  const small = value | 0;
  if (small === value) return putSmallDecimal(out, at, small, 0);
  return putDigits(out, at, value, digitsOf(value));
}

/** A decimal without trailing zeros. @param scaled not NaN */
export function putDecimal(out: Buffer, start: number, scaled: number, scale: number): number {
  const small = scaled | 0;
  if (small === scaled && small !== LEAST_INT32) return putSmallDecimal(out, start, small, scale);
  let value = scaled;
  let decimals = scale;
  while (decimals > 0 && value % 10 === 0) {
    value /= 10;
    decimals -= 1;
  }
  let at = start;
  if (value < 0) {
    out[at++] = 0x2d;
    value = -value;
  }
  if (decimals === 0) return putInteger(out, at, value);
  const unit = 10 ** decimals;
  const whole = Math.floor(value / unit);
  at = putInteger(out, at, whole);
  out[at++] = 0x2e;
  return putDigits(out, at, value - whole * unit, decimals);
}

/** Two digits and the byte after them. */
function putPair(out: Buffer, at: number, value: number, after: number): number {
  const tens = (value / 10) | 0;
  out[at] = 0x30 + tens;
  out[at + 1] = 0x30 + (value - tens * 10);
  out[at + 2] = after;
  return at + 3;
}

/** The day of microseconds since 2000-01-01. */
export const dayOfMicros = (micros: number): number => Math.floor(micros / MICROS_PER_DAY);

/** Microseconds since 2000-01-01 in RFC 3339, with as many decimals of a second as needed. */
export function putInstant(out: Buffer, start: number, micros: number): number {
  const day = dayOfMicros(micros);
  const rest = micros - day * MICROS_PER_DAY;
  const seconds = Math.floor(rest / 1_000_000);
  const fraction = rest - seconds * 1_000_000;
  let at = putDay(out, start, day);
  out[at++] = 0x54;
  at = putPair(out, at, (seconds / 3600) | 0, 0x3a);
  at = putPair(out, at, ((seconds / 60) | 0) % 60, 0x3a);
  at = putPair(out, at, seconds % 60, fraction === 0 ? 0x5a : 0x2e);
  if (fraction === 0) return at;
  at = putText(out, at, ascii(String(fraction).padStart(6, '0').replace(/0+$/, '')));
  out[at++] = 0x5a;
  return at;
}

const NOTHING = Buffer.alloc(0);

const viewOf = ({ buffer, byteOffset, length }: Buffer): DataView =>
  new DataView(buffer, byteOffset, length);

/**
 * A growing buffer for the values of points: days, instants, and numbers as the digits of their
 * scaled integers. Callers reserve room before they write.
 */
export class ByteWriter {
  bytes: Buffer = NOTHING;
  /** The same memory. */
  view = viewOf(NOTHING);
  /** Number of written bytes. */
  at = 0;
  readonly #null: Buffer;

  /** @param nothing the notation of null */
  constructor(nothing: string) {
    this.#null = ascii(nothing);
  }

  /** The written bytes, whose ownership passes to the caller. */
  end(): Buffer {
    const written = this.bytes.subarray(0, this.at);
    this.#use(NOTHING);
    this.at = 0;
    return written;
  }

  #use(bytes: Buffer): void {
    this.bytes = bytes;
    this.view = viewOf(bytes);
  }

  /** True if the written bytes are a slice. */
  get isFull(): boolean {
    return this.at >= SLICE_BYTES;
  }

  /** Reserves room for more bytes. The buffer doubles, and seldom exceeds a slice and that room. */
  reserve(bytes: number): void {
    const needed = this.at + bytes;
    if (needed <= this.bytes.length) return;
    const most = this.isFull ? Number.POSITIVE_INFINITY : SLICE_BYTES + bytes;
    const bigger = Buffer.allocUnsafe(Math.max(needed, Math.min(2 * needed, most)));
    this.bytes.copy(bigger, 0, 0, this.at);
    this.#use(bigger);
  }

  put(text: Buffer): void {
    this.at = putText(this.bytes, this.at, text);
  }

  /** Reserves room for bytes, and writes them. */
  add(text: Buffer): void {
    this.reserve(text.length);
    this.put(text);
  }

  /** ASCII letters. */
  text(letters: string): void {
    this.at += this.bytes.write(letters, this.at, 'latin1');
  }

  byte(value: number): void {
    this.bytes[this.at++] = value;
  }

  /** A day counted from 2000-01-01. */
  day(day: number): void {
    this.at = putDay(this.bytes, this.at, day);
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
    if (Number.isNaN(scaled)) this.put(this.#null);
    else this.at = putDecimal(this.bytes, this.at, scaled, scale);
  }

  /** Replaces the decimal points since an offset by commas. */
  decimalCommas(from: number): void {
    const { bytes, at: end } = this;
    for (let at = from; at < end; at += 1) if (bytes[at] === POINT) bytes[at] = COMMA;
  }

  /** A whole number from 0 to 2^53. */
  integer(value: number): void {
    this.at = putInteger(this.bytes, this.at, value);
  }

  /** Microseconds since 2000-01-01 in RFC 3339. */
  instant(micros: number): void {
    this.at = putInstant(this.bytes, this.at, micros);
  }
}

/**
 * Writes rows to `out`, and yields the slices of about `SLICE_BYTES` that they fill. The rest stays
 * there.
 * @param usualBytes usual size of a row, for the size of the buffers
 * @param room bytes to reserve for a row
 * @param write writes the row of an index to `out`
 */
export function* fullSlices(
  out: ByteWriter,
  count: number,
  usualBytes: number,
  room: number,
  write: (index: number) => void,
): Generator<Buffer> {
  for (let index = 0; index < count; ) {
    out.reserve(Math.min((count - index) * usualBytes, SLICE_BYTES - out.at) + room);
    while (index < count && !out.isFull) {
      out.reserve(room);
      write(index);
      index += 1;
    }
    if (out.isFull) yield out.end();
  }
}
