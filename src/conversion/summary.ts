import { SPANS, type Span } from '../catalog/analytics.ts';
import { dayText } from '../std/days.ts';
import { decimalText } from '../std/decimal.ts';
import { endOfYearBefore, monthsBefore } from './calendar.ts';
import type { LackingRate } from './columns.ts';
import { exactValue, firstLacking, lackingOf, type Observations } from './convert.ts';
import { minus, over, type Rational, times } from './rational.ts';
import { type Rounding, roundedText } from './rounding.ts';

/** One observation; `mid` is decimal text, null without a rate for its date. */
interface Observed {
  readonly date: string;
  readonly mid: string | null;
}

/** A change of the latest mid against an earlier one, numbers as decimal text. */
interface SummaryChange {
  readonly absolute: string;
  /** Null for payables, and if the earlier mid is not above 0. */
  readonly percent: string | null;
  readonly baseDate: string;
}

export interface Summary {
  readonly latest: Observed | null;
  readonly previous: Observed | null;
  readonly changes: Readonly<Record<Span, SummaryChange | null>>;
  /** The rate that needed observations lack, whose figures are null; null if none does. */
  readonly lacking: LackingRate | null;
}

/** The last day that may be the base of a span; the span `previous` counts observations. */
const BASE_DAYS: Readonly<Record<Exclude<Span, 'previous'>, (latest: number) => number>> = {
  week: (latest) => latest - 7,
  fortnight: (latest) => latest - 14,
  month: (latest) => monthsBefore(latest, 1),
  quarter: (latest) => monthsBefore(latest, 3),
  halfYear: (latest) => monthsBefore(latest, 6),
  year: (latest) => monthsBefore(latest, 12),
  yearToDate: endOfYearBefore,
};

/** The index of the last observation on or before a day; -1 if there is none. */
function lastOnOrBefore(days: Int32Array, length: number, day: number): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((days[middle] as number) <= day) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * The figures of a summary need the latest observation, and the last one on or before each of these
 * days.
 * @param latest the day of the latest observation
 */
export const summaryDays = (latest: number): readonly number[] => [
  ...new Set(SPANS.map((span) => (span === 'previous' ? latest - 1 : BASE_DAYS[span](latest)))),
];

const HUNDRED: Rational = { numerator: 100n, denominator: 1n };

export interface SummaryRules {
  readonly payable: boolean;
  readonly rounding: Rounding;
}

function changeOf(
  observations: Observations,
  latest: number,
  base: number,
  rules: SummaryRules,
): SummaryChange | null {
  if (base < 0) return null;
  const now = exactValue(observations, 'mid', latest);
  const then = exactValue(observations, 'mid', base);
  if (now === null || then === null) return null;
  const difference = minus(now, then);
  const comparable = !rules.payable && then.numerator > 0n;
  return {
    absolute: roundedText(difference, rules.rounding),
    percent: comparable
      ? roundedText(times(over(difference, then), HUNDRED), rules.rounding)
      : null,
    baseDate: dayText(observations.columns.day[base] as number),
  };
}

/** One observation with its mid: stored, or converted and rounded. */
function observed(observations: Observations, index: number, rounding: Rounding): Observed | null {
  if (index < 0) return null;
  const { columns, conversion } = observations;
  const date = dayText(columns.day[index] as number);
  if (conversion === null) {
    const digits = BigInt(columns.mid[index] as number);
    return { date, mid: decimalText({ digits, scale: columns.scale[index] as number }) };
  }
  const value = exactValue(observations, 'mid', index);
  return { date, mid: value && roundedText(value, rounding) };
}

/**
 * The latest and the previous observation, and the change of the latest against the last
 * observation on or before the base day of each span. Changes are computed from unrounded mids and
 * rounded once.
 * @param observations all up to the end of the range: its start does not bound a summary
 */
export function summaryOf(observations: Observations, rules: SummaryRules): Summary {
  const { length, day } = observations.columns;
  const latest = length - 1;
  const baseOf = (span: Span): number => {
    if (latest < 0) return -1;
    if (span === 'previous') return latest - 1;
    return lastOnOrBefore(day, length, BASE_DAYS[span](day[latest] as number));
  };
  const bases = SPANS.map(baseOf);
  const changes = SPANS.map((span, at) => {
    const base = bases[at] as number;
    return [span, changeOf(observations, latest, base, rules)] as const;
  });
  const used = new Set([latest, ...bases].filter((index) => index >= 0));
  const lacked = [...used].flatMap((index) => lackingOf(observations, index) ?? []);
  return {
    latest: observed(observations, latest, rules.rounding),
    previous: observed(observations, latest - 1, rules.rounding),
    changes: Object.fromEntries(changes) as Summary['changes'],
    lacking: lacked.reduce(firstLacking, null),
  };
}

/** A decimal as a JSON number, or as a JSON string with the same digits. */
const decimalJson = (decimal: string | null, isText: boolean): string =>
  decimal !== null && isText ? `"${decimal}"` : String(decimal);

const observedJson = (each: Observed | null, isText: boolean): string =>
  each ? `{"date":"${each.date}","mid":${decimalJson(each.mid, isText)}}` : 'null';

function changeJson(each: SummaryChange | null, isText: boolean): string {
  if (each === null) return 'null';
  const [absolute, percent] = [each.absolute, each.percent].map((one) => decimalJson(one, isText));
  return `{"absolute":${absolute},"percent":${percent},"baseDate":"${each.baseDate}"}`;
}

/**
 * A summary as JSON, its numbers plain decimals to the last digit.
 * @param isText writes each number as a JSON string
 */
export function summaryJson({ latest, previous, changes }: Summary, isText = false): string {
  const spans = SPANS.map((span) => `"${span}":${changeJson(changes[span], isText)}`).join(',');
  const [newest, before] = [latest, previous].map((each) => observedJson(each, isText));
  const ends = `"latest":${newest},"previous":${before}`;
  return `{${ends},"changes":{${spans}}}`;
}
