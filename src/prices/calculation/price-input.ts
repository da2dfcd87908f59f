import {
  extreme,
  mean,
  product,
  type RoundingMode,
  roundedFraction,
} from '../../calculation/fraction.ts';
import {
  countUpTo,
  daysOfPeriod,
  type SessionIndexes,
  sessionsOfPeriod,
} from '../../calculation/period.ts';
import type { UnitProduct } from '../../calculation/unit.ts';
import { NO_DAY } from '../../conversion/calendar.ts';
import type { Columns, DecimalColumn, ValueName } from '../../conversion/columns.ts';
import {
  type Conversion,
  exactValue,
  type Observations,
  observe,
} from '../../conversion/convert.ts';
import { type Rational, reduced } from '../../conversion/rational.ts';
import { type Days, dayText } from '../../std/days.ts';
import { decimalText } from '../../std/decimal.ts';
import type { SelectedPrice } from '../market/query.ts';
import type { SeriesRange } from '../series/ranges.ts';
import { type InputResult, listedDays, NumberText, type Reason } from './input-result.ts';
import type { PriceInput } from './plan.ts';

/** A price input whose price, unit and conversion are known. */
export interface PreparedPrice {
  readonly input: PriceInput;
  readonly price: SelectedPrice;
  readonly isPayable: boolean;
  readonly unit: UnitProduct;
  readonly conversion: Conversion | null;
  /** The source of the exchange rates of the conversion; null without one. */
  readonly source: string | null;
}

/** The day up to which a period without an anchor counts; an absolute period needs none. */
const ANY_DAY = 0;

/** The points that a price input needs for all anchors. */
export function priceRange(
  { period }: PriceInput,
  anchors: readonly (number | null)[],
): SeriesRange {
  const days = anchors.map((each) => each ?? ANY_DAY);
  if (period.kind !== 'sessions') {
    const all = days.map((anchor) => daysOfPeriod(period, anchor));
    const first = Math.min(...all.map((each) => each.first));
    return { days: { first, last: Math.max(...all.map((each) => each.last)) }, last: null };
  }
  const { count, offset } = period;
  const last = Math.max(...days);
  if (offset > 0) return { days: { first: Math.min(...days) + 1, last: Infinity }, last: null };
  // A reader may return more than the last points.
  const isOne = days.length === 1;
  return { days: { first: -Infinity, last }, last: isOne ? count - offset : null };
}

/** The sessions of a period, and the days that it spans. */
interface FoundSessions extends SessionIndexes {
  readonly days: Days | null;
}

const HUNDREDTH: Rational = { numerator: 1n, denominator: 100n };

/** The sessions of a price, from which the values of its input are computed. */
export class PriceSessions {
  readonly prepared: PreparedPrice;
  readonly #observations: Observations;
  /** The day of the newest commit: a later session may still come. */
  readonly #asOfDay: number;

  /** @param columns the points of `priceRange` */
  constructor(prepared: PreparedPrice, columns: Columns, asOfDay: number) {
    this.prepared = prepared;
    this.#observations = observe(columns, prepared.conversion);
    this.#asOfDay = asOfDay;
  }

  /** Number of sessions of an anchor. */
  countAt(anchor: number | null): number {
    const { from, to } = this.#find(anchor);
    return to - from;
  }

  /**
   * The value of the input for an anchor.
   * @throws TooLongError if its exact value has too many digits
   */
  at(anchor: number | null): InputResult {
    const { input, unit } = this.prepared;
    const found = this.#find(anchor);
    const reasons = this.#timeReasons(found, anchor);
    const broken = this.#brokenSessions(found);
    const value = broken.length > 0 || found.before > 0 ? null : this.#value(found);
    return {
      name: input.name,
      value,
      unit,
      observations: found.to - found.from,
      reasons: [...broken, ...reasons],
      receipt: () => this.#receipt(found),
    };
  }

  #find(anchor: number | null): FoundSessions {
    const { period } = this.prepared.input;
    const { day } = this.#observations.columns;
    if (period.kind === 'sessions') {
      const found = sessionsOfPeriod(period, anchor ?? ANY_DAY, day);
      const [first, last] = [day[found.from], day[found.to - 1]];
      const isAny = found.to > found.from && first !== undefined && last !== undefined;
      return { ...found, days: isAny ? { first, last } : null };
    }
    const days = daysOfPeriod(period, anchor ?? ANY_DAY);
    const [from, to] = [countUpTo(day, days.first - 1), countUpTo(day, days.last)];
    return { from, to, before: 0, after: 0, days };
  }

  #reason(code: Reason['code'], detail: string): Reason {
    return { code, input: this.prepared.input.name, detail };
  }

  /** The reasons why sessions may be missing. */
  #timeReasons({ from, to, before, after, days }: FoundSessions, anchor: number | null): Reason[] {
    const { text, period } = this.prepared.input;
    const reasons: Reason[] = [];
    const add = (code: Reason['code'], detail: string) => reasons.push(this.#reason(code, detail));
    const isCounted = period.kind === 'sessions';
    const last = isCounted ? (period.offset > 0 ? null : anchor) : (days?.last ?? null);
    if (last !== null && last >= this.#asOfDay) {
      add('period_not_over', `${text} ends on ${dayText(last)}, and the data on ${this.#end}`);
    }
    if (after > 0) {
      add('sessions_not_published', `${after} of the sessions of ${text} are not published yet`);
    }
    if (before > 0) add('series_begins_later', `${before} sessions of ${text} precede the series`);
    if (from === to) add('no_sessions', `There is no session in ${text}`);
    add('calendar_unknown', 'No calendar says on which days this price is due');
    return reasons;
  }

  get #end(): string {
    return dayText(this.#asOfDay);
  }

  /** The indexes of the sessions whose values are needed. */
  #used({ from, to }: FoundSessions): readonly number[] {
    const { statistic } = this.prepared.input;
    if (from === to) return [];
    if (statistic === 'first') return [from];
    if (statistic === 'last') return [to - 1];
    return Array.from({ length: to - from }, (_, index) => from + index);
  }

  #sides(): readonly ValueName[] {
    const { method, side } = this.prepared.input;
    return method === 'mid-of-rounded-averages' ? ['low', 'high'] : [side];
  }

  /** The reasons why a session cannot be used. */
  #brokenSessions(found: FoundSessions): Reason[] {
    const { columns, fx } = this.#observations;
    const used = this.#used(found);
    const dayAt = (index: number): string => dayText(columns.day[index] as number);
    const reasons: Reason[] = [];
    for (const side of this.#sides()) {
      const lacking = used.filter((index) => Number.isNaN(columns[side][index] as number));
      if (lacking.length === 0) continue;
      const days = listedDays(lacking.map(dayAt));
      reasons.push(this.#reason('side_missing', `There is no ${side} on ${days}`));
    }
    const unrated = used.filter((index) => fx?.day[index] === NO_DAY);
    if (unrated.length > 0) {
      const days = listedDays(unrated.map(dayAt));
      const detail = `There is no exchange rate on or within 7 days before ${days}`;
      reasons.push(this.#reason('rate_missing', detail));
    }
    return reasons;
  }

  #value(found: FoundSessions): Rational | null {
    const used = this.#used(found);
    if (used.length === 0) return null;
    const value = this.#rounded(used);
    // Roundings of a payable are in percent, as it is published.
    return this.prepared.isPayable ? product(value, HUNDREDTH) : value;
  }

  /** The statistic with the roundings of the input. */
  #rounded(used: readonly number[]): Rational {
    const { input } = this.prepared;
    const { average, mode } = input.rounding ?? { average: null, mode: 'half-even' };
    if (input.method === 'mean-of-mids') {
      return roundedIf(this.#statistic(used, input.side), average, mode);
    }
    const [low, high] = this.#sides().map((side) =>
      roundedIf(this.#statistic(used, side), average, mode),
    );
    return mean([low, high].filter((each) => each !== undefined));
  }

  /** The statistic of the values of one side, each rounded if the input says so. */
  #statistic(used: readonly number[], side: ValueName): Rational {
    const { input } = this.prepared;
    const { session, mode } = input.rounding ?? { session: null, mode: 'half-even' };
    const values = used.map((index) => {
      const value = exactValue(this.#observations, side, index);
      if (value === null) throw new Error('a session without a value was used');
      return session === null ? value : roundedFraction(value, { decimals: session, mode });
    });
    const { statistic } = input;
    if (statistic !== 'min' && statistic !== 'max') return mean(values);
    return reduced(extreme(values, statistic === 'min' ? 1 : -1));
  }

  #receipt(found: FoundSessions): Readonly<Record<string, unknown>> {
    const { input, price, conversion, source } = this.prepared;
    const { text, side, statistic, method, rounding } = input;
    const { days, from, to } = found;
    const unit = conversion?.unit;
    const isWide = method === 'mid-of-rounded-averages';
    return {
      code: price.code,
      name: price.name,
      side,
      period: text,
      from: days && dayText(days.first),
      to: days && dayText(days.last),
      statistic,
      method: side === 'mid' && statistic === 'average' ? method : null,
      rounding,
      unitFactor: unit ? { multiply: unit.multiply, divide: unit.divide } : null,
      source,
      sessions: Array.from({ length: to - from }, (_, index) =>
        this.#session(from + index, isWide),
      ),
      notUsed: [],
    };
  }

  #session(index: number, isWide: boolean) {
    const { columns, fx } = this.#observations;
    const { side } = this.prepared.input;
    const published = (name: ValueName) => numberAt(columns, name, index);
    return {
      date: dayText(columns.day[index] as number),
      published: published(side),
      ...(isWide ? { low: published('low'), high: published('high') } : {}),
      fx:
        fx === null || fx.day[index] === NO_DAY
          ? null
          : {
              date: dayText(fx.day[index] as number),
              base: fx.pair.base,
              from: rateText(fx.from, index),
              to: rateText(fx.to, index),
            },
      // No VAT rate is known to the service, and no calendar asks for a substitute.
      vat: null,
      substituteFor: null,
    };
  }
}

const roundedIf = (value: Rational, decimals: number | null, mode: RoundingMode): Rational =>
  decimals === null ? value : roundedFraction(value, { decimals, mode });

/** The published number of a point; null if it lacks the side. */
function numberAt(columns: Columns, name: ValueName, index: number): NumberText | null {
  const scaled = columns[name][index] as number;
  if (Number.isNaN(scaled)) return null;
  const decimal = { digits: BigInt(scaled), scale: columns.scale[index] as number };
  return new NumberText(decimalText(decimal));
}

const rateText = ({ scaled, scale }: DecimalColumn, index: number): string =>
  decimalText({ digits: BigInt(scaled[index] as number), scale: scale[index] as number });
