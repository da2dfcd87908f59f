import { type DecimalColumn, NO_DAY, type PointColumns } from '../conversion/columns.ts';

const ascii = (text: string): Buffer => Buffer.from(text, 'latin1');

const DATE = ascii('{"date":"');
const LOW = ascii('","low":');
const MID = ascii(',"mid":');
const HIGH = ascii(',"high":');
const PUBLISHED = ascii(',"publishedAt":"');
const CORRECTIONS = ascii('","corrections":');
const FX = ascii(',"fx":{"date":"');
const FROM = ascii('","from":"');
const TO = ascii('","to":"');
const FX_END = ascii('"}');
const PERIOD_START = ascii(',"periodStart":"');
const PERIOD_END = ascii('","periodEnd":"');
const OBSERVATIONS = ascii('","observations":');
const NULL = ascii('null');

/** Upper bound of the bytes of one encoded point without wide numbers, comma included. */
const POINT_BYTES_MAX = 640;
/** What a point usually takes: the size a buffer begins with, for each point. */
const POINT_BYTES = 128;

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
  #bytes = Buffer.alloc(0);
  #at = 0;

  /** The bytes of all points of the columns, separated by commas. */
  encode(points: PointColumns): Buffer {
    this.#bytes = Buffer.allocUnsafe(points.length * POINT_BYTES + POINT_BYTES_MAX);
    this.#at = 0;
    const base = points.fx === null ? null : ascii(`","base":"${points.fx.base}`);
    for (let index = 0; index < points.length; index += 1) this.#point(points, index, base);
    const encoded = this.#bytes.subarray(0, this.#at);
    this.#bytes = Buffer.alloc(0);
    return encoded;
  }

  #point(points: PointColumns, index: number, base: Buffer | null): void {
    this.#reserve(POINT_BYTES_MAX);
    if (index > 0) this.#bytes[this.#at++] = 0x2c;
    this.#put(DATE);
    this.#put(dayText(points.day[index] as number));
    this.#put(LOW);
    this.#number(points.low, index);
    this.#put(MID);
    this.#number(points.mid, index);
    this.#put(HIGH);
    this.#number(points.high, index);
    this.#put(PUBLISHED);
    this.#instant(points.publishedAt[index] as number);
    this.#put(CORRECTIONS);
    this.#integer(points.corrections[index] as number);
    if (base !== null) this.#rates(points, index, base);
    if (points.periods !== null) this.#period(points, index);
    this.#bytes[this.#at++] = 0x7d;
  }

  #rates({ fx }: PointColumns, index: number, base: Buffer): void {
    const day = fx?.day[index];
    // A point without a rate used none, and shows none.
    if (!fx || day === undefined || day === NO_DAY) return;
    this.#put(FX);
    this.#put(dayText(day));
    this.#put(base);
    this.#put(FROM);
    this.#number(fx.from, index);
    this.#put(TO);
    this.#number(fx.to, index);
    this.#put(FX_END);
  }

  #period({ periods }: PointColumns, index: number): void {
    if (!periods) return;
    this.#put(PERIOD_START);
    this.#put(dayText(periods.start[index] as number));
    this.#put(PERIOD_END);
    this.#put(dayText(periods.end[index] as number));
    this.#put(OBSERVATIONS);
    this.#integer(periods.observations[index] as number);
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const bigger = Buffer.allocUnsafe(2 * this.#bytes.length + bytes);
    this.#bytes.copy(bigger, 0, 0, this.#at);
    this.#bytes = bigger;
  }

  #put(text: Buffer): void {
    this.#bytes.set(text, this.#at);
    this.#at += text.length;
  }

  /** A number of a column: a decimal, null, or the text of one too wide for a double. */
  #number(column: DecimalColumn, index: number): void {
    const scaled = column.scaled[index] as number;
    if (scaled !== Number.POSITIVE_INFINITY) {
      this.#decimal(scaled, column.scale[index] as number);
      return;
    }
    const text = ascii(column.wide?.get(index) ?? 'null');
    this.#reserve(text.length + POINT_BYTES_MAX);
    this.#put(text);
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
    this.#put(ascii(String(fraction).padStart(6, '0').replace(/0+$/, '')));
    this.#bytes[this.#at++] = 0x5a;
  }

  #pair(value: number, after: number): void {
    this.#bytes[this.#at] = 0x30 + Math.floor(value / 10);
    this.#bytes[this.#at + 1] = 0x30 + (value % 10);
    this.#bytes[this.#at + 2] = after;
    this.#at += 3;
  }
}

function digitsOf(value: number): number {
  let digits = 1;
  for (let limit = 10; value >= limit; limit *= 10) digits += 1;
  return digits;
}

const writer = new PointWriter();

/** The points of a series as JSON, without the brackets around them. */
export const encodePoints = (points: PointColumns): Buffer => writer.encode(points);
