import { sql } from 'kysely';
import type { Trx } from './reference.ts';
import type { Load } from './request.ts';
import type { Target } from './targets.ts';

/**
 * Whether the value `n` was brought by a newer edition (vintage) than that of the load. An edition
 * held a date that it covers, unless an older one wrote the value there later, which it could only
 * do where the newer one had none.
 */
const isOutdated = ({ target, format, vintage }: Load) => sql`
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
export async function compareValues(trx: Trx, load: Load): Promise<void> {
  const { target, vintage, mayJump } = load;
  await sql`
    insert into pg_temp.load_change (source, line, subject, id, date, low, mid, high, published_at,
      place, written, low_before, mid_before, high_before, state, corrections)
    select ${target.source}, f.line, coalesce(f.subject, n.subject), coalesce(f.id, n.id), coalesce(f.date, n.date),
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
      from pg_temp.load_value v join pg_temp.load_subject u using (subject)
      where u.is_careful) as f
    ${mayJump ? sql`left` : sql`full`} join (
      select u.subject, u.id, s.*
      from pg_temp.load_subject u cross join lateral (
        select s.date, s.batch_id, ${target.values} from ${target.held}
          and s.date between u.first_date and u.last_date) as s
      where u.is_careful and u.has_now) as n
    on n.subject = f.subject and n.date = f.date`.execute(trx);
  await sql`
    update pg_temp.load_change c set state = 'duplicate', first_line = d.first_line
    from (
      select v.line, v.subject, v.place, row_number() over same as mention,
        first_value(v.line) over same as first_line
      from pg_temp.load_value v join pg_temp.load_subject u using (subject)
      where u.is_careful and not u.is_ascending
      window same as (partition by v.subject, v.date order by v.line, v.place)) as d
    where d.mention > 1 and c.line = d.line and c.subject = d.subject
      and c.place = d.place`.execute(trx);
  await sql`analyze pg_temp.load_change (source, line, subject, date, state)`.execute(trx);
}

/** The corrections of a value that is gone, of a staged value `v`. */
const pastOf = (target: Target) => sql`(
  select p.corrections from (select v.date) as f (date)
  cross join lateral (select ${target.pastCorrections} as corrections) as p)`;

/** What a load would do with the values of a file that are right. */
interface Classified {
  readonly inserted: number;
  readonly unchanged: number;
  readonly corrected: number;
  readonly outdated: number;
}

/** Of a price or currency `u`, whether all of its values are new. */
export const NEW_AS_A_WHOLE = sql`
  not u.is_careful and not u.is_refused and (u.id is not null or u.described)`;

/** Of a compared value `c` of `u`, whether it is new, and nothing is held against it. */
export const NEW_BY_ITSELF = sql`
  c.state = 'new' and c.beside is null and not u.is_refused
    and c.line is distinct from u.rejected_line`;

/** Counts what was found out. */
export async function countValues(trx: Trx): Promise<Classified> {
  const { rows } = await sql<Record<keyof Classified, string>>`
    select
      (select coalesce(sum(u.rows), 0) from pg_temp.load_subject u
        where ${NEW_AS_A_WHOLE})
        + count(*) filter (where ${NEW_BY_ITSELF}) as inserted,
      count(*) filter (where state = 'same') as unchanged,
      count(*) filter (where state = 'changed') as corrected,
      count(*) filter (where state in ('outdated', 'withdrawn')) as outdated
    from pg_temp.load_change c join pg_temp.load_subject u using (subject)`.execute(trx);
  const [counts] = rows;
  return {
    inserted: Number(counts?.inserted),
    unchanged: Number(counts?.unchanged),
    corrected: Number(counts?.corrected),
    outdated: Number(counts?.outdated),
  };
}
