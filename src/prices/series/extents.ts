import type { Reads } from '../../db/reads.ts';
import { commitIdOf, numberOf } from '../../db/revisions.ts';
import { dayText } from '../../std/days.ts';
import type { Extent, PriceStretch } from './ranges.ts';

/** A row of `extentsQuery`: the place of a stretch from 1 on, and its points. */
interface ExtentRow {
  readonly n: number;
  readonly first: number;
  readonly last: number;
  readonly points: number;
}

const ON_DAYS = 'price_id = w.id and date between w.first and w.last and revision <= $5::bigint';
const CURRENT = `series where ${ON_DAYS}`;
const REPLACED = `series_history where ${ON_DAYS} and revision_to > $5`;

/**
 * The query for the points within stretches of days at a revision. A counted stretch reads its
 * points once from each table. Any other reads indexes only: its ends are two look-ups in each.
 * "offset 0" prevents the planner from computing these twice.
 */
export const extentsQuery = (stretches: readonly PriceStretch[], revision: string) => ({
  name: 'extents',
  text: `select w.n::int as n, found.first - date '2000-01-01' as first,
      found.last - date '2000-01-01' as last, found.points::int as points
    from unnest($1::integer[], $2::date[], $3::date[], $4::boolean[])
        with ordinality as w (id, first, last, is_counted, n)
      cross join lateral (
        select min(date) as first, max(date) as last, count(*) as points
          from (select date from ${CURRENT} union all select date from ${REPLACED}) as each
          where w.is_counted
        union all select ${endOf('least', 'asc')}, ${endOf('greatest', 'desc')}, 0
          where not w.is_counted offset 0) as found
    where found.first is not null and require_commit($5, $6)`,
  values: [
    stretches.map(({ priceId }) => priceId),
    stretches.map(({ first }) => dateText(first)),
    stretches.map(({ last }) => dateText(last)),
    stretches.map(({ isCounted }) => isCounted),
    numberOf(revision),
    commitIdOf(revision),
  ],
});

/** Reads the points within stretches of days at a revision, by one statement; null for none. */
export async function sqlExtents(
  reads: Reads,
  stretches: readonly PriceStretch[],
  revision: string,
  signal: AbortSignal,
): Promise<readonly (Extent | null)[]> {
  const rows = await reads.query<ExtentRow & Record<string, unknown>>(
    extentsQuery(stretches, revision),
    signal,
  );
  const found = new Array<Extent | null>(stretches.length).fill(null);
  for (const { n, first, last, points } of rows) found[n - 1] = { first, last, points };
  return found;
}

/** A day as a PostgreSQL date. */
const dateText = (day: number): string =>
  Number.isFinite(day) ? dayText(day) : day < 0 ? '-infinity' : 'infinity';

/** The first or last day of a stretch with a point, by one look-up in each of two indexes. */
const endOf = (pick: 'least' | 'greatest', order: 'asc' | 'desc'): string =>
  `${pick}((select date from ${CURRENT} order by date ${order} limit 1),
          (select date from ${REPLACED} order by date ${order} limit 1))`;
