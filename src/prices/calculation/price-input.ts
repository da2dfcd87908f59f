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
import type { Calendar } from '../../calendar/calendar.ts';
import { NO_DAY } from '../../conversion/calendar.ts';
import type { Columns, DecimalColumn, ValueName } from '../../conversion/columns.ts';
import {
  type Conversion,
  exactValue,
  type Observations,
  observe,
} from '../../conversion/convert.ts';
import { type Rational, reduced } from '../../conversion/rational.ts';
import { StacklessError } from '../../std/base-errors.ts';
import { type Days, dayOf, dayText } from '../../std/days.ts';
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
  /** Null if the price follows none. */
  readonly calendar: Calendar | null;
  /** The source of the exchange rates of the conversion; null without one. */
  readonly source: string | null;
}

/** The day up to which a period without an anchor counts; an absolute period needs none. */
const ANY_DAY = 0;

/** The points that a price input needs for all anchors. */
export function priceRange(
  { period, missing, maxDays }: PriceInput,
  anchors: readonly (number | null)[],
): SeriesRange {
  const days = anchors.map((each) => each ?? ANY_DAY);
  if (period.kind !== 'sessions') {
    const all = days.map((anchor) => daysOfPeriod(period, anchor));
    const first = Math.min(...all.map((each) => each.first));
    const last = Math.max(...all.map((each) => each.last));
    // Substitutes may lie outside the period.
    const more = missing === 'previous' || missing === 'next' ? maxDays : 0;
    return { days: { first: first - more, last: last + more }, last: null };
  }
  const { count, offset } = period;
  const last = Math.max(...days);
  if (offset > 0) return { days: { first: Math.min(...days) + 1, last: Infinity }, last: null };
  // A reader may return more than the last points.
  const isOne = days.length === 1;
  return { days: { first: -Infinity, last }, last: isOne ? count - offset : null };
}

/** The indexes of the sessions published in a period. */
function sessionsIn(
  period: PriceInput['period'],
  anchor: number | null,
  days: ArrayLike<number>,
): SessionIndexes {
  if (period.kind === 'sessions') return sessionsOfPeriod(period, anchor ?? ANY_DAY, days);
  const { first, last } = daysOfPeriod(period, anchor ?? ANY_DAY);
  return { from: countUpTo(days, first - 1), to: countUpTo(days, last), before: 0, after: 0 };
}

/** A session that is used; `substituteFor` is the due day without one that it stands for. */
interface UsedSession {
  readonly index: number;
  readonly substituteFor: number | null;
}

/** The due days of a period, as day numbers. */
interface DueDays {
  /** False without a calendar, and if it does not know all days of the period. */
  readonly isKnown: boolean;
  readonly closed: readonly { readonly day: number; readonly name: string | null }[];
  /** Without a session, while a later session is there. */
  readonly missing: readonly number[];
  /** Without a session, and no later session is there. */
  readonly pending: readonly number[];
}

const UNKNOWN: DueDays = { isKnown: false, closed: [], missing: [], pending: [] };

/** The sessions of a period, and the days that it spans. */
interface FoundSessions extends SessionIndexes {
  /** Null for a period of sessions without any. */
  readonly days: Days | null;
  readonly due: DueDays;
  /** In the order of the days that they stand for. */
  readonly used: readonly UsedSession[];
}

/** Due sessions that are missing, which the request does not allow. */
export class SessionsMissingError extends StacklessError {
  override readonly name = 'SessionsMissingError';
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
    const { from, to } = this.#span(anchor);
    return to - from;
  }

  /**
   * The value of the input for an anchor.
   * @throws TooLongError if its exact value has too many digits; SessionsMissingError
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
      observations: found.used.length,
      reasons: [...broken, ...reasons],
      receipt: () => this.#receipt(found),
    };
  }

  /**
   * The first and the last day of the sessions that an anchor uses, with substitutes; null without
   * any.
   * @throws SessionsMissingError
   */
  usedDays(anchor: number | null): Days | null {
    const days = this.#find(anchor).used.map(({ index }) => this.#dayAt(index));
    return days.length === 0 ? null : { first: Math.min(...days), last: Math.max(...days) };
  }

  #find(anchor: number | null): FoundSessions {
    const span = this.#span(anchor);
    const { from, to } = span;
    const due = this.#dueIn(this.#dueSpan(span, anchor), from, to);
    const own = Array.from({ length: to - from }, (_, at): UsedSession => {
      return { index: from + at, substituteFor: null };
    });
    const used = [...own, ...this.#substitutes(due.missing)];
    if (used.length > own.length) used.sort((a, b) => this.#standsFor(a) - this.#standsFor(b));
    return { ...span, due, used };
  }

  #standsFor({ index, substituteFor }: UsedSession): number {
    return substituteFor ?? this.#dayAt(index);
  }

  #dayAt(index: number): number {
    return this.#observations.columns.day[index] as number;
  }

  /** The sessions published in the period. */
  #span(anchor: number | null): SessionIndexes & { readonly days: Days | null } {
    const { period } = this.prepared.input;
    const { day } = this.#observations.columns;
    const indexes = sessionsIn(period, anchor, day);
    if (period.kind !== 'sessions') {
      return { ...indexes, days: daysOfPeriod(period, anchor ?? ANY_DAY) };
    }
    const [first, last] = [day[indexes.from], day[indexes.to - 1]];
    const isEmpty = indexes.to <= indexes.from || first === undefined || last === undefined;
    return { ...indexes, days: isEmpty ? null : { first, last } };
  }

  /** The days on which sessions of the period may be due. */
  #dueSpan({ days }: { readonly days: Days | null }, anchor: number | null): Days | null {
    const { period } = this.prepared.input;
    if (period.kind !== 'sessions') return days;
    const at = anchor ?? ANY_DAY;
    if (period.offset > 0) return { first: at + 1, last: Math.max(at + 1, days?.last ?? at) };
    return days && { first: days.first, last: period.offset === 0 ? at : days.last };
  }

  /** The due days of a span, compared with the sessions from an index up to another. */
  #dueIn(span: Days | null, from: number, to: number): DueDays {
    const { calendar, price } = this.prepared;
    if (calendar === null || span === null) return UNKNOWN;
    if (span.first < calendar.from || span.last > calendar.until) return UNKNOWN;
    const published = new Set(this.#observations.columns.day.subarray(from, to));
    const launched = price.assessment_launched_at;
    const first = launched === null ? -Infinity : dayOf(launched);
    const newest = price.last_date === null ? -Infinity : dayOf(price.last_date);
    const closed: { day: number; name: string | null }[] = [];
    const [missing, pending]: [number[], number[]] = [[], []];
    for (const { named, due, closed: name } of calendar.dueDays(span.first, span.last)) {
      if (published.has(due ?? named) || (due ?? named) < first) continue;
      if (due === null) closed.push({ day: named, name });
      else if (due >= span.first && due <= span.last) (due < newest ? missing : pending).push(due);
    }
    return { isKnown: true, closed, missing, pending };
  }

  /** The sessions that stand for missing ones. @throws SessionsMissingError */
  #substitutes(missing: readonly number[]): UsedSession[] {
    const { input } = this.prepared;
    if (input.missing === 'skip' || missing.length === 0) return [];
    const { day } = this.#observations.columns;
    const found = missing.map((due): UsedSession => {
      const before = countUpTo(day, due) - 1;
      const index = input.missing === 'previous' ? before : before + 1;
      const distance = Math.abs((day[index] ?? Infinity) - due);
      const isNear = input.missing !== 'refuse' && distance <= input.maxDays;
      return { index: isNear ? index : -1, substituteFor: due };
    });
    const lacking = found.filter(({ index }) => index < 0).map((each) => this.#standsFor(each));
    if (lacking.length === 0) return found;
    const within = input.missing === 'refuse' ? '' : ` within ${input.maxDays} days`;
    throw new SessionsMissingError(
      `No session${within} on ${listedDays(lacking.map(dayText))}, on which the price was due; ` +
        'set missing to skip, previous or next',
    );
  }

  #reason(code: Reason['code'], detail: string): Reason {
    return { code, input: this.prepared.input.name, detail };
  }

  /** The reasons why sessions may be missing. */
  #timeReasons(found: FoundSessions, anchor: number | null): Reason[] {
    const { before, after, days, due, used } = found;
    const { text, period } = this.prepared.input;
    const reasons: Reason[] = [];
    const add = (code: Reason['code'], detail: string) => reasons.push(this.#reason(code, detail));
    const isCounted = period.kind === 'sessions';
    const last = isCounted ? (period.offset > 0 ? null : anchor) : (days?.last ?? null);
    if (!due.isKnown && last !== null && last >= this.#asOfDay) {
      add('period_not_over', `${text} ends on ${dayText(last)}, and the data on ${this.#end}`);
    }
    if (due.pending.length > 0) {
      const pending = listedDays(due.pending.map(dayText));
      add('sessions_not_published', `Sessions of ${pending} are due, and not published yet`);
    }
    if (after > 0) {
      add('sessions_not_published', `${after} of the sessions of ${text} are not published yet`);
    }
    if (before > 0) add('series_begins_later', `${before} sessions of ${text} precede the series`);
    if (used.length === 0) add('no_sessions', `There is no session in ${text}`);
    if (!due.isKnown) add('calendar_unknown', 'No calendar says which sessions were due');
    return reasons;
  }

  get #end(): string {
    return dayText(this.#asOfDay);
  }

  /** The indexes of the sessions whose values are needed. */
  #used({ used }: FoundSessions): readonly number[] {
    const { statistic } = this.prepared.input;
    const indexes = used.map(({ index }) => index);
    if (statistic === 'first') return indexes.slice(0, 1);
    return statistic === 'last' ? indexes.slice(-1) : indexes;
  }

  #sides(): readonly ValueName[] {
    const { method, side } = this.prepared.input;
    return method === 'mid-of-rounded-averages' ? ['low', 'high'] : [side];
  }

  /** The reasons why a session cannot be used. */
  #brokenSessions(found: FoundSessions): Reason[] {
    const { columns, fx, vat } = this.#observations;
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
    const untaxed = used.filter((index) => vat !== null && Number.isNaN(vat.scaled[index]));
    if (untaxed.length > 0) {
      const detail = `There is no rate of VAT on ${listedDays(untaxed.map(dayAt))}`;
      reasons.push(this.#reason('rate_missing', detail));
    }
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
    const { days, due, used } = found;
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
      sessions: used.map((each) => this.#session(each, isWide)),
      notUsed: [
        ...due.closed.map(({ day, name }) => ({ date: dayText(day), why: 'closed', name })),
        ...(input.missing === 'skip' ? due.missing : []).map((day) => {
          return { date: dayText(day), why: 'missing', name: null };
        }),
      ],
    };
  }

  #session({ index, substituteFor }: UsedSession, isWide: boolean) {
    const { columns, fx, vat } = this.#observations;
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
      vat: vat === null || Number.isNaN(vat.scaled[index]) ? null : rateText(vat, index),
      substituteFor: substituteFor === null ? null : dayText(substituteFor),
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
