import { NO_DAY } from '../../conversion/calendar.ts';
import {
  type DecimalColumn,
  type FxColumns,
  isUnconverted,
  lackingAt,
  type MeanColumns,
  type PointColumns,
} from '../../conversion/columns.ts';
import type { CurrencyRates } from '../../conversion/rate-table.ts';
import { summaryJson } from '../../conversion/summary.ts';
import type { Metadata, RenderContext } from '../answer/answer.ts';
import {
  ascii,
  ByteWriter,
  COMMA,
  dayOfMicros,
  fullSlices,
  POINT_BYTES_MAX,
  putDay,
  putDecimal,
  putInstant,
  putInteger,
  putText,
  QUOTE,
  WARNINGS_PER_SLICE,
} from './bytes.ts';
import type { Contents, Description, Writer } from './points.ts';
import { membersOf } from './record.ts';
import { CachedWords, putWords, Words, wordOf } from './words.ts';

/** Days whose texts are cached for one pair: eleven years. */
const DAYS = 4_096;

/** Pairs whose texts are cached. */
const PAIRS = 8;

/** Bytes of a text at most. */
const TEXT_BYTES = 160;

type Leg = CurrencyRates | null;
type Pair = FxColumns['pair'];

const rateOut = new ByteWriter('null');

/** The rates of a pair as JSON by day, cached because all converted prices share the days. */
class RateTexts {
  readonly #from: Leg;
  readonly #to: Leg;
  readonly #meanOf: Pair['meanOf'];
  readonly #days = new Int32Array(DAYS);
  readonly #texts: (Words | undefined)[] = new Array(DAYS).fill(undefined);

  constructor({ from, to, meanOf }: Pair) {
    this.#from = from;
    this.#to = to;
    this.#meanOf = meanOf;
  }

  isOf({ from, to, meanOf }: Pair): boolean {
    return this.#from === from && this.#to === to && this.#meanOf === meanOf;
  }

  /** `,"fx":{…}` or `,"fxMean":{…}` of a point that has a rate. */
  at(fx: FxColumns, index: number): Words {
    const day = fx.day[index] as number;
    const slot = day & (DAYS - 1);
    const known = this.#texts[slot];
    if (known && this.#days[slot] === day) return known;
    const text = fx.means === null ? fxText(fx, index) : meanText(fx.means, day, index);
    this.#days[slot] = day;
    this.#texts[slot] = text;
    return text;
  }
}

/** The text of `RateTexts.at` for the mean rate of a period. @param last its last rate day */
function meanText({ first, days, rate }: MeanColumns, last: number, index: number): Words {
  rateOut.reserve(TEXT_BYTES);
  rateOut.text(',"fxMean":{"firstDate":"');
  rateOut.day(first[index] as number);
  rateOut.text('","lastDate":"');
  rateOut.day(last);
  rateOut.text('","days":');
  rateOut.integer(days[index] as number);
  rateOut.text(',"rate":"');
  rateOut.number(rate, index, TEXT_BYTES);
  rateOut.text('"}');
  return new Words(rateOut.end().toString('latin1'));
}

/** The text of `RateTexts.at` for the rates of a day. */
function fxText(fx: FxColumns, index: number): Words {
  rateOut.reserve(TEXT_BYTES);
  rateOut.text(',"fx":{"date":"');
  rateOut.day(fx.day[index] as number);
  rateOut.text(`","base":"${fx.pair.base}","from":"`);
  rateOut.number(fx.from, index, TEXT_BYTES);
  rateOut.text('","to":"');
  rateOut.number(fx.to, index, TEXT_BYTES);
  rateOut.text('"}');
  return new Words(rateOut.end().toString('latin1'));
}

/** LRU cache, the most recently used first. */
const recent: RateTexts[] = [];

/** The cached texts of a pair, or new ones. */
function rateTextsOf({ pair }: FxColumns): RateTexts {
  const at = recent.findIndex((each) => each.isOf(pair));
  const [texts = new RateTexts(pair)] = at < 0 ? [] : recent.splice(at, 1);
  recent.unshift(texts);
  recent.length = Math.min(recent.length, PAIRS);
  return texts;
}

const DATE = ascii('{"date":"');
const LOW = ascii('","low":');
const MID = ',"mid":';
const MID_WORD = wordOf(MID);
const HIGH = ',"high":';
const HIGH_WORD = wordOf(HIGH);
const PUBLISHED = ascii(',"publishedAt":"');
const CORRECTIONS = ascii('","corrections":');

/** `{"date":"…","low":` by day. */
const dates = new CachedWords(32, (out, start, day) => {
  const at = putDay(out, putText(out, start, DATE), day);
  return putText(out, at, LOW);
});

/** `,"publishedAt":"…","corrections":` by instant; all prices of a publication have the same. */
const publications = new CachedWords(64, (out, start, micros) => {
  const at = putInstant(out, putText(out, start, PUBLISHED), micros);
  return putText(out, at, CORRECTIONS);
});

const PERIOD_START = ascii(',"periodStart":"');
const PERIOD_END = ascii('","periodEnd":"');
const OBSERVATIONS = ascii('","observations":');
const LEFT_OUT = ascii(',"observationsLeftOut":');
const MOVING_AVERAGE = ascii(',"movingAverage":');
const VAT_RATE = ascii(',"vatRate":');
const LACKING = {
  'no-rate': ascii(',"conversionReason":"no-rate"'),
  'no-vat-rate': ascii(',"conversionReason":"no-vat-rate"'),
};
const NULL = ascii('null');

/** Usual size of a point: the initial size of a buffer, for each point. */
const POINT_BYTES = 128;

/** Writes a value as a number, or as a string with the same digits; null is null. */
function putValue(
  out: Buffer,
  start: number,
  { scaled, scale, wide }: DecimalColumn,
  index: number,
  isText: boolean,
): number {
  const value = scaled[index] as number;
  if (Number.isNaN(value)) return putText(out, start, NULL);
  let at = start;
  if (isText) out[at++] = QUOTE;
  if (value !== Number.POSITIVE_INFINITY) at = putDecimal(out, at, value, scale[index] as number);
  else at += out.write(wide?.get(index) ?? 'null', at, 'latin1');
  if (isText) out[at++] = QUOTE;
  return at;
}

type Periods = NonNullable<PointColumns['periods']>;

function putPeriod(out: Buffer, start: number, periods: Periods, index: number): number {
  let at = putText(out, start, PERIOD_START);
  at = putDay(out, at, periods.start[index] as number);
  at = putText(out, at, PERIOD_END);
  at = putDay(out, at, periods.end[index] as number);
  at = putText(out, at, OBSERVATIONS);
  at = putInteger(out, at, periods.observations[index] as number);
  const leftOut = periods.leftOut[index] as number;
  if (leftOut === 0) return at;
  at = putText(out, at, LEFT_OUT);
  return putInteger(out, at, leftOut);
}

/** Writes one point. The buffer has room for `roomOf` bytes; the view is of its memory. */
function putPoint(
  view: DataView,
  out: Buffer,
  start: number,
  points: PointColumns,
  index: number,
  rates: RateTexts | null,
  isText: boolean,
): number {
  const { fx, vat, periods, movingAverage } = points;
  const day = points.day[index] as number;
  const micros = points.publishedAt[index] as number;
  let at = dates.put(view, out, start, day, day);
  at = putValue(out, at, points.low, index, isText);
  view.setFloat64(at, MID_WORD, true);
  at += MID.length;
  at = putValue(out, at, points.mid, index, isText);
  view.setFloat64(at, HIGH_WORD, true);
  at += HIGH.length;
  at = putValue(out, at, points.high, index, isText);
  at = publications.put(view, out, at, dayOfMicros(micros), micros);
  at = putInteger(out, at, points.corrections[index] as number);
  // A point without a rate has neither `fx` nor `fxMean`.
  if (fx !== null && rates !== null && fx.day[index] !== NO_DAY) {
    at = putWords(view, at, rates.at(fx, index));
  }
  if (vat !== null && !Number.isNaN(vat.scaled[index])) {
    at = putValue(out, putText(out, at, VAT_RATE), vat, index, true);
  }
  if (periods !== null) at = putPeriod(out, at, periods, index);
  if (movingAverage !== undefined) {
    at = putValue(out, putText(out, at, MOVING_AVERAGE), movingAverage, index, isText);
  }
  if (isUnconverted(points, index)) at = putText(out, at, LACKING[lackingAt(points, index)]);
  out[at] = 0x7d;
  return at + 1;
}

/** Bytes to reserve for a point: the usual bound, and numbers that are too wide for a double. */
function roomOf({ low, mid, high, movingAverage }: PointColumns, index: number): number {
  let room = POINT_BYTES_MAX;
  for (const each of [low, mid, high, movingAverage]) room += each?.wide?.get(index)?.length ?? 0;
  return room;
}

const hasWideNumbers = ({ low, mid, high, movingAverage }: PointColumns): boolean =>
  [low, mid, high, movingAverage].some((each) => each !== undefined && each.wide !== null);

/**
 * Writes the points of a series as JSON, separated by commas, and yields the slices that they fill.
 * @param isText writes low, mid and high as JSON strings
 */
export function* pointSlices(
  out: ByteWriter,
  points: PointColumns,
  isText: boolean,
): Generator<Buffer> {
  const rates = points.fx && rateTextsOf(points.fx);
  const hasWide = hasWideNumbers(points);
  yield* fullSlices(out, points.length, POINT_BYTES, POINT_BYTES_MAX, (index) => {
    if (hasWide) out.reserve(roomOf(points, index));
    if (index > 0) out.byte(COMMA);
    out.at = putPoint(out.view, out.bytes, out.at, points, index, rates, isText);
  });
}

/** A record as JSON up to its points; members are in the order of the contract. */
function recordStart(
  context: RenderContext,
  { price, currencyAndUnit, receipt, summary }: Description,
): string {
  const members = membersOf(context.plan.market, price, context.references, currencyAndUnit);
  const conversion = receipt ? `,"conversion":${JSON.stringify(receipt)}` : '';
  const changes = summary
    ? `,"summary":${summaryJson(summary, context.plan.options.decimalsAsText)}`
    : '';
  return `${JSON.stringify(members).slice(0, -1)}${conversion}${changes},"series":[`;
}

/** Writes a record as JSON, and yields the slices that it fills. @param end its last bytes */
function* recordJson(
  out: ByteWriter,
  context: RenderContext,
  contents: Contents,
  end: Buffer,
): Generator<Buffer> {
  const { decimalsAsText } = context.plan.options;
  out.add(Buffer.from(recordStart(context, contents)));
  if (contents.points !== null) yield* pointSlices(out, contents.points, decimalsAsText);
  out.add(end);
}

/** The bytes before the records of a document, in slices. */
function* documentStart({ warnings, ...metadata }: Metadata): Generator<Buffer> {
  const text = JSON.stringify({ ...metadata, warnings: [] });
  yield Buffer.from(`{"$metadata":${text.slice(0, -2)}`);
  for (let at = 0; at < warnings.length; at += WARNINGS_PER_SLICE) {
    const some = JSON.stringify(warnings.slice(at, at + WARNINGS_PER_SLICE)).slice(1, -1);
    yield Buffer.from(at === 0 ? some : `,${some}`);
  }
  yield Buffer.from(']},"data":[');
}

const RECORD_END = ascii(']}');
const LINE_END = ascii(']}\n');
const NOTHING = ascii('');

/** `application/json`: one document. */
export function jsonWriter(): Writer {
  const out = new ByteWriter('null');
  return {
    out,
    start: ({ metadata }) => documentStart(metadata),
    record: (context, contents) => recordJson(out, context, contents, RECORD_END),
    between: ascii(','),
    end: RECORD_END,
  };
}

/** `application/x-ndjson`: a record on each line, with the same bytes as in the JSON document. */
export function ndjsonWriter(): Writer {
  const out = new ByteWriter('null');
  return {
    out,
    start: () => [],
    record: (context, contents) => recordJson(out, context, contents, LINE_END),
    between: NOTHING,
    end: NOTHING,
  };
}
