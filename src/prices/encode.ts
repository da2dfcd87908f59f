import type { SeriesColumns } from './columns.ts';

const ascii = (text: string): Buffer => Buffer.from(text, 'latin1');

const DATE = ascii('{"date":"');
const LOW = ascii('","low":');
const MID = ascii(',"mid":');
const HIGH = ascii(',"high":');
const PUBLISHED = ascii(',"publishedAt":"');
const CORRECTIONS = ascii('","corrections":');
const NULL = ascii('null');

/** Upper bound of the bytes of one encoded point, comma included. */
const POINT_BYTES_MAX = 192;

const DAY_MS = 86_400_000;
const EPOCH_2000_MS = Date.UTC(2000, 0, 1);
const MICROS_PER_DAY = 86_400_000_000;

const days = new Map<number, Buffer>();

/** `YYYY-MM-DD` of a day counted from 2000-01-01; remembered, as the same days recur. */
function dayText(day: number): Buffer {
  let text = days.get(day);
  if (!text) {
    text = ascii(new Date(EPOCH_2000_MS + day * DAY_MS).toISOString().slice(0, 10));
    days.set(day, text);
  }
  return text;
}

/** Writes points as JSON into one growing buffer. Numbers are digits of the scaled integers. */
class PointWriter {
  #bytes = Buffer.allocUnsafe(16_384);
  #at = 0;

  /** The bytes of all points of the columns, separated by commas. */
  encode(columns: SeriesColumns): Buffer {
    this.#bytes = Buffer.allocUnsafe(Math.max(columns.length * POINT_BYTES_MAX, 1));
    this.#at = 0;
    for (let index = 0; index < columns.length; index += 1) this.#point(columns, index);
    // A copy of the exact length lets the larger scratch buffer go.
    return Buffer.from(this.#bytes.subarray(0, this.#at));
  }

  #point(columns: SeriesColumns, index: number): void {
    const scale = columns.scale[index] as number;
    if (index > 0) this.#bytes[this.#at++] = 0x2c;
    this.#put(DATE);
    this.#put(dayText(columns.day[index] as number));
    this.#put(LOW);
    this.#decimal(columns.low[index] as number, scale);
    this.#put(MID);
    this.#decimal(columns.mid[index] as number, scale);
    this.#put(HIGH);
    this.#decimal(columns.high[index] as number, scale);
    this.#put(PUBLISHED);
    this.#instant(columns.publishedAt[index] as number);
    this.#put(CORRECTIONS);
    this.#integer(columns.corrections[index] as number);
    this.#bytes[this.#at++] = 0x7d;
  }

  #put(text: Buffer): void {
    this.#bytes.set(text, this.#at);
    this.#at += text.length;
  }

  /** A decimal without trailing zeros; NaN is null. */
  #decimal(scaled: number, scale: number): void {
    if (Number.isNaN(scaled)) {
      this.#put(NULL);
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
    if (decimals === 0) this.#integer(value);
    else this.#fraction(value, decimals);
  }

  /** A whole number from 0 to 2^53. */
  #integer(value: number): void {
    const end = this.#at + digitsOf(value);
    this.#digits(value, end, end - this.#at);
    this.#at = end;
  }

  #fraction(value: number, decimals: number): void {
    const unit = 10 ** decimals;
    const whole = Math.floor(value / unit);
    this.#integer(whole);
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

  /** RFC 3339 in UTC, with as many decimals of the second as there are. */
  #instant(micros: number): void {
    const day = Math.floor(micros / MICROS_PER_DAY);
    let rest = micros - day * MICROS_PER_DAY;
    const fraction = rest % 1_000_000;
    rest = (rest - fraction) / 1_000_000;
    this.#put(dayText(day));
    this.#bytes[this.#at++] = 0x54;
    this.#pair(Math.floor(rest / 3600), 0x3a);
    this.#pair(Math.floor(rest / 60) % 60, 0x3a);
    if (fraction === 0) {
      this.#pair(rest % 60, 0x5a);
      return;
    }
    this.#pair(rest % 60, 0x2e);
    const digits = trimmed(fraction);
    for (const digit of digits) this.#bytes[this.#at++] = digit;
    this.#bytes[this.#at++] = 0x5a;
  }

  #pair(value: number, after: number): void {
    this.#bytes[this.#at] = 0x30 + Math.floor(value / 10);
    this.#bytes[this.#at + 1] = 0x30 + (value % 10);
    this.#bytes[this.#at + 2] = after;
    this.#at += 3;
  }
}

const trimmed = (micros: number): Buffer =>
  ascii(String(micros).padStart(6, '0').replace(/0+$/, ''));

function digitsOf(value: number): number {
  let digits = 1;
  for (let limit = 10; value >= limit; limit *= 10) digits += 1;
  return digits;
}

const writer = new PointWriter();

/** The points of a series as JSON, without the brackets around them. */
export const encodePoints = (columns: SeriesColumns): Buffer => writer.encode(columns);
