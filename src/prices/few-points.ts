import { commitIdOf, numberOf } from '../db/revisions.ts';
import { ColumnsBuilder, type SeriesColumns } from './columns.ts';
import type { PriceDays } from './series-sql.ts';

/** A point as `fewPoints` reads it; numbers are decimal text, the time microseconds since 2000. */
export interface FewPointsRow {
  readonly priceId: number;
  readonly day: number;
  readonly low: string | null;
  readonly mid: string;
  readonly high: string | null;
  readonly micros: string;
  readonly corrections: number;
}

/**
 * Reads some points of each of some prices at a revision, as `daysStatement` does. It can be
 * prepared, so it is the quicker one for few points, where planning takes longer than reading.
 */
export const fewPoints = (wanted: readonly PriceDays[], revision: string) => ({
  name: 'few_points',
  text: `select s.price_id as "priceId", s.date - date '2000-01-01' as day,
      s.low::text, s.mid::text, s.high::text, s.corrections,
      (extract(epoch from s.published_at - timestamptz '2000-01-01T00:00Z') * 1000000)::bigint::text
        as micros
    from unnest($1::integer[], $2::date[], $3::date[]) as w (id, first, last)
      cross join lateral (select * from series_at($4::bigint)
        where price_id = w.id and date between w.first and w.last offset 0) as s
    where require_commit($4, $5)
    order by s.price_id, s.date`,
  values: [
    wanted.map(({ priceId }) => priceId),
    wanted.map(({ first }) => first),
    wanted.map(({ last }) => last),
    numberOf(revision),
    commitIdOf(revision),
  ],
});

/** Decimal text as an integer and the decimals that it has. */
function scaled(text: string): { readonly value: number; readonly scale: number } {
  const point = text.indexOf('.');
  const scale = point < 0 ? 0 : text.length - point - 1;
  const value = Number(text.replace('.', ''));
  if (!Number.isSafeInteger(value)) throw new Error('a stored value is not as the schema admits');
  return { value, scale };
}

const MISSING = { value: Number.NaN, scale: 0 };

/** The series of such rows, prices together and in date order. */
export function columnsOfRows(rows: readonly FewPointsRow[]): Map<number, SeriesColumns> {
  const series = new Map<number, SeriesColumns>();
  const builder = new ColumnsBuilder();
  for (const [index, { priceId, day, micros, corrections, ...row }] of rows.entries()) {
    const [low, mid, high] = [row.low, row.mid, row.high].map((each) =>
      each === null ? MISSING : scaled(each),
    ) as [typeof MISSING, typeof MISSING, typeof MISSING];
    const scale = Math.max(low.scale, mid.scale, high.scale);
    const shown = (each: typeof MISSING): number => each.value * 10 ** (scale - each.scale);
    builder.add(day, shown(low), shown(mid), shown(high), scale, Number(micros), corrections);
    if (rows[index + 1]?.priceId !== priceId) series.set(priceId, builder.finish());
  }
  return series;
}
