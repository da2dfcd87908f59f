import { sql } from 'kysely';
import type { Trx } from '../reference.ts';
import type { Load } from '../request.ts';
import type { Target } from '../targets.ts';

/** Numbers the prices or currencies of the file in the database, as far as they exist. */
export async function resolveSubjects(trx: Trx, load: Load): Promise<void> {
  const { descriptions, ranges, target } = load;
  const { names, keys } = load.subjects;
  const described = names.map((_, number) => descriptions.prices.has(number));
  const { rows, first, last, ascending, smooth } = ranges.columns(names.length);
  await sql`
    insert into pg_temp.load_subject (subject, name, key, described, id,
      rows, first_date, last_date, is_ascending, is_smooth)
    select s.place - 1, s.name, s.key, s.described, known.id,
      s.rows, s.first, s.last, s.ascending, s.smooth
    from unnest(${names}::text[], ${keys}::text[], ${described}::boolean[], ${rows}::bigint[],
        ${first}::date[], ${last}::date[], ${ascending}::boolean[], ${smooth}::boolean[])
      with ordinality as s (name, key, described, rows, first, last, ascending, smooth, place)
    left join (${target.ids}) as known on known.key = s.key`.execute(trx);
  // Nothing analyses temporary tables by itself, and without numbers the joins are planned badly.
  await sql`analyze pg_temp.load_value (subject, date), pg_temp.load_subject`.execute(trx);
}

/** Fills in the ids of prices or currencies that were created since. */
export async function resolveCreated(trx: Trx, target: Target): Promise<void> {
  await sql`
    update pg_temp.load_subject u set id = known.id from (${target.ids}) as known
    where u.id is null and u.described and known.key = u.key`.execute(trx);
}

/** A value as the functions of the database compare it: low, mid, high, and its day as a number. */
const comparable = (table: string) => {
  const column = (name: string) => sql.ref(`${table}.${name}`);
  return sql`array[${column('low')}, ${column('mid')}, ${column('high')},
    (${column('date')} - '2000-01-01'::date)::numeric]`;
};

/** The value of `u` that is nearest to a date, on one side of it. */
const neighbour = (target: Target, side: 'before' | 'after') => sql`(
  select ${comparable('n')} from (
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
export async function markCareful(
  trx: Trx,
  { target, mayJump, withdraws }: Load,
): Promise<boolean> {
  await sql`
    update pg_temp.load_subject u set
      has_now = exists (select from ${target.held}
        and s.date between u.first_date and u.last_date),
      has_past = ${target.hasPast},
      before = ${mayJump ? sql`null` : neighbour(target, 'before')},
      after = ${mayJump ? sql`null` : neighbour(target, 'after')}
    where u.id is not null and u.rows > 0`.execute(trx);
  const careful = await sql`
    update pg_temp.load_subject u set is_careful = true
    where u.rows > 0 and (u.id is not null or u.described)
      and (${withdraws} or has_now or has_past or not is_ascending or before is not null or after is not null
        or rejected_line is not null or (not is_smooth and not ${mayJump}))`.execute(trx);
  return Number(careful.numAffectedRows) > 0;
}
