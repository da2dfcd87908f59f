import { type Kysely, type RawBuilder, sql } from 'kysely';
import { dayText } from '../../conversion/calendar.ts';
import { numberIn, requireCommit } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import type { Plan } from '../plan/plan.ts';
import type { Missing, MissingReader, Suspects } from './missing-rates.ts';

type Range = Pick<Plan, 'range'>;

/** A day as PostgreSQL takes it. */
const dateText = (day: number): string =>
  Number.isFinite(day) ? dayText(day) : day < 0 ? '-infinity' : 'infinity';

/**
 * The first or last day of the points of a price within two days. Two short looks at the ends of
 * two indexes; a look through series_at would read every point.
 */
function endOf(
  which: 'first' | 'last',
  from: RawBuilder<unknown>,
  to: RawBuilder<unknown>,
  revision: string,
): RawBuilder<string | null> {
  const order = sql.raw(which === 'first' ? 'asc' : 'desc');
  const most = sql.raw(which === 'first' ? 'least' : 'greatest');
  const at = numberIn(revision);
  return sql`${most}(
    (select s.date from series as s where s.price_id = price.id and s.date between ${from} and ${to}
      and s.revision <= ${at} order by s.date ${order} limit 1),
    (select h.date from series_history as h where h.price_id = price.id
      and h.date between ${from} and ${to} and h.revision <= ${at} and h.revision_to > ${at}
      order by h.date ${order} limit 1))`;
}

/** The points of series within segments, of prices `price`: id, n, first and last. */
function seriesHits(segments: RawBuilder<unknown>, { range }: Range, revision: string) {
  const from = sql`greatest(segment.first, coalesce(${range.from}::date, '-infinity'))`;
  const to = sql`least(segment.last, coalesce(${range.to}::date, 'infinity'))`;
  return sql`select price.id, segment.n, days.first, days.last
    from price cross join ${segments} as segment
      cross join lateral (select ${endOf('first', from, to, revision)} as first,
        ${endOf('last', from, to, revision)} as last) as days
    where days.first is not null`;
}

const FIRST_OF_ALL = sql`date '-infinity'`;

const monthsBack = (span: string) => sql`(latest.day - ${sql.lit(span)}::interval)::date`;

/** The same of the points that the figures of a summary need. */
function summaryHits(segments: RawBuilder<unknown>, { range }: Range, revision: string) {
  const to = sql`coalesce(${range.to}::date, 'infinity')`;
  return sql`select price.id, segment.n, needed.day, needed.day
    from price
      cross join lateral (select ${endOf('last', FIRST_OF_ALL, to, revision)} as day) as latest
      cross join lateral (values (latest.day), (latest.day - 1), (latest.day - 7),
        (latest.day - 14), (${monthsBack('1 month')}), (${monthsBack('3 months')}),
        (${monthsBack('6 months')}), (${monthsBack('12 months')}),
        (make_date(extract(year from latest.day)::int - 1, 12, 31))) as base (day)
      cross join lateral (select ${endOf('last', FIRST_OF_ALL, sql`base.day`, revision)} as day)
        as needed
      join ${segments} as segment on needed.day between segment.first and segment.last`;
}

/** The requested points of prices `price`, within segments that have rates or that lack them. */
function hitsIn(lacks: boolean, plan: Parameters<MissingReader>[1], revision: string) {
  const segments = sql`(select n, first, last from all_segments where lacks = ${sql.lit(lacks)})`;
  const { includeSeries, includeSummary } = plan.options;
  const parts = [
    ...(includeSeries ? [seriesHits(segments, plan, revision)] : []),
    ...(includeSummary ? [summaryHits(segments, plan, revision)] : []),
  ];
  return sql.join(parts, sql` union all `);
}

/** Those of some prices of which not all points that may be requested lie where there are rates. */
function suspectedOf(
  priceIds: readonly number[],
  { range, options }: Parameters<MissingReader>[1],
  revision: string,
) {
  // A summary looks back over the beginning of the range.
  const first = options.includeSummary ? null : range.from;
  const from = sql`coalesce(${first}::date, '-infinity')`;
  const to = sql`coalesce(${range.to}::date, 'infinity')`;
  return sql`select price.id from unnest(${[...priceIds]}::integer[]) as price (id)
    cross join lateral (select ${endOf('first', from, to, revision)} as first,
      ${endOf('last', from, to, revision)} as last) as days
    where not exists (select from all_segments as s
      where not s.lacks and s.first <= days.first and s.last >= days.last)`;
}

interface MissingRow {
  readonly n: number | null;
  readonly first: number;
  readonly last: number;
  readonly ids: readonly number[];
}

/** The statement that looks for requested points without a rate. */
const missingStatement = (
  { priceIds, segments }: Suspects,
  plan: Parameters<MissingReader>[1],
  revision: string,
) => sql<MissingRow>`
  with all_segments as (select * from unnest(
      ${segments.map(({ first }) => dateText(first))}::date[],
      ${segments.map(({ last }) => dateText(last))}::date[],
      ${segments.map(({ lacking }) => lacking.length > 0)}::boolean[])
      with ordinality as s (first, last, lacks, n)),
    missing (id, n, first, last) as materialized (
      with price as (${suspectedOf(priceIds, plan, revision)})
      ${hitsIn(true, plan, revision)}),
    converted (id, n, first, last) as (
      with price as (select distinct id from missing)
      ${hitsIn(false, plan, revision)})
  select (n - 1)::int as n, min(first) - date '2000-01-01' as first,
      max(last) - date '2000-01-01' as last, null::integer[] as ids
    from missing where ${requireCommit(revision)} group by n
  union all
  select null, null, null, array_agg(distinct id) from missing
    where id not in (select id from converted)`;

/** Looks for requested points without a rate in the database, by one short statement. */
export const sqlMissing =
  (db: () => Kysely<Database>): MissingReader =>
  async (suspects, plan, revision) => {
    const { rows } = await missingStatement(suspects, plan, revision).execute(db());
    const days: Missing['days'] = new Map(
      rows.flatMap(({ n, first, last }) => (n === null ? [] : [[n, { first, last }]])),
    );
    return { days, unconvertible: rows.find(({ n }) => n === null)?.ids ?? [] };
  };
