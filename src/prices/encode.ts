import { isUnconverted, NO_DAY, type PointColumns } from '../conversion/columns.ts';
import { ascii, ByteWriter } from './bytes.ts';
import { type RateTexts, rateTextsOf } from './rate-texts.ts';

const DATE = ascii('{"date":"');
const LOW = ascii('","low":');
const MID = ascii(',"mid":');
const HIGH = ascii(',"high":');
const PUBLISHED = ascii(',"publishedAt":"');
const CORRECTIONS = ascii('","corrections":');
const PERIOD_START = ascii(',"periodStart":"');
const PERIOD_END = ascii('","periodEnd":"');
const OBSERVATIONS = ascii('","observations":');
const LEFT_OUT = ascii(',"observationsLeftOut":');
const NO_RATE = ascii(',"conversionReason":"no-rate"');

/** Upper bound of the bytes of one point without wide numbers, comma included: reserved first. */
const POINT_BYTES_MAX = 640;
/** What a point usually takes: the size a buffer begins with, for each point. */
const POINT_BYTES = 128;

const COMMA = 0x2c;

/** Bytes of a slice: more would be held for each slow reader. */
const SLICE_BYTES = 65_536;

const out = new ByteWriter('null');

function writePeriod({ periods }: PointColumns, index: number): void {
  if (!periods) return;
  out.put(PERIOD_START);
  out.day(periods.start[index] as number);
  out.put(PERIOD_END);
  out.day(periods.end[index] as number);
  out.put(OBSERVATIONS);
  out.integer(periods.observations[index] as number);
  const leftOut = periods.leftOut[index] as number;
  if (leftOut === 0) return;
  out.put(LEFT_OUT);
  out.integer(leftOut);
}

function writePoint(points: PointColumns, index: number, rates: RateTexts | null): void {
  out.put(DATE);
  out.day(points.day[index] as number);
  out.put(LOW);
  out.number(points.low, index, POINT_BYTES_MAX);
  out.put(MID);
  out.number(points.mid, index, POINT_BYTES_MAX);
  out.put(HIGH);
  out.number(points.high, index, POINT_BYTES_MAX);
  out.put(PUBLISHED);
  out.instant(points.publishedAt[index] as number);
  out.put(CORRECTIONS);
  out.integer(points.corrections[index] as number);
  // A point without a rate used none, and shows none.
  if (points.fx && rates && points.fx.day[index] !== NO_DAY) out.put(rates.at(points.fx, index));
  if (points.periods !== null) writePeriod(points, index);
  if (isUnconverted(points, index)) out.put(NO_RATE);
  out.byte(0x7d);
}

/** The points of a series as JSON, separated by commas, in slices of bounded length. */
export function* slicesOfPoints(points: PointColumns): Generator<Buffer> {
  const rates = points.fx && rateTextsOf(points.fx);
  for (let index = 0; index < points.length; ) {
    const usual = (points.length - index) * POINT_BYTES;
    out.begin(Math.min(usual, SLICE_BYTES) + POINT_BYTES_MAX);
    while (index < points.length && out.written < SLICE_BYTES) {
      out.reserve(POINT_BYTES_MAX);
      if (index > 0) out.byte(COMMA);
      writePoint(points, index, rates);
      index += 1;
    }
    yield out.end();
  }
}

/**
 * The points of a series as JSON, each after a comma; exactly as long as they are.
 * @param ends is told where each point ends
 */
export function encodePoints(points: PointColumns, ends: Uint32Array): Buffer {
  out.beginAgain(points.length * POINT_BYTES + POINT_BYTES_MAX);
  const rates = points.fx && rateTextsOf(points.fx);
  for (let index = 0; index < points.length; index += 1) {
    out.reserve(POINT_BYTES_MAX);
    out.byte(COMMA);
    writePoint(points, index, rates);
    ends[index] = out.written;
  }
  return out.copied();
}
