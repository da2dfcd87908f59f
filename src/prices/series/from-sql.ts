import type pg from 'pg';
import type { Columns } from '../../conversion/columns.ts';
import type { Reads } from '../../db/reads.ts';
import { commitIdOf, numberOf } from '../../db/revisions.ts';
import { boundText, type Days, daysIn, dayText } from '../../std/days.ts';
import { SeriesCollector } from './collector.ts';
import { columnsOf } from './copy-binary.ts';
import type { PriceDays, SeriesRange } from './ranges.ts';

/*
 * Points as columns of numbers, never as objects: `collector.ts` has the interface of their
 * readers, this file reads them from the database by binary `COPY`, and `copy-binary.ts` decodes
 * it.
 */

const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** COPY takes no parameters: each literal in its text is checked here again. */
function literal(text: string, pattern: RegExp): string {
  if (!pattern.test(text)) throw new Error('not a literal of the expected form');
  return text;
}

/** The table of series at a revision, and the condition that the server has its commit. */
function seriesAt(revision: string) {
  const number = literal(numberOf(revision), /^\d+$/);
  const id = commitIdOf(revision);
  const commit = id === null ? 'null' : `'${literal(id, /^[0-9a-z]+$/)}'`;
  return { series: `series_at(${number})`, isThere: `require_commit(${number}, ${commit})` };
}

/**
 * The COPY statement that reads the series of prices at a revision, in any order: sorting would
 * take the server as long as reading.
 */
export function seriesStatement(priceIds: readonly number[], days: Days, revision: string): string {
  const ids = priceIds.map((id) => literal(String(id), /^\d+$/)).join(',');
  const [first, last] = [boundText(days.first), boundText(days.last)];
  const bounds = [
    first === null ? '' : ` and date >= '${literal(first, DAY)}'`,
    last === null ? '' : ` and date <= '${literal(last, DAY)}'`,
  ].join('');
  const { series, isThere } = seriesAt(revision);
  return `copy (select price_id, date, low, mid, high, published_at, corrections
    from ${series} where price_id = any('{${ids}}')${bounds} and ${isThere})
    to stdout (format binary)`;
}

/**
 * The COPY statement that reads the points of days at a revision. "offset 0" prevents the planner
 * from joining the days with the whole table: it looks up each price by the key.
 */
export function daysStatement(wanted: readonly PriceDays[], revision: string): string {
  const rows = wanted.map(({ priceId, first, last }) => {
    const [from, to] = [literal(dayText(first), DAY), literal(dayText(last), DAY)];
    return `(${literal(String(priceId), /^\d+$/)}, date '${from}', date '${to}')`;
  });
  const { series, isThere } = seriesAt(revision);
  return `copy (select s.price_id, s.date, s.low, s.mid, s.high, s.published_at, s.corrections
    from (values ${rows.join(', ')}) as w (id, first, last)
      cross join lateral (select * from ${series}
        where price_id = w.id and date between w.first and w.last offset 0) as s
    where ${isThere}) to stdout (format binary)`;
}

/** A row of `fewPoints`: numbers as decimal text, the time in microseconds since 2000. */
export interface FewPointsRow {
  readonly priceId: number;
  readonly day: number;
  readonly low: string | null;
  readonly mid: string;
  readonly high: string | null;
  readonly micros: string;
  readonly corrections: number;
}

const FEW_COLUMNS = `s.date - date '2000-01-01' as day,
      s.low::text, s.mid::text, s.high::text, s.corrections,
      (extract(epoch from s.published_at - timestamptz '2000-01-01T00:00Z') * 1000000)::bigint::text
        as micros`;

/**
 * The query for the points of days at a revision. Unlike `daysStatement` it can be prepared, so it
 * is faster for few points, where planning takes longer than reading.
 */
export const fewPoints = (wanted: readonly PriceDays[], revision: string) => ({
  name: 'few_points',
  text: `select s.price_id as "priceId", ${FEW_COLUMNS}
    from unnest($1::integer[], $2::date[], $3::date[]) as w (id, first, last)
      cross join lateral (select * from series_at($4::bigint)
        where price_id = w.id and date between w.first and w.last offset 0) as s
    where require_commit($4, $5)`,
  values: [
    wanted.map(({ priceId }) => priceId),
    wanted.map(({ first }) => dayText(first)),
    wanted.map(({ last }) => dayText(last)),
    numberOf(revision),
    commitIdOf(revision),
  ],
});

/**
 * The query for the last points of prices on some days at a revision. It reads the ends of two
 * indexes; series_at would read every point.
 */
export const lastPoints = (
  priceIds: readonly number[],
  { first, last }: Days,
  count: number,
  revision: string,
) => {
  const endOf = (table: string, more: string) => `(
        select date, low, mid, high, published_at, corrections from ${table}
        where price_id = w.id and revision <= $4::bigint${more}
          and date between coalesce($2::date, '-infinity') and coalesce($3::date, 'infinity')
        order by date desc limit $6)`;
  return {
    name: 'last_points',
    text: `select w.id as "priceId", ${FEW_COLUMNS}
    from unnest($1::integer[]) as w (id)
      cross join lateral (${endOf('series', '')}
        union all ${endOf('series_history', ' and revision_to > $4')}
        order by date desc limit $6) as s
    where require_commit($4, $5)`,
    values: [
      [...priceIds],
      boundText(first),
      boundText(last),
      numberOf(revision),
      commitIdOf(revision),
      count,
    ],
  };
};

/** Decimal text as an integer and its number of decimals. */
function scaled(text: string): { readonly value: number; readonly scale: number } {
  const point = text.indexOf('.');
  const scale = point < 0 ? 0 : text.length - point - 1;
  const value = Number(text.replace('.', ''));
  if (!Number.isSafeInteger(value))
    throw new Error('a stored value has more digits than the schema admits');
  return { value, scale };
}

const MISSING = { value: Number.NaN, scale: 0 };

const numberIn = (text: string | null) => (text === null ? MISSING : scaled(text));

/** The series of rows in any order. */
export function columnsOfRows(rows: readonly FewPointsRow[]): Map<number, Columns> {
  const series = new SeriesCollector();
  for (const { priceId, day, micros, corrections, ...row } of rows) {
    const [low, mid, high] = [numberIn(row.low), numberIn(row.mid), numberIn(row.high)];
    const scale = Math.max(low.scale, mid.scale, high.scale);
    const rescaled = (each: typeof MISSING): number => each.value * 10 ** (scale - each.scale);
    series
      .of(priceId)
      .add(day, rescaled(low), rescaled(mid), rescaled(high), scale, Number(micros), corrections);
  }
  return new Map(series.series());
}

/**
 * Days of all prices up to which series are read as rows: a prepared query is faster than COPY,
 * which the server parses and plans each time.
 */
const ROW_DAYS_MAX = 256;

/** Most last points of all prices that are read as rows, instead of all points by COPY. */
const LAST_ROWS_MAX = 2_000;

/** Reads the series of prices at a revision, by price id, with one short statement. */
export const sqlSeries =
  (reads: Reads) =>
  async (
    priceIds: readonly number[],
    { days, last }: SeriesRange,
    revision: string,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, Columns>> => {
    const rows = async (query: pg.QueryConfig) =>
      columnsOfRows(await reads.query<FewPointsRow>(query, signal, true));
    if (last !== null && priceIds.length * last <= LAST_ROWS_MAX) {
      return rows(lastPoints(priceIds, days, last, revision));
    }
    if (priceIds.length * daysIn(days) > ROW_DAYS_MAX) {
      return reads.copy(seriesStatement(priceIds, days, revision), columnsOf, signal);
    }
    return rows(
      fewPoints(
        priceIds.map((priceId) => ({ priceId, ...days })),
        revision,
      ),
    );
  };
