import { sql } from 'kysely';
import type { LoadCounts } from '../../db/ledger.ts';
import type { Trx } from '../descriptions/known-names.ts';
import type { FileFormat } from '../records/format.ts';
import { type ChangeTarget, firstOf, type Listed } from './change-set.ts';

/**
 * A value in the form that the database functions compare: low, mid, high, and its day as a number.
 */
const comparable = (low: string, mid: string, high: string, date = 'c.date') =>
  sql`array[${sql.ref(low)}, ${sql.ref(mid)}, ${sql.ref(high)},
    (${sql.ref(date)} - '2000-01-01'::date)::numeric]`;

/** The value of `u` next to its first or last date, outside the file's range. */
const neighbour = (target: ChangeTarget, side: 'before' | 'after') => sql`(
  select ${comparable('n.low', 'n.mid', 'n.high', 'n.date')} from (
    select s.date, ${target.values} from ${target.currentRows}
      and ${side === 'before' ? sql`s.date < u.first_date` : sql`s.date > u.last_date`}
    order by s.date ${side === 'before' ? sql`desc` : sql`asc`} limit 1) as n)`;

/** The series that are compared: those with possible conflicts, with possible jumps, or all. */
type ComparedSeries = 'conflicts' | 'conflicts and jumps' | 'all';

/**
 * Marks the series whose values must be compared one by one. A conflict is possible for one of
 * these reasons:
 *
 * - The database has current, withdrawn or neighbouring values around the dates of the file.
 * - The dates of the file are not ascending, so duplicates are possible.
 * - A description of the price was rejected, and with it the values of its row.
 *
 * All other series are new as a whole and valid.
 * @returns whether any series is marked
 */
export async function markForComparison(
  trx: Trx,
  target: ChangeTarget,
  compared: ComparedSeries,
): Promise<boolean> {
  const mayJump = compared !== 'conflicts and jumps';
  await sql`
    update pg_temp.load_series u set
      has_now = exists (select from ${target.currentRows}
        and s.date between u.first_date and u.last_date),
      has_past = ${target.hasPast},
      before = ${mayJump ? sql`null` : neighbour(target, 'before')},
      after = ${mayJump ? sql`null` : neighbour(target, 'after')}
    where u.id is not null and u.rows > 0`.execute(trx);
  const marked = await sql`
    update pg_temp.load_series u set is_compared = true
    where u.rows > 0 and (u.id is not null or u.described)
      and (${compared === 'all'} or has_now or has_past or not is_ascending or before is not null
        or after is not null or rejected_line is not null
        or (not is_smooth and not ${mayJump}))`.execute(trx);
  return Number(marked.numAffectedRows) > 0;
}

/** The edition that is compared with the current values of its target. */
interface ComparedEdition {
  readonly target: ChangeTarget;
  readonly format: Pick<FileFormat, 'lineage'>;
  readonly vintage: string | null;
}

/**
 * True if a newer edition (vintage) than that of the load holds the value `n`. An edition holds
 * each date that it covers, except values that an older edition wrote later: it could do so only
 * where the newer edition had none.
 */
const isOutdated = ({ target, format, vintage }: ComparedEdition) => sql`
  exists (select from load_coverage o join load_batch b on b.id = o.batch_id
    where ${sql.ref(`o.${target.covered}`)} = n.id
      and n.date between o.first_date and o.last_date
      and b.undone_by is null and b.format = any(${format.lineage}::text[])
      and b.vintage > ${vintage}::date
      -- The batch cannot hold a value that an older edition wrote later.
      and not exists (select from load_batch w
        where w.id = n.batch_id and w.id > b.id and w.vintage < b.vintage
          and w.format = any(${format.lineage}::text[])))`;

/**
 * Compares the values of marked series with the current ones and fills `load_change`. Each value
 * gets a `ChangeState`.
 */
export async function compareValues(
  trx: Trx,
  edition: ComparedEdition,
  compared: ComparedSeries,
): Promise<void> {
  const { target, vintage } = edition;
  await sql`
    insert into pg_temp.load_change (source, line, series_no, id, date, low, mid, high,
      published_at, place, written, low_before, mid_before, high_before, state, corrections)
    select ${target.source}, f.line, coalesce(f.series_no, n.series_no), coalesce(f.id, n.id),
      coalesce(f.date, n.date),
      f.low, f.mid, f.high, f.published_at, f.place, f.written, n.low, n.mid, n.high,
      case
        when f.line is null then 'fixed'
        when f.mid is null then case when n.mid is null then 'missing' else 'gone' end
        when n.mid is null and f.has_past and ${target.isWithdrawn(vintage)}
          then 'withdrawn'
        when n.mid is null then 'new'
        when (f.low, f.mid, f.high) is not distinct from (n.low, n.mid, n.high) then 'same'
        when ${isOutdated(edition)} then 'outdated'
        else 'changed'
      end,
      case when n.mid is not null then n.corrections + 1
        when f.has_past then f.corrections end
    from (
      select v.*, u.id, u.has_past,
        case when u.has_past then ${pastOf(target)} end as corrections
      from pg_temp.load_value v join pg_temp.load_series u using (series_no)
      where u.is_compared) as f
    ${compared === 'conflicts and jumps' ? sql`full` : sql`left`} join (
      select u.series_no, u.id, s.*
      from pg_temp.load_series u cross join lateral (
        select s.date, s.batch_id, ${target.values} from ${target.currentRows}
          and s.date between u.first_date and u.last_date) as s
      where u.is_compared and u.has_now) as n
    on n.series_no = f.series_no and n.date = f.date`.execute(trx);
  await sql`
    update pg_temp.load_change c set state = 'duplicate', first_line = d.first_line
    from (
      select v.line, v.series_no, v.place, row_number() over same as mention,
        first_value(v.line) over same as first_line
      from pg_temp.load_value v join pg_temp.load_series u using (series_no)
      where u.is_compared and not u.is_ascending
      window same as (partition by v.series_no, v.date order by v.line, v.place)) as d
    where d.mention > 1 and c.line = d.line and c.series_no = d.series_no
      and c.place = d.place`.execute(trx);
  // Without statistics of `id`, corrections would be joined with a scan of all points.
  await sql`analyze pg_temp.load_change (source, line, series_no, id, date, state)`.execute(trx);
}

/** Number of corrections of a withdrawn value, for a staged value `v`. */
const pastOf = (target: ChangeTarget) => sql`(
  select p.corrections from (select v.date) as f (date)
  cross join lateral (select ${target.pastCorrections} as corrections) as p)`;

/** Condition on a series `u`: all of its values are new. */
const ALL_VALUES_ARE_NEW = sql`
  not u.is_compared and not u.is_refused and (u.id is not null or u.described)`;

/** Condition on a compared value `c` of `u`: it is new and valid. */
const VALUE_IS_NEW = sql`
  c.state = 'new' and c.neighbour is null and not u.is_refused
    and c.line is distinct from u.rejected_line`;

type ClassifiedCounts = Pick<LoadCounts, 'inserted' | 'unchanged' | 'corrected' | 'outdated'>;

/** Counts the classified values; as float8, which the driver returns as numbers. */
export async function countValues(trx: Trx): Promise<ClassifiedCounts> {
  const { rows } = await sql<ClassifiedCounts>`
    select
      ((select coalesce(sum(u.rows), 0) from pg_temp.load_series u
        where ${ALL_VALUES_ARE_NEW})
        + count(*) filter (where ${VALUE_IS_NEW}))::float8 as inserted,
      (count(*) filter (where state = 'same'))::float8 as unchanged,
      (count(*) filter (where state = 'changed'))::float8 as corrected,
      (count(*) filter (where state in ('outdated', 'withdrawn')))::float8 as outdated
    from pg_temp.load_change c join pg_temp.load_series u using (series_no)`.execute(trx);
  return rows[0] as ClassifiedCounts;
}

const CURRENT_VALUE = comparable('c.low_before', 'c.mid_before', 'c.high_before');
const NEW_VALUE = comparable('c.low', 'c.mid', 'c.high');

/**
 * The values of each marked series after the load, with their neighbours outside the file. The load
 * does not change those with `is_fixed`; `otherwise` is the value that stays if the new one is
 * rejected.
 */
const RESULTING_VALUES = sql`
  select c.series_no, c.date, c.line, c.place, c.state not in ('new', 'changed') as is_fixed,
    case when c.state in ('new', 'changed') then ${NEW_VALUE} else ${CURRENT_VALUE} end as value,
    case when c.state = 'changed' then ${CURRENT_VALUE} end as otherwise
  from pg_temp.load_change c
  where c.state in ('new', 'changed', 'same', 'outdated', 'fixed')
    or (c.state = 'refused' and c.mid_before is not null)
  union all
  select u.series_no, '2000-01-01'::date + u.before[4]::integer, null, null, true, u.before, null
  from pg_temp.load_series u where u.is_compared and u.before is not null
  union all
  select u.series_no, '2000-01-01'::date + u.after[4]::integer, null, null, true, u.after, null
  from pg_temp.load_series u where u.is_compared and u.after is not null`;

/**
 * Lists the series whose highest value exceeds the lowest one times the factor. In all other series
 * no value jumps. The factor is greater than 1, so a series with a negative value is listed, and
 * one with a zero among other values. This query costs much less than a comparison of neighbours.
 */
async function seriesThatMayJump(trx: Trx, factor: string): Promise<readonly number[]> {
  const { rows } = await sql<{ series_no: number }>`
    select series_no from (
      select series_no, least(low, mid, low_before, mid_before) as lowest,
        greatest(mid, high, mid_before, high_before) as highest
      from pg_temp.load_change
      union all
      select series_no, least(before[1], before[2], after[1], after[2]),
        greatest(before[2], before[3], after[2], after[3])
      from pg_temp.load_series where is_compared and (before is not null or after is not null)
    ) as bounds
    group by series_no
    having max(highest) > min(lowest) * ${factor}::numeric`.execute(trx);
  return rows.map(({ series_no }) => series_no);
}

/**
 * Sets `neighbour` of each new or changed value to the value from which it jumps. This is the
 * replaced value, the previous one, or the next one if the load does not change it.
 * @returns whether there is a jump
 */
export async function findJumps(trx: Trx, factor: string): Promise<boolean> {
  const series = await seriesThatMayJump(trx, factor);
  if (series.length === 0) return false;
  const found = await sql`
    update pg_temp.load_change c set neighbour = case
      when c.mid_before is not null
        and value_jumps(${CURRENT_VALUE}, ${NEW_VALUE}, ${factor}::numeric)
        then ${CURRENT_VALUE}
      when value_jumps(s.previous, s.value, ${factor}::numeric) then s.previous
      else s.next
    end
    from (
      select *, lag(value) over dates as previous,
        case when lead(is_fixed) over dates then lead(value) over dates end as next
      from (${RESULTING_VALUES}) as resulting
      where series_no = any(${series}::integer[])
      window dates as (partition by series_no order by date)
    ) as s
    where c.line = s.line and c.series_no = s.series_no and c.place = s.place
      and not s.is_fixed and (
      (c.mid_before is not null and value_jumps(${CURRENT_VALUE}, ${NEW_VALUE}, ${factor}::numeric))
      or value_jumps(s.previous, s.value, ${factor}::numeric)
      or value_jumps(s.next, s.value, ${factor}::numeric))`.execute(trx);
  return Number(found.numAffectedRows) > 0;
}

/** Rejects the values that jump from the last accepted one, in one direction of time. */
async function rejectJumpingAlong(
  trx: Trx,
  factor: string,
  direction: 'asc' | 'desc',
): Promise<void> {
  const dates = sql`(partition by series_no order by date ${sql.raw(direction)})`;
  await sql`
    update pg_temp.load_change c set state = 'refused', neighbour = t.taken_before
    from (
      select *, lag(taken) over dates as taken_before
      from (
        select *, last_taken(value, otherwise, is_fixed, ${factor}::numeric) over dates as taken
        from (${RESULTING_VALUES}) as resulting
        window dates as ${dates}
      ) as walked
      window dates as ${dates}
    ) as t
    where c.line = t.line and c.series_no = t.series_no and c.place = t.place and not t.is_fixed
      and value_jumps(t.taken_before, t.value, ${factor}::numeric)`.execute(trx);
}

/**
 * Rejects values until no jump is left. First come the values that jump from what they replace.
 * Then, in order of time, each that jumps from the last accepted value. Finally, against time, each
 * that jumps from a value that the load does not change.
 */
export async function rejectJumpingValues(trx: Trx, factor: string): Promise<void> {
  await sql`update pg_temp.load_change set neighbour = null where neighbour is not null`.execute(
    trx,
  );
  await sql`
    update pg_temp.load_change c set state = 'refused', neighbour = ${CURRENT_VALUE}
    where c.state = 'changed'
      and value_jumps(${CURRENT_VALUE}, ${NEW_VALUE}, ${factor}::numeric)`.execute(trx);
  await rejectJumpingAlong(trx, factor, 'asc');
  await rejectJumpingAlong(trx, factor, 'desc');
}

/** The new values of one price or currency. */
export interface NewValues {
  readonly code: string;
  readonly values: number;
  readonly from: string;
  readonly to: string;
}

/** Lists the new values of each price or currency. */
export const listNewValues = (trx: Trx, most: number | null): Promise<Listed<NewValues>> =>
  firstOf(
    trx,
    sql<NewValues>`
      select name as code, rows::float8 as values, first_date as "from", last_date as "to"
      from pg_temp.load_series u
      where ${ALL_VALUES_ARE_NEW} and rows > 0
      union all
      select u.name, count(*)::float8, min(c.date), max(c.date)
      from pg_temp.load_change c join pg_temp.load_series u using (series_no)
      where ${VALUE_IS_NEW} group by u.name`,
    most,
  );
