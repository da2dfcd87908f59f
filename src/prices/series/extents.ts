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
 * The query for the points within stretches of days at a revision. It reads indexes only;
 * series_at would read every point. "offset 0" prevents the planner from computing the ends twice.
 */
export const extentsQuery = (stretches: readonly PriceStretch[], revision: string) => ({
  name: 'extents',
  text: `select w.n::int as n, ends.first - date '2000-01-01' as first,
      ends.last - date '2000-01-01' as last,
      case when w.is_counted then (select count(*) from ${CURRENT})
        + (select count(*) from ${REPLACED}) else 0 end::int as points
    from unnest($1::integer[], $2::date[], $3::date[], $4::boolean[])
        with ordinality as w (id, first, last, is_counted, n)
      cross join lateral (select ${endOf('least', 'asc')} as first,
        ${endOf('greatest', 'desc')} as last offset 0) as ends
    where ends.first is not null and require_commit($5, $6)`,
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
