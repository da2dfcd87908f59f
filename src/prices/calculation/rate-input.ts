import { mean } from '../../calculation/fraction.ts';
import {
  countUpTo,
  daysOfPeriod,
  type SessionIndexes,
  sessionsOfPeriod,
} from '../../calculation/period.ts';
import type { UnitProduct } from '../../calculation/unit.ts';
import { type RatePair, rateDaysOf, rateScale, scaledRate } from '../../conversion/rate-table.ts';
import { over, type Rational, reduced } from '../../conversion/rational.ts';
import { type Days, dayText } from '../../std/days.ts';
import { decimalText, powerOf10 } from '../../std/decimal.ts';
import type { InputResult, Reason } from './input-result.ts';
import type { RateInput } from './plan.ts';

/** A rate input whose legs are known: `pair.from` is the base of the rate, `pair.to` the quote. */
interface PreparedRate {
  readonly input: RateInput;
  readonly unit: UnitProduct;
  readonly pair: RatePair;
}

const ANY_DAY = 0;

/** Some rate days, and the days of a period by the calendar; null for one of sessions. */
interface FoundDays extends SessionIndexes {
  readonly period: Days | null;
}

type Leg = RatePair['from'];

/** The days of an exchange rate, from which the values of its input are computed. */
export class RateDays {
  readonly prepared: PreparedRate;
  /** All days on which both legs were published, ascending. */
  readonly #days: Int32Array;

  constructor(prepared: PreparedRate) {
    this.prepared = prepared;
    this.#days = rateDaysOf(prepared.pair);
  }

  /** Number of rate days of an anchor. */
  countAt(anchor: number | null): number {
    const { from, to } = this.#find(anchor);
    return to - from;
  }

  /**
   * The value of the input for an anchor: the mean of its rate days.
   * @throws TooLongError if its exact value has too many digits
   */
  at(anchor: number | null): InputResult {
    const { input, unit, pair } = this.prepared;
    const found = this.#find(anchor);
    const days = this.#days.subarray(found.from, found.to);
    const values = Array.from(days, (day) =>
      reduced(over(legValue(pair.to, day), legValue(pair.from, day))),
    );
    return {
      name: input.name,
      value: values.length === 0 || found.before > 0 ? null : mean(values),
      unit,
      observations: days.length,
      reasons: this.#reasons(found, anchor),
      receipt: () => this.#receipt(found, days),
    };
  }

  #find(anchor: number | null): FoundDays {
    const { period } = this.prepared.input;
    const day = this.#days;
    if (period.kind === 'sessions') {
      const found = sessionsOfPeriod(period, anchor ?? ANY_DAY, day);
      return { ...found, period: null };
    }
    const days = daysOfPeriod(period, anchor ?? ANY_DAY);
    const [from, to] = [countUpTo(day, days.first - 1), countUpTo(day, days.last)];
    return { from, to, before: 0, after: 0, period: days };
  }

  /** A source publishes in the order of days: a rate of the last day or later ends a period. */
  #reasons({ from, to, before, after, period }: FoundDays, anchor: number | null): Reason[] {
    const { input } = this.prepared;
    const reasons: Reason[] = [];
    const add = (code: Reason['code'], detail: string) =>
      reasons.push({ code, input: input.name, detail });
    const isUpTo = input.period.kind === 'sessions' && input.period.offset <= 0;
    const last = period?.last ?? (isUpTo ? anchor : null);
    const newest = this.#days.at(-1);
    if (after > 0 || (last !== null && (newest === undefined || newest < last))) {
      const known = newest === undefined ? 'there is none' : `the newest is of ${dayText(newest)}`;
      add('rates_not_published', `${input.text} needs later rates of ${input.rate}; ${known}`);
    }
    if (before > 0) add('series_begins_later', `${before} days precede the first rate`);
    if (from === to) add('no_sessions', `There is no rate of ${input.rate} in ${input.text}`);
    return reasons;
  }

  #receipt({ period }: FoundDays, days: Int32Array) {
    const { input, pair } = this.prepared;
    const [first, last] = [period?.first ?? days.at(0), period?.last ?? days.at(-1)];
    return {
      rate: input.rate,
      period: input.text,
      from: first === undefined ? null : dayText(first),
      to: last === undefined ? null : dayText(last),
      statistic: 'average',
      source: pair.source,
      sessions: Array.from(days, (day) => ({
        date: dayText(day),
        published: null,
        fx: {
          date: dayText(day),
          base: pair.base,
          from: legText(pair.from, day),
          to: legText(pair.to, day),
        },
        vat: null,
        substituteFor: null,
      })),
      notUsed: [],
    };
  }
}

const legValue = (leg: Leg, day: number): Rational => ({
  numerator: BigInt(scaledRate(leg, day)),
  denominator: powerOf10(rateScale(leg, day)),
});

const legText = (leg: Leg, day: number): string =>
  decimalText({ digits: BigInt(scaledRate(leg, day)), scale: rateScale(leg, day) });
