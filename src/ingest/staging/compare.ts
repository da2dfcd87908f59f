import { sql } from 'kysely';
import type { Trx } from '../descriptions/reference.ts';
import { type ChangeTarget, firstOf, type Listed } from './change-set.ts';
import type { StagedFile } from './stage.ts';

/** A value as the functions of the database compare it: low, mid, high, and its day as a number. */
const comparable = (low: string, mid: string, high: string, date = 'c.date') =>
  sql`array[${sql.ref(low)}, ${sql.ref(mid)}, ${sql.ref(high)},
    (${sql.ref(date)} - '2000-01-01'::date)::numeric]`;

/** The value of `u` that is nearest to a date, on one side of it. */
const neighbour = (target: ChangeTarget, side: 'before' | 'after') => sql`(
  select ${comparable('n.low', 'n.mid', 'n.high', 'n.date')} from (
    select s.date, ${target.values} from ${target.held}
      and ${side === 'before' ? sql`s.date < u.first_date` : sql`s.date > u.last_date`}
    order by s.date ${side === 'before' ? sql`desc` : sql`asc`} limit 1) as n)`;

/**
 * Finds the prices or currencies whose values have to be compared one by one: those that have
 * values between the first and the last date of the file, now or in the past, or beside them; that
 * come out of order, and so may come twice; that do not surely move smoothly; that are to go. All
 * others are new as a whole, and right.
 * @returns whether there are any
 */
export async function markForComparison(
  trx: Trx,
  { target, mayJump, withdraws }: StagedFile,
): Promise<boolean> {
  await sql`
    update pg_temp.load_series u set
      has_now = exists (select from ${target.held}
        and s.date between u.first_date and u.last_date),
      has_past = ${target.hasPast},
      before = ${mayJump ? sql`null` : neighbour(target, 'before')},
      after = ${mayJump ? sql`null` : neighbour(target, 'after')}
    where u.id is not null and u.rows > 0`.execute(trx);
  const marked = await sql`
    update pg_temp.load_series u set is_compared = true
    where u.rows > 0 and (u.id is not null or u.described)
      and (${withdraws} or has_now or has_past or not is_ascending or before is not null
        or after is not null or rejected_line is not null
        or (not is_smooth and not ${mayJump}))`.execute(trx);
  return Number(marked.numAffectedRows) > 0;
}

/**
 * Whether the value `n` was brought by a newer edition (vintage) than that of the load. An edition
 * held a date that it covers, unless an older one wrote the value there later, which it could only
 * do where the newer one had none.
 */
const isOutdated = ({ target, format, vintage }: StagedFile) => sql`
  exists (select from load_coverage o join load_batch b on b.id = o.batch_id
    where ${sql.ref(`o.${target.covered}`)} = n.id
      and n.date between o.first_date and o.last_date
      and b.undone_by is null and b.format = any(${format.lineage}::text[])
      and b.vintage > ${vintage}::date
      -- What an edition wrote after that batch, the batch cannot have held.
      and not exists (select from load_batch w
        where w.id = n.batch_id and w.id > b.id and w.vintage < b.vintage
          and w.format = any(${format.lineage}::text[])))`;

/**
 * Compares the values of the careful prices or currencies with the current ones, into
 * `load_change`. The state of each tells what the load would do with it:
 *
 * - `new`: there is no current value. `withdrawn`: there is none because it was withdrawn, and the
 *   edition is not newer than that: it stays so.
 * - `same`, `changed`, and `outdated`, when a newer edition brought the current one.
 * - `fixed`: a current value between those of the file, to compare neighbours with.
 * - `gone`: a current value that is to be withdrawn. `missing`: there is none to be withdrawn.
 * - `duplicate`: a second mention of a date in the file.
 */
export async function compareValues(trx: Trx, load: StagedFile): Promise<void> {
  const { target, vintage, mayJump } = load;
  await sql`
    insert into pg_temp.load_change (source, line, series_no, id, date, low, mid, high, published_at,
      place, written, low_before, mid_before, high_before, state, corrections)
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
        when ${isOutdated(load)} then 'outdated'
        else 'changed'
      end,
      case when n.mid is not null then n.corrections + 1
        when f.has_past then f.corrections end
    from (
      select v.*, u.id, u.has_past,
        case when u.has_past then ${pastOf(target)} end as corrections
      from pg_temp.load_value v join pg_temp.load_series u using (series_no)
      where u.is_compared) as f
    ${mayJump ? sql`left` : sql`full`} join (
      select u.series_no, u.id, s.*
      from pg_temp.load_series u cross join lateral (
        select s.date, s.batch_id, ${target.values} from ${target.held}
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
  await sql`analyze pg_temp.load_change (source, line, series_no, date, state)`.execute(trx);
}

/** The corrections of a value that is gone, of a staged value `v`. */
const pastOf = (target: ChangeTarget) => sql`(
  select p.corrections from (select v.date) as f (date)
  cross join lateral (select ${target.pastCorrections} as corrections) as p)`;

/** Of a price or currency `u`, whether all of its values are new. */
const ALL_VALUES_ARE_NEW = sql`
  not u.is_compared and not u.is_refused and (u.id is not null or u.described)`;

/** Of a compared value `c` of `u`, whether it is new, and nothing is held against it. */
const VALUE_IS_NEW = sql`
  c.state = 'new' and c.neighbour is null and not u.is_refused
    and c.line is distinct from u.rejected_line`;

/** What a load would do with the values of a file that are right. */
export interface ClassifiedCounts {
  readonly inserted: number;
  readonly unchanged: number;
  readonly corrected: number;
  readonly outdated: number;
}

/** Counts what was found out; as float8, which the driver gives as numbers. */
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

const CURRENT = comparable('c.low_before', 'c.mid_before', 'c.high_before');
const OFFERED = comparable('c.low', 'c.mid', 'c.high');

/**
 * The values of each careful price or currency as they would stand after the load, with those that
 * lie before and after. `is_fixed` are those that the load leaves alone; `otherwise` stands when a
 * value is left out.
 */
const STANDING = sql`
  select c.series_no, c.date, c.line, c.place, c.state not in ('new', 'changed') as is_fixed,
    case when c.state in ('new', 'changed') then ${OFFERED} else ${CURRENT} end as value,
    case when c.state = 'changed' then ${CURRENT} end as otherwise
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
 * Notes, as `beside` of each new or changed value, a value that it jumps against: the one that it
 * replaces, the one before it, or the one after it when the load leaves that alone.
 * @returns whether there is any
 */
export async function findJumps(trx: Trx, factor: string): Promise<boolean> {
  const found = await sql`
    update pg_temp.load_change c set neighbour = case
      when c.mid_before is not null and value_jumps(${CURRENT}, ${OFFERED}, ${factor}::numeric)
        then ${CURRENT}
      when value_jumps(s.previous, s.value, ${factor}::numeric) then s.previous
      else s.next
    end
    from (
      select *, lag(value) over dates as previous,
        case when lead(is_fixed) over dates then lead(value) over dates end as next
      from (${STANDING}) as standing
      window dates as (partition by series_no order by date)
    ) as s
    where c.line = s.line and c.series_no = s.series_no and c.place = s.place and not s.is_fixed and (
      (c.mid_before is not null and value_jumps(${CURRENT}, ${OFFERED}, ${factor}::numeric))
      or value_jumps(s.previous, s.value, ${factor}::numeric)
      or value_jumps(s.next, s.value, ${factor}::numeric))`.execute(trx);
  return Number(found.numAffectedRows) > 0;
}

/** Marks the values that jump against the last that was taken, in one direction of time. */
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
        from (${STANDING}) as standing
        window dates as ${dates}
      ) as walked
      window dates as ${dates}
    ) as t
    where c.line = t.line and c.series_no = t.series_no and c.place = t.place and not t.is_fixed
      and value_jumps(t.taken_before, t.value, ${factor}::numeric)`.execute(trx);
}

/**
 * Leaves out values until none is left that jumps: first those that jump against what they
 * replace, then, along time, each that jumps against the last one taken; at last, against time,
 * each that jumps against a value that the load leaves alone. What is left holds no jump.
 */
export async function rejectJumpingValues(trx: Trx, factor: string): Promise<void> {
  await sql`update pg_temp.load_change set neighbour = null where neighbour is not null`.execute(
    trx,
  );
  await sql`
    update pg_temp.load_change c set state = 'refused', neighbour = ${CURRENT}
    where c.state = 'changed'
      and value_jumps(${CURRENT}, ${OFFERED}, ${factor}::numeric)`.execute(trx);
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

/** The new values by price or currency. */
export const listNewValues = (trx: Trx): Promise<Listed<NewValues>> =>
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
  );
