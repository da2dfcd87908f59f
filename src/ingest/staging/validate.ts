import { DATE_MIN, inUtc, isDay, isInstant } from '../parsing/dates.ts';
import { atMost, notDecimal, plainDecimal, tooPrecise } from '../parsing/decimals.ts';
import type { Problems } from '../records/problems.ts';
import type { PointRecord, PriceRecord, RateRecord } from '../records/source-record.ts';
import { isCode } from '../records/source-record.ts';
import { ownCopy } from '../records/texts.ts';

/** The validated values of one row, as staged. */
export interface StagedValue {
  readonly date: string;
  readonly low: string | null;
  /** null for a day whose value is withdrawn. */
  readonly mid: string | null;
  readonly high: string | null;
  /** RFC 3339 in UTC. */
  readonly publishedAt: string | null;
}

/** Limits for dates and times. */
export interface Bounds {
  /** Tomorrow in UTC, YYYY-MM-DD: the last valid date of a value. */
  readonly dateMax: string;
  /** Start of the load, RFC 3339 in UTC: the last valid publication time. */
  readonly now: string;
}

interface DatedRow {
  readonly line: number;
  readonly date: string;
}

function dateProblem({ line, date }: DatedRow, { dateMax }: Bounds, problems: Problems): boolean {
  const place = { line, column: 'date', value: date };
  if (date === '')
    problems.reject('missing_value', 'The date is missing', { line, column: 'date' });
  else if (!isDay(date)) {
    problems.reject('invalid_date', 'The date is not a real day, written YYYY-MM-DD', place);
  } else if (date < DATE_MIN || date > dateMax) {
    const message = `The date lies outside ${DATE_MIN} to ${dateMax}, which is tomorrow`;
    problems.reject('out_of_range', message, place);
  } else return false;
  return true;
}

/** Parses a plain decimal; null after reporting a problem. */
function numberOf(text: string, line: number, column: string, problems: Problems): string | null {
  const decimal = plainDecimal(text);
  if (decimal !== null) return decimal;
  const message = `The value ${notDecimal(text)}`;
  problems.reject('invalid_number', message, { line, column, value: text });
  return null;
}

/** States why a publication time is invalid; null if it is valid. Compares instants, not texts. */
function timeProblem(text: string, { now }: Bounds): string | null {
  if (!isInstant(text)) return 'is not an RFC 3339 instant such as 2026-03-05T16:00:00Z';
  const time = Date.parse(text);
  if (time > Date.parse(now)) return `lies in the future; the load began at ${now}`;
  return time < Date.parse(DATE_MIN) ? `lies before ${DATE_MIN}T00:00:00Z` : null;
}

/** Size of a cache of valid texts: the working days of about 80 years. */
const CACHED_MAX = 20_000;

/** Cache of valid texts and their values. It is bounded: a file may hold any number of them. */
class ValidTexts extends Map<string, string> {
  add(text: string, value: string): void {
    if (this.size >= CACHED_MAX) this.clear();
    this.set(ownCopy(text), value);
  }
}

/** Validates one row at a time; caches valid dates and times, which rows share. */
export class Validator {
  private readonly bounds: Bounds;
  private readonly problems: Problems;
  private readonly values: 'all' | 'none';
  private readonly days = new ValidTexts();
  /** UTC times by the text of the file. */
  private readonly times = new ValidTexts();
  private lastCode: string | null = null;
  private lineWithoutCode = 0;

  /** @param values `none` for points to withdraw, which have only a code and a day */
  constructor(bounds: Bounds, problems: Problems, values: 'all' | 'none') {
    this.bounds = bounds;
    this.problems = problems;
    this.values = values;
  }

  private dateFails(row: DatedRow): boolean {
    if (this.days.has(row.date)) return false;
    if (dateProblem(row, this.bounds, this.problems)) return true;
    this.days.add(row.date, row.date);
    return false;
  }

  private timeFails(text: string | null, line: number): boolean {
    if (text === null || this.times.has(text)) return false;
    const problem = timeProblem(text, this.bounds);
    if (problem === null) {
      this.times.add(text, inUtc(text));
      return false;
    }
    const place = { line, column: 'publishedAt', value: text };
    this.problems.reject('invalid_time', `The publication time ${problem}`, place);
    return true;
  }

  /**
   * True if a record lacks a valid code. A CSV row may be two records: the problem is reported
   * once, and only the point counts as a rejected row.
   */
  codeFails({ kind, line, code }: PointRecord | PriceRecord): boolean {
    if (code === this.lastCode) return false;
    if (isCode(code)) {
      this.lastCode = code;
      return false;
    }
    const isReported = line === this.lineWithoutCode && line > 0;
    if (kind === 'point') this.problems.rejected += 1;
    if (isReported) return true;
    this.lineWithoutCode = line;
    const place = { line, column: 'code', value: code };
    if (code === '' && this.values === 'all')
      this.problems.add('missing_value', 'The code is missing', place);
    else {
      const message = 'A code has 1 to 64 visible ASCII characters, and no spaces';
      this.problems.add('invalid_code', message, place);
    }
    return true;
  }

  /** A day whose value is withdrawn; null if it is rejected. */
  private day({ line, date }: PointRecord): StagedValue | null {
    if (isDay(date)) return { date, low: null, mid: null, high: null, publishedAt: null };
    const place = { line, column: 'date', value: date };
    this.problems.reject('invalid_date', 'The date is not a real day, written YYYY-MM-DD', place);
    return null;
  }

  /** A valid point; null if it is rejected. Only the first problem is reported. */
  point(row: PointRecord): StagedValue | null {
    if (this.values === 'none') return this.day(row);
    const { line, publishedAt } = row;
    if (this.dateFails(row) || this.timeFails(publishedAt, line)) return null;
    if (row.mid === null) {
      const message = 'The middle value is missing; low and high do not replace it';
      this.problems.reject('missing_value', message, { line, column: 'mid' });
      return null;
    }
    const mid = numberOf(row.mid, line, 'mid', this.problems);
    if (mid === null) return null;
    const low = row.low === null ? null : numberOf(row.low, line, 'low', this.problems);
    if (row.low !== null && low === null) return null;
    const high = row.high === null ? null : numberOf(row.high, line, 'high', this.problems);
    if (row.high !== null && high === null) return null;
    if (this.pointFails(line, low, mid, high)) return null;
    const time = publishedAt === null ? null : (this.times.get(publishedAt) ?? null);
    return { date: row.date, low, mid, high, publishedAt: time };
  }

  private pointFails(line: number, low: string | null, mid: string, high: string | null): boolean {
    const precise = tooPrecise(low ?? '0', mid, high ?? '0');
    const isOrdered = (low === null || atMost(low, mid)) && (high === null || atMost(mid, high));
    if (precise === null && isOrdered) return false;
    const value = [low, mid, high].filter((each) => each !== null).join(' ');
    const place = { line, column: 'mid', value };
    if (precise !== null) this.problems.reject('too_precise', `The row ${precise}`, place);
    else this.problems.reject('low_mid_high', 'low, mid and high are not in this order', place);
    return true;
  }

  /** A valid rate; null if it is rejected. */
  rate(row: RateRecord): StagedValue | null {
    const { line, currency } = row;
    if (this.dateFails(row)) return null;
    if (!/^[A-Z]{3}$/.test(currency)) {
      const message = 'The currency is not a code of three capital letters';
      this.problems.reject('unknown_currency', message, { line, value: currency });
      return null;
    }
    const rate = numberOf(row.rate, line, currency, this.problems);
    if (rate === null) return null;
    const place = { line, column: currency, value: row.rate };
    if (!(Number(rate) > 0)) {
      this.problems.reject('out_of_range', 'A rate must be greater than 0', place);
      return null;
    }
    const precise = tooPrecise('0', rate, '0');
    if (precise !== null) {
      this.problems.reject('too_precise', `The rate ${precise}`, place);
      return null;
    }
    return { date: row.date, low: null, mid: rate, high: null, publishedAt: null };
  }
}
