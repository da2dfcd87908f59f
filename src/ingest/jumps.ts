import { sql } from 'kysely';
import type { Trx } from './reference.ts';

/** A value as the functions of the database compare it: low, mid, high, and its day as a number. */
const comparable = (low: string, mid: string, high: string) =>
  sql`array[${sql.ref(low)}, ${sql.ref(mid)}, ${sql.ref(high)},
    (c.date - '2000-01-01'::date)::numeric]`;

const CURRENT = comparable('c.low_before', 'c.mid_before', 'c.high_before');
const OFFERED = comparable('c.low', 'c.mid', 'c.high');

/**
 * The values of each careful price or currency as they would stand after the load, with those that
 * lie before and after. `is_fixed` are those that the load leaves alone; `otherwise` stands when a
 * value is left out.
 */
const STANDING = sql`
  select c.subject, c.date, c.line, c.place, c.state not in ('new', 'changed') as is_fixed,
    case when c.state in ('new', 'changed') then ${OFFERED} else ${CURRENT} end as value,
    case when c.state = 'changed' then ${CURRENT} end as otherwise
  from pg_temp.load_change c
  where c.state in ('new', 'changed', 'same', 'outdated', 'fixed')
    or (c.state = 'refused' and c.mid_before is not null)
  union all
  select u.subject, '2000-01-01'::date + u.before[4]::integer, null, null, true, u.before, null
  from pg_temp.load_subject u where u.is_careful and u.before is not null
  union all
  select u.subject, '2000-01-01'::date + u.after[4]::integer, null, null, true, u.after, null
  from pg_temp.load_subject u where u.is_careful and u.after is not null`;

/**
 * Notes, as `beside` of each new or changed value, a value that it jumps against: the one that it
 * replaces, the one before it, or the one after it when the load leaves that alone.
 * @returns whether there is any
 */
export async function findJumps(trx: Trx, factor: string): Promise<boolean> {
  const found = await sql`
    update pg_temp.load_change c set beside = case
      when c.mid_before is not null and value_jumps(${CURRENT}, ${OFFERED}, ${factor}::numeric)
        then ${CURRENT}
      when value_jumps(s.previous, s.value, ${factor}::numeric) then s.previous
      else s.next
    end
    from (
      select *, lag(value) over dates as previous,
        case when lead(is_fixed) over dates then lead(value) over dates end as next
      from (${STANDING}) as standing
      window dates as (partition by subject order by date)
    ) as s
    where c.line = s.line and c.subject = s.subject and c.place = s.place and not s.is_fixed and (
      (c.mid_before is not null and value_jumps(${CURRENT}, ${OFFERED}, ${factor}::numeric))
      or value_jumps(s.previous, s.value, ${factor}::numeric)
      or value_jumps(s.next, s.value, ${factor}::numeric))`.execute(trx);
  return Number(found.numAffectedRows) > 0;
}

/** Marks the values that jump against the last that was taken, in one direction of time. */
async function leaveOutAlong(trx: Trx, factor: string, direction: 'asc' | 'desc'): Promise<void> {
  const dates = sql`(partition by subject order by date ${sql.raw(direction)})`;
  await sql`
    update pg_temp.load_change c set state = 'refused', beside = t.taken_before
    from (
      select *, lag(taken) over dates as taken_before
      from (
        select *, last_taken(value, otherwise, is_fixed, ${factor}::numeric) over dates as taken
        from (${STANDING}) as standing
        window dates as ${dates}
      ) as walked
      window dates as ${dates}
    ) as t
    where c.line = t.line and c.subject = t.subject and c.place = t.place and not t.is_fixed
      and value_jumps(t.taken_before, t.value, ${factor}::numeric)`.execute(trx);
}

/**
 * Leaves out values until none is left that jumps: first those that jump against what they
 * replace, then, along time, each that jumps against the last one taken; at last, against time,
 * each that jumps against a value that the load leaves alone. What is left holds no jump.
 */
export async function leaveOutJumps(trx: Trx, factor: string): Promise<void> {
  await sql`update pg_temp.load_change set beside = null where beside is not null`.execute(trx);
  await sql`
    update pg_temp.load_change c set state = 'refused', beside = ${CURRENT}
    where c.state = 'changed'
      and value_jumps(${CURRENT}, ${OFFERED}, ${factor}::numeric)`.execute(trx);
  await leaveOutAlong(trx, factor, 'asc');
  await leaveOutAlong(trx, factor, 'desc');
}
