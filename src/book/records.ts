import { dayOf } from '../conversion/calendar.ts';
import type { Columns } from '../conversion/columns.ts';
import type { Conversion } from '../conversion/observations.ts';
import type { RateSource } from '../conversion/rates.ts';
import type { Answer } from '../prices/answer.ts';
import { descriptionOf, roundingOf, summaryIn } from '../prices/contents.ts';
import { recordHead } from '../prices/json.ts';
import type { PlannedPrice } from '../prices/outcomes.ts';
import type { Plan } from '../prices/plan.ts';
import type { Budget } from './budget.ts';
import type { BookPrice, Edition } from './edition.ts';
import type { SeriesTerms } from './fragment.ts';
import { BETWEEN } from './heads.ts';
import type { BookCounts } from './place.ts';
import { columnsOfStretches, type Days, type Stretch, stretchesOf } from './series.ts';
import type { Turns } from './turns.ts';

/** What the bytes of an answer are taken from and made with. */
export interface Source {
  readonly edition: Edition;
  readonly budget: Budget;
  readonly turns: Turns;
  readonly counts: Pick<BookCounts, 'repeats'>;
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

/** One record of an answer in the book: where its bytes are. */
export interface BookRecord {
  readonly planned: PlannedPrice;
  readonly bookPrice: BookPrice;
  readonly stretches: readonly Stretch[];
  readonly terms: SeriesTerms;
}

/** The records of an answer, in its order. */
export function* recordsOf({ edition, rates }: Source, answer: Answer): Generator<BookRecord> {
  const { plan } = answer.context;
  const days = daysOf(plan);
  for (const planned of answer.records) {
    const bookPrice = edition.prices.get(planned.price.id);
    if (!bookPrice) throw new Error(`the edition has no price ${planned.price.code}`);
    const conversion = planned.outcome?.conversion ?? null;
    const { includeSeries, decimals } = plan.options;
    const stretches = includeSeries ? stretchesOf(bookPrice.blocks, days) : NO_STRETCHES;
    const terms: SeriesTerms = {
      key: conversion === null ? '' : keyOf(conversion, decimals, rates),
      conversion,
      rounding: roundingOf(plan, planned.price),
    };
    yield { planned, bookPrice, stretches, terms };
  }
}

/** What tells which points of a block have no rate. */
interface Rated {
  readonly withoutRate: readonly number[];
}

/** Points of a record that have no rate. */
export function withoutRateIn({ stretches }: BookRecord, made: readonly Rated[]): number {
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

/** The head of a record with its summary, which is computed anew each time. */
export function headWithSummary(
  { turns }: Source,
  { context }: Answer,
  { planned, bookPrice }: BookRecord,
  withoutRate: number,
): Buffer {
  const columns = columnsUpTo(bookPrice, daysOf(context.plan));
  turns.spend(columns.length + SUMMARY_POINTS);
  const summary = summaryIn(context, planned, columns);
  const description = descriptionOf(context, planned, summary, withoutRate);
  return Buffer.from(`${BETWEEN}${recordHead(context, description)}`);
}
