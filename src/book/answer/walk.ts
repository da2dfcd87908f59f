import type { Format } from '../../contract/schemas/formats.ts';
import { dayOf } from '../../conversion/calendar.ts';
import type { Columns } from '../../conversion/columns.ts';
import type { Conversion } from '../../conversion/observations.ts';
import type { RateSource } from '../../conversion/rates.ts';
import type { PlannedPrice } from '../../prices/conversion/outcomes.ts';
import type { Plan } from '../../prices/plan/plan.ts';
import type { Answer } from '../../prices/write/contents.ts';
import { descriptionOf, roundingOf, summaryIn } from '../../prices/write/contents.ts';
import { documentHead, recordHead } from '../../prices/write/json.ts';
import type { Block } from '../store/block.ts';
import type { Budget } from '../store/budget.ts';
import type { BookPrice, Edition } from '../store/edition.ts';
import { columnsOfStretches, type Days, type Stretch, stretchesOf } from '../store/series.ts';
import type { Turns } from '../store/turns.ts';
import type { SeriesTerms } from './fragment.ts';
import { BETWEEN, headOf, RecordHead } from './heads.ts';

/** What the bytes of an answer are taken from and made with. */
export interface Source {
  readonly edition: Edition;
  readonly budget: Budget;
  readonly turns: Turns;
  /** Where exchange rates come from; null where none are used. */
  readonly rates: RateSource | null;
}

/** The days of a plan's range. */
export const daysOf = ({ range }: Pick<Plan, 'range'>): Days => ({
  first: range.from === null ? -Infinity : dayOf(range.from),
  last: range.to === null ? Infinity : dayOf(range.to),
});

/** The series of a price up to the end of some days, for its summary. */
const columnsUpTo = ({ blocks }: BookPrice, { last }: Days): Columns =>
  columnsOfStretches(stretchesOf(blocks, { first: -Infinity, last }));

/** Tells a conversion from all others, at any revision of the rates and of the units. */
function keyOf(
  { unit, pair }: Conversion,
  decimals: number | null,
  rates: RateSource | null,
): string {
  const legs = pair && `${pair.from?.iso ?? ''}>${pair.to?.iso ?? ''}/${pair.base}`;
  const source = pair && `${rates?.slug}.${rates?.revision}`;
  return `${unit.multiply}/${unit.divide} ${legs} ${source} ${decimals}`;
}

const NO_STRETCHES: readonly Stretch[] = [];

const pointsIn = (stretches: readonly Stretch[]): number =>
  stretches.reduce((sum, { from, to }) => sum + to - from, 0);

/** Stretches without their first points. */
function withoutFirst(stretches: readonly Stretch[], count: number): readonly Stretch[] {
  let left = count;
  let start = 0;
  for (; left > 0 && start < stretches.length; start += 1) {
    const { block, from, to } = stretches[start] as Stretch;
    if (left < to - from) {
      return [{ block, from: from + left, to }, ...stretches.slice(start + 1)];
    }
    left -= to - from;
  }
  return stretches.slice(start);
}

/** One record of an answer in the book: where its bytes are. */
interface BookRecord {
  readonly planned: PlannedPrice;
  readonly bookPrice: BookPrice;
  readonly stretches: readonly Stretch[];
  /** Points at the beginning of the stretches that the answer does not show. */
  readonly skipped: number;
  readonly terms: SeriesTerms;
}

/** The records of an answer, in its order. */
function* recordsOf({ edition, rates }: Source, answer: Answer): Generator<BookRecord> {
  const { plan } = answer.context;
  const days = daysOf(plan);
  for (const planned of answer.records) {
    const bookPrice = edition.prices.get(planned.price.id);
    if (!bookPrice) throw new Error(`the edition has no price ${planned.price.code}`);
    const conversion = planned.outcome?.conversion ?? null;
    const { includeSeries, decimals, lastObservations } = plan.options;
    const stretches = includeSeries ? stretchesOf(bookPrice.blocks, days) : NO_STRETCHES;
    const skipped = lastObservations === null ? 0 : pointsIn(stretches) - lastObservations;
    const terms: SeriesTerms = {
      key: conversion === null ? '' : keyOf(conversion, decimals, rates),
      conversion,
      rounding: roundingOf(plan, planned.price),
    };
    yield { planned, bookPrice, stretches, skipped, terms };
  }
}

/** What tells which points of a block have no rate. */
interface Rated {
  readonly withoutRate: readonly number[];
}

/** Points of a record that have no rate. */
function withoutRateIn({ stretches }: BookRecord, made: readonly Rated[]): number {
  let count = 0;
  for (const [index, { from, to }] of stretches.entries()) {
    for (const point of made[index]?.withoutRate ?? []) {
      if (point >= from && point < to) count += 1;
    }
  }
  return count;
}

/** What a summary and its head cost beside the points, in points that are encoded. */
const SUMMARY_POINTS = 100;

/** The head of a record: the one that is cached, or with a summary, which is computed each time. */
function headFor(
  { budget, turns }: Source,
  { context: terms }: Answer,
  { planned, bookPrice }: BookRecord,
  withoutRate: number,
): RecordHead {
  if (!terms.plan.options.includeSummary) {
    return headOf({ of: bookPrice, terms, planned, withoutRate }, budget, turns);
  }
  const columns = columnsUpTo(bookPrice, daysOf(terms.plan));
  turns.spend(columns.length + SUMMARY_POINTS);
  const summary = summaryIn(terms, planned, columns);
  return new RecordHead(recordHead(terms, descriptionOf(terms, planned, summary, withoutRate)));
}

/** The formats of a record in JSON. */
export type LineFormat = Extract<Format, 'json' | 'ndjson'>;

/** What stands around the records of a format. */
interface Frame {
  readonly head: (answer: Answer) => Iterable<Buffer>;
  /** Null where the head of a record has it, too: what stands between two records. */
  readonly between: Buffer | null;
  readonly end: Buffer;
  readonly endOfNothing: Buffer;
}

const LINE_END = Buffer.from(']}\n');

const FRAMES: Readonly<Record<LineFormat, Frame>> = {
  json: {
    head: ({ metadata }) => documentHead(metadata),
    between: null,
    end: Buffer.from(`${BETWEEN.slice(0, -1)}]}`),
    endOfNothing: Buffer.from(']}'),
  },
  ndjson: { head: () => [], between: LINE_END, end: LINE_END, endOfNothing: Buffer.alloc(0) },
};

/** What a walk makes of the parts of an answer. */
export interface Sink<Part, Made extends Rated> {
  /** Bytes around the records. */
  readonly text: (bytes: Buffer) => Part;
  /** A record up to its points, whole: with what ends the record before it. */
  readonly head: (head: RecordHead, isWhole: boolean) => Part;
  /** What is cached of a block in some terms. */
  readonly block: (block: Block, terms: SeriesTerms) => Made;
  /** Some points of a block, with or without the comma before the first. */
  readonly points: (made: Made, stretch: Stretch, terms: SeriesTerms, hasComma: boolean) => Part;
}

/** Cost of a part in the account of work: about as much as two points. */
const PART_POINTS = 2;

/** Bytes of other JSON that cost about as much as a point. */
const BYTES_PER_POINT = 128;

/** The parts of an answer, one after the other. */
export function* walk<Part, Made extends Rated>(
  source: Source,
  answer: Answer,
  format: LineFormat,
  sink: Sink<Part, Made>,
): Generator<Part> {
  const { turns } = source;
  const { head: headOfAll, between, end, endOfNothing } = FRAMES[format];
  for (const slice of headOfAll(answer)) {
    turns.spend(Math.ceil(slice.length / BYTES_PER_POINT));
    yield sink.text(slice);
  }
  let written = 0;
  for (const record of recordsOf(source, answer)) {
    const { stretches, skipped, terms } = record;
    const shown = withoutFirst(stretches, skipped);
    // The head of a converted record counts its points without a rate, those not shown included.
    const needed = terms.conversion ? stretches : shown;
    const made = needed.map(({ block }) => sink.block(block, terms));
    const withoutRate = terms.conversion ? withoutRateIn(record, made) : 0;
    const head = headFor(source, answer, record, withoutRate);
    turns.spend(PART_POINTS * (1 + made.length));
    if (written > 0 && between) yield sink.text(between);
    yield sink.head(head, written > 0 && !between);
    const first = needed.length - shown.length;
    for (const [index, stretch] of shown.entries()) {
      yield sink.points(made[first + index] as Made, stretch, terms, index > 0);
    }
    written += 1;
  }
  yield sink.text(written > 0 ? end : endOfNothing);
}
