import type { Format } from '../contract/schemas/formats.ts';
import type { Columns } from '../conversion/columns.ts';
import type { Conversion } from '../conversion/convert.ts';
import type { Answer } from '../prices/answer/answer.ts';
import type { PlannedPrice } from '../prices/answer/conversions.ts';
import type { RateSource } from '../prices/market/rates.ts';
import { csvHeader } from '../prices/write/csv.ts';
import { documentStart, recordStart } from '../prices/write/json.ts';
import { descriptionOf, roundingOf, summaryIn } from '../prices/write/points.ts';
import type { Body } from '../std/body-stream.ts';
import type { Days } from '../std/days.ts';
import { UNHELD_BYTES } from '../std/held-bytes.ts';
import { type BlockRange, columnsOfRanges, pointsIn, rangesIn } from './block.ts';
import type { Budget } from './budget.ts';
import type { BookPrice, Edition } from './edition.ts';
import { type Fragment, fragmentOf, type NumberForm } from './fragment.ts';
import { BETWEEN, cellsOf, RecordHead, readDataRevision } from './head.ts';
import type { Turns } from './turns.ts';

/** The edition of an answer, and what encodes it. */
interface BookSource {
  readonly edition: Edition;
  readonly budget: Budget;
  readonly turns: Turns;
  /** The source of exchange rates; null if the answer converts no currency. */
  readonly rates: RateSource | null;
}

/** The series of a price up to the last of some days, for its summary. */
const columnsUpTo = ({ blocks }: BookPrice, { last }: Days): Columns =>
  columnsOfRanges(rangesIn(blocks, { first: -Infinity, last }));

/** Identifies a conversion, with the revision of its rates and the factors of its units. */
function keyOf(
  { unit, pair }: Conversion,
  decimals: number | null,
  rates: RateSource | null,
): string {
  const legs = pair && `${pair.from?.iso ?? ''}>${pair.to?.iso ?? ''}/${pair.base}`;
  const source = pair && `${rates?.slug}.${rates?.revision}`;
  return `${unit.multiply}/${unit.divide} ${legs} ${source} ${decimals}`;
}

const NO_RANGES: readonly BlockRange[] = [];

/** Ranges without their first points. */
function withoutFirst(ranges: readonly BlockRange[], count: number): readonly BlockRange[] {
  let left = count;
  let start = 0;
  for (; left > 0 && start < ranges.length; start += 1) {
    const { block, from, to } = ranges[start] as BlockRange;
    if (left < to - from) {
      return [{ block, from: from + left, to }, ...ranges.slice(start + 1)];
    }
    left -= to - from;
  }
  return ranges.slice(start);
}

/** One record of an answer in the book. */
interface BookRecord {
  readonly planned: PlannedPrice;
  readonly bookPrice: BookPrice;
  readonly ranges: readonly BlockRange[];
  /** Number of points at the start of the ranges that the answer does not show. */
  readonly skipped: number;
  readonly form: NumberForm;
}

/** The records of an answer, in its order. */
function* recordsOf({ edition, rates }: BookSource, answer: Answer): Generator<BookRecord> {
  const { plan } = answer.context;
  const { days } = plan;
  for (const planned of answer.records) {
    const bookPrice = edition.prices.get(planned.price.id);
    if (!bookPrice) throw new Error(`the edition has no price ${planned.price.code}`);
    const conversion = planned.outcome?.conversion ?? null;
    const { includeSeries, decimals, lastObservations } = plan.options;
    const ranges = includeSeries ? rangesIn(bookPrice.blocks, days) : NO_RANGES;
    const skipped = lastObservations === null ? 0 : pointsIn(ranges) - lastObservations;
    const form: NumberForm = {
      key: conversion === null ? '' : keyOf(conversion, decimals, rates),
      conversion,
      rounding: roundingOf(plan, planned.price),
      cells: null,
    };
    yield { planned, bookPrice, ranges, skipped, form };
  }
}

/** The number of points of a record without a rate. */
function withoutRateIn({ ranges }: BookRecord, fragments: readonly Fragment[]): number {
  let count = 0;
  for (const [index, { from, to }] of ranges.entries()) {
    for (const point of fragments[index]?.withoutRate ?? []) {
      if (point >= from && point < to) count += 1;
    }
  }
  return count;
}

/** Cost of a summary and its head without the points, in encoded points. */
const SUMMARY_POINTS = 100;

/** The head of a record. A head with a summary is not cached. */
function headFor(
  { budget, turns }: BookSource,
  { context }: Answer,
  { planned, bookPrice }: BookRecord,
  withoutRate: number,
): RecordHead {
  if (!context.plan.options.includeSummary) {
    return readDataRevision({ ...bookPrice, context, planned, withoutRate }, budget, turns);
  }
  const columns = columnsUpTo(bookPrice, context.plan.days);
  turns.spend(columns.length + SUMMARY_POINTS);
  const summary = summaryIn(context, planned, columns);
  return new RecordHead(
    recordStart(context, descriptionOf(context, planned, summary, withoutRate)),
  );
}

/** The formats whose records are JSON objects. */
type JsonFormat = Extract<Format, 'json' | 'ndjson'>;

/** The formats that are assembled from fragments. */
export type BookFormat = Extract<Format, 'json' | 'ndjson' | 'csv'>;

/** The bytes around the records of a format. */
interface Frame {
  readonly head: (answer: Answer) => Iterable<Buffer>;
  /** The separator of records; null if the prefix of record heads contains it. */
  readonly between: Buffer | null;
  readonly end: Buffer;
  /** The end of an answer without records. */
  readonly emptyEnd: Buffer;
}

const LINE_END = Buffer.from(']}\n');

const FRAMES: Readonly<Record<JsonFormat, Frame>> = {
  json: {
    head: ({ metadata }) => documentStart(metadata),
    between: null,
    end: Buffer.from(`${BETWEEN.slice(0, -1)}]}`),
    emptyEnd: Buffer.from(']}'),
  },
  ndjson: { head: () => [], between: LINE_END, end: LINE_END, emptyEnd: Buffer.alloc(0) },
};

/** Cost of a part, in encoded points. */
const PART_POINTS = 2;

/** Bytes of other JSON that cost about as much as one encoded point. */
const BYTES_PER_POINT = 128;

/** Encodes an answer part by part. */
function* walk(source: BookSource, answer: Answer, format: JsonFormat): Generator<Buffer> {
  const { budget, turns } = source;
  const { head: start, between, end, emptyEnd } = FRAMES[format];
  for (const slice of start(answer)) {
    turns.spend(Math.ceil(slice.length / BYTES_PER_POINT));
    yield slice;
  }
  let written = 0;
  for (const record of recordsOf(source, answer)) {
    const { ranges, skipped, form } = record;
    const page = withoutFirst(ranges, skipped);
    // The head of a converted record counts all points without a rate, also those that it omits.
    const needed = form.conversion ? ranges : page;
    const fragments = needed.map(({ block }) => fragmentOf(block, form, budget, turns));
    const withoutRate = form.conversion ? withoutRateIn(record, fragments) : 0;
    const head = headFor(source, answer, record, withoutRate);
    turns.spend(PART_POINTS * (1 + fragments.length));
    if (written > 0 && between) yield between;
    yield written > 0 && !between ? head.text : head.bare;
    const first = needed.length - page.length;
    for (const [index, { from, to }] of page.entries()) {
      const slice = (fragments[first + index] as Fragment).slice(from, to);
      // The first point has no comma before it.
      yield index > 0 ? slice : slice.subarray(1);
    }
    written += 1;
  }
  yield written > 0 ? end : emptyEnd;
}

/** Encodes an answer of CSV part by part. It has neither conversion nor summary. */
function* walkRows(source: BookSource, answer: Answer): Generator<Buffer> {
  const { budget, turns } = source;
  const { context } = answer;
  yield csvHeader(context.plan);
  for (const { planned, bookPrice, ranges, skipped, form } of recordsOf(source, answer)) {
    const cells = cellsOf({ ...bookPrice, context, planned }, budget, turns);
    const rows: NumberForm = { ...form, key: 'csv', cells };
    const page = withoutFirst(ranges, skipped);
    turns.spend(PART_POINTS * (1 + page.length));
    if (page.length === 0) yield cells.withoutPoints;
    for (const { block, from, to } of page) {
      yield fragmentOf(block, rows, budget, turns).slice(from, to);
    }
  }
}

/** Most bytes of an answer that is encoded before it is sent. */
const HELD_BYTES = 16_777_216;

/** Slices below this size are joined: writing one costs about as much as copying these bytes. */
const SMALL_BYTES = 8_192;

/** Size of joined slices. */
const JOINED_BYTES = 65_536;

/** Copies small slices together. Large slices stay as they are. */
function joinedSlices(slices: readonly Buffer[]): readonly Buffer[] {
  const joined: Buffer[] = [];
  let small: Buffer[] = [];
  let bytes = 0;
  const flush = (): void => {
    if (small.length > 0) joined.push(Buffer.concat(small));
    small = [];
    bytes = 0;
  };
  for (const slice of slices) {
    const isSmall = slice.length < SMALL_BYTES;
    if (!isSmall || bytes >= JOINED_BYTES) flush();
    if (isSmall) {
      small.push(slice);
      bytes += slice.length;
    } else joined.push(slice);
  }
  flush();
  return joined;
}

/** Bytes of a batch: the fixed cost of a write is small beside them. */
const BATCH_BYTES = 1_048_576;

/** The slices that were encoded already, then the rest. */
function* continued(encoded: readonly Buffer[], rest: Generator<Buffer>) {
  yield* encoded;
  yield* rest;
}

/** Collects slices into batches. Yields to the event loop when a turn is due. */
async function* batchesOf(slices: Iterable<Buffer>, { turns }: BookSource) {
  let batch: Buffer[] = [];
  let bytes = 0;
  for (const slice of slices) {
    batch.push(slice);
    bytes += slice.length;
    if (turns.isLong) await turns.pass();
    if (bytes < BATCH_BYTES) continue;
    yield batch;
    batch = [];
    bytes = 0;
    // A fast client would otherwise hold the event loop until the answer ends.
    await turns.pass();
  }
  if (batch.length > 0) yield batch;
}

/**
 * The bytes of an answer, assembled from cached fragments and heads. If encoding
 * takes more than one turn of the event loop, the body starts at once and its length is null.
 */
export function bookBody(source: BookSource, answer: Answer, format: BookFormat): Body {
  const { turns } = source;
  const encode = () => (format === 'csv' ? walkRows(source, answer) : walk(source, answer, format));
  // A slow reader retains these bytes even if the book evicts the entries that they belong to.
  const mayHold = (held: number): boolean =>
    held <= UNHELD_BYTES || (held <= HELD_BYTES && answer.context.work.hold(held));
  const slices = encode();
  const encoded: Buffer[] = [];
  let bytes = 0;
  for (;;) {
    const { value, done } = slices.next();
    if (done) break;
    bytes += value.length;
    encoded.push(value);
    if (!turns.isDue) continue;
    const rest = mayHold(bytes) ? continued(encoded, slices) : encode();
    return { batches: batchesOf(rest, source), bytes: null };
  }
  if (mayHold(bytes)) return { batches: [joinedSlices(encoded)], bytes };
  // The same edition encodes the same bytes again.
  return { batches: batchesOf(encode(), source), bytes };
}
