import { sql } from 'kysely';
import { matchKey } from '../../catalog/match-key.ts';
import { dayText } from '../../std/days.ts';
import { exactPower } from '../../std/decimal.ts';
import type { Descriptions } from '../descriptions/descriptions.ts';
import type { Trx } from '../descriptions/known-names.ts';
import type { ExactDecimal } from '../parsing/decimals.ts';
import { Refusal } from '../records/load-error.ts';
import { ownCopy } from '../records/texts.ts';
import type { ChangeTarget } from './change-set.ts';
import type { ParsedValue } from './copy-rows.ts';

/** Most different prices, or spellings of codes, that one file may name. */
const SERIES_MAX = 100_000;

/**
 * The series of a file: its prices or currencies, numbered in order of first mention, so that a
 * staged row holds a small number instead of a name.
 */
export class SeriesNames {
  /** The code as first written. */
  readonly names: string[] = [];
  /** Normalized, for comparison. */
  readonly keys: string[] = [];
  private readonly bySpelling = new Map<string, number>();
  private readonly byKey = new Map<string, number>();

  /**
   * The number of a series. Names are validated before: at most 64 characters, so that memory stays
   * small for any number of unknown names.
   * @throws Refusal for too many names
   */
  numberOf(name: string, line: number): number {
    const known = this.bySpelling.get(name);
    if (known !== undefined) return known;
    if (this.bySpelling.size >= SERIES_MAX) {
      const message = `The file names more than ${SERIES_MAX} different codes: load it in parts`;
      throw new Refusal('too_many_prices', message, { line });
    }
    const kept = ownCopy(name);
    const key = matchKey(kept);
    const number = this.byKey.get(key) ?? this.names.length;
    if (number === this.names.length) {
      this.names.push(kept);
      this.keys.push(key);
      this.byKey.set(key, number);
    }
    this.bySpelling.set(kept, number);
    return number;
  }
}

/** The nearest double; 0 for a value to withdraw. */
const doubleOf = (decimal: ExactDecimal | null): number =>
  decimal === null ? 0 : decimal.digits / exactPower(decimal.scale);

/** Far above the error of two roundings of doubles. */
const MARGIN = 1e-9;

/** The values of a series so far. Days count from 2000-01-01. */
interface SeriesRange {
  rows: number;
  first: number;
  last: number;
  /** Day, lowest and highest value of the last row. */
  day: number;
  lowest: number;
  highest: number;
  isAscending: boolean;
  isSmooth: boolean;
}

/**
 * Dates, order and smoothness of each series, collected while reading, so that the database
 * compares values only where a conflict is possible.
 */
export class SeriesRanges {
  private readonly ranges: SeriesRange[] = [];
  private readonly factor: number;
  private latest = -1;
  private grouped = true;

  /** @param jumpFactor decimal text, greater than 1; absent if no value is smooth */
  constructor(jumpFactor = '1') {
    this.factor = Number(jumpFactor) * (1 - MARGIN);
  }

  /** Adds the next value of a series. */
  note(number: number, { day, low, mid, high }: ParsedValue): void {
    const lowest = doubleOf(low ?? mid);
    const highest = doubleOf(high ?? mid);
    const range = this.ranges[number];
    if (number !== this.latest) {
      if (range) this.grouped = false;
      this.latest = number;
    }
    if (!range) {
      const only = { rows: 1, first: day, last: day, day, lowest, highest };
      this.ranges[number] = { ...only, isAscending: true, isSmooth: true };
      return;
    }
    range.rows += 1;
    if (day <= range.day) range.isAscending = false;
    if (day < range.first) range.first = day;
    if (day > range.last) range.last = day;
    const lowestOfBoth = Math.min(lowest, range.lowest);
    // This test is approximate. The database compares exactly every series that is not surely
    // smooth.
    if (!(lowestOfBoth > 0 && Math.max(highest, range.highest) <= lowestOfBoth * this.factor)) {
      range.isSmooth = false;
    }
    range.day = day;
    range.lowest = lowest;
    range.highest = highest;
  }

  /** True if the values are sorted by series and date. */
  get isInOrder(): boolean {
    return this.grouped && this.ranges.every((range) => range.isAscending);
  }

  /** The range of a series; undefined if it has no values. */
  of(number: number): Readonly<SeriesRange> | undefined {
    return this.ranges[number];
  }
}

/** The series of a file, with what it states of each. */
interface FileSeries {
  readonly series: SeriesNames;
  readonly ranges: SeriesRanges;
  readonly descriptions: Descriptions;
}

/** Fills `load_series` with the series of the file, and their ids if they exist. */
export async function resolveSeries(
  trx: Trx,
  { series, ranges, descriptions }: FileSeries,
  target: ChangeTarget,
): Promise<void> {
  const { names, keys } = series;
  const described = names.map((_, number) => descriptions.prices.has(number));
  const all = names.map((_, number) => ranges.of(number));
  const rows = all.map((range) => range?.rows ?? 0);
  const first = all.map((range) => (range ? dayText(range.first) : null));
  const last = all.map((range) => (range ? dayText(range.last) : null));
  const ascending = all.map((range) => range?.isAscending ?? true);
  const smooth = all.map((range) => range?.isSmooth ?? true);
  await sql`
    insert into pg_temp.load_series (series_no, name, key, described, id,
      rows, first_date, last_date, is_ascending, is_smooth)
    select f.place - 1, f.name, f.key, f.described, known.id,
      f.rows, f.first, f.last, f.ascending, f.smooth
    from unnest(${names}::text[], ${keys}::text[], ${described}::boolean[], ${rows}::bigint[],
        ${first}::date[], ${last}::date[], ${ascending}::boolean[], ${smooth}::boolean[])
      with ordinality as f (name, key, described, rows, first, last, ascending, smooth, place)
    left join (${target.ids}) as known on known.key = f.key`.execute(trx);
  // Temporary tables are not analysed automatically, and joins without statistics are planned
  // badly.
  await sql`analyze pg_temp.load_value (series_no, date), pg_temp.load_series`.execute(trx);
}

/** Sets the ids of series that were created meanwhile. */
export async function resolveCreated(trx: Trx, target: ChangeTarget): Promise<void> {
  await sql`
    update pg_temp.load_series u set id = known.id from (${target.ids}) as known
    where u.id is null and u.described and known.key = u.key`.execute(trx);
}

/** Marks series that the load itself adds: the currencies of rates. */
export async function markDescribed(trx: Trx, names: readonly string[]): Promise<void> {
  await sql`
    update pg_temp.load_series set described = true where name = any(${names})`.execute(trx);
}

/**
 * Marks prices whose descriptions were rejected.
 * @param lines the line of each description in the file; null for one of the mapping
 * @param staysDescribed true if the values of a new price still count as described, so that the
 *   problems of a refused file are not reported twice
 */
export async function markRefused(
  trx: Trx,
  numbers: readonly number[],
  lines: readonly (number | null)[],
  staysDescribed: boolean,
): Promise<void> {
  await sql`
    update pg_temp.load_series u set rejected_line = f.line, is_refused = u.id is null,
      described = u.described and ${staysDescribed}
    from unnest(${numbers}::integer[], ${lines}::bigint[]) as f (series_no, line)
    where f.series_no = u.series_no`.execute(trx);
}
