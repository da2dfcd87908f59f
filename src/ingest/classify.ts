import { sql } from 'kysely';
import { offer } from './offer.ts';
import { type LoadErrorCode, PROBLEMS_MAX, type Problems } from './problems.ts';
import type { Trx } from './reference.ts';
import type { Staged } from './stage.ts';
import type { Target } from './targets.ts';

/** How the staged values compare with what the database holds now. */
export interface Classified {
  readonly inserted: number;
  readonly unchanged: number;
  readonly corrected: number;
  readonly outdated: number;
}

/** Numbers the prices or currencies of the file in the database, as far as they exist. */
export async function resolveSubjects(trx: Trx, staged: Staged, target: Target): Promise<void> {
  const { names, keys } = staged.subjects;
  const described = names.map((_, number) => staged.descriptions.prices.has(number));
  await sql`
    insert into pg_temp.load_subject (subject, name, key, described, id)
    select s.place - 1, s.name, s.key, s.described, known.id
    from unnest(${names}::text[], ${keys}::text[], ${described}::boolean[])
      with ordinality as s (name, key, described, place)
    left join (${target.ids}) as known on known.key = s.key`.execute(trx);
  // Nothing analyses temporary tables by itself, and without numbers the joins are planned badly.
  await sql`analyze pg_temp.load_value, pg_temp.load_subject`.execute(trx);
}

/** Fills in the ids of prices or currencies that were created since. */
export async function resolveCreated(trx: Trx, target: Target): Promise<void> {
  await sql`
    update pg_temp.load_subject u set id = known.id from (${target.ids}) as known
    where u.id is null and known.key = u.key`.execute(trx);
}

interface Listed {
  readonly line: string;
  readonly name: string;
  readonly date: string;
  readonly total: string;
  readonly first: string;
}

/** Rejects every row whose price or currency is neither known nor described. */
export async function rejectUnknown(
  trx: Trx,
  code: LoadErrorCode,
  known: Iterable<string>,
  problems: Problems,
): Promise<void> {
  const { rows } = await sql<Listed>`
    select v.line, u.name, count(*) over () as total
    from pg_temp.load_value v join pg_temp.load_subject u using (subject)
    where u.id is null and not u.described order by v.line limit ${PROBLEMS_MAX}`.execute(trx);
  const hints = new Map<string, string>();
  const candidates = rows.length > 0 ? [...known] : [];
  for (const { line, name } of rows) {
    // Comparing with every name is slow, so only the first few unknown ones get a suggestion.
    const hint = hints.get(name) ?? (hints.size < 20 ? offer(name, candidates) : '');
    hints.set(name, hint);
    const what = code === 'unknown_code' ? 'No price has this code' : 'There is no such currency';
    problems.reject(code, `${what}${hint}`, { line: Number(line), column: 'code', value: name });
  }
  problems.leftOut(Number(rows[0]?.total ?? 0) - rows.length);
}

/** Rejects every second mention of a price or currency on the same date. */
export async function rejectDuplicates(trx: Trx, problems: Problems): Promise<void> {
  const { rows: found } = await sql`
    select from pg_temp.load_value group by subject, date having count(*) > 1 limit 1`.execute(trx);
  if (found.length === 0) return;
  const { rows } = await sql<Listed>`
    select line, name, date, first, count(*) over () as total
    from (select v.line, u.name, v.date,
        row_number() over same as place, first_value(v.line) over same as first
      from pg_temp.load_value v join pg_temp.load_subject u using (subject)
      where u.id is not null or u.described
      window same as (partition by v.subject, v.date order by v.line)) as mentions
    where place > 1 order by line limit ${PROBLEMS_MAX}`.execute(trx);
  for (const { line, name, date, first } of rows) {
    const message = `${name} was given for ${date} in line ${first} already`;
    problems.reject('duplicate', message, { line: Number(line), column: 'date', value: date });
  }
  problems.leftOut(Number(rows[0]?.total ?? 0) - rows.length);
}

/**
 * Compares all staged values with the current ones. A value that differs is outdated when a load
 * of a newer edition (vintage) held its price or currency and date; `load_differing` then lists
 * what differs. An edition held a date that it covers, unless an older one wrote the value there
 * later, which it could only do where the newer one had none.
 */
export async function classify(
  trx: Trx,
  staged: Staged,
  target: Target,
  edition: { readonly lineage: readonly string[]; readonly vintage: string | null },
): Promise<Classified> {
  const { lineage, vintage } = edition;
  await sql`
    insert into pg_temp.load_differing
    select v.line, v.subject, u.id, v.date, v.low, v.mid, v.high, v.published_at, ${target.before},
      exists (select from load_coverage c join load_batch b on b.id = c.batch_id
        where c.${sql.ref(target.covered)} = u.id and v.date between c.first_date and c.last_date
          and b.format = any(${lineage}::text[]) and b.vintage > ${vintage}::date
          -- What an edition wrote after that batch, the batch cannot have held.
          and not exists (select from load_batch w
            where w.id = s.batch_id and w.id > b.id and w.vintage < b.vintage
              and w.format = any(${lineage}::text[])))
    from pg_temp.load_value v join pg_temp.load_subject u using (subject)
    cross join lateral (select * from ${target.current}) as s
    where ${target.differs}`.execute(trx);
  await sql`analyze pg_temp.load_differing`.execute(trx);
  const { rows } = await sql<Record<keyof Classified, string>>`
    select
      (select count(*) from pg_temp.load_value v join pg_temp.load_subject u using (subject)
        where not exists (select from ${target.current})) as inserted,
      count(*) filter (where not outdated) as corrected,
      count(*) filter (where outdated) as outdated
    from pg_temp.load_differing`.execute(trx);
  const [counts] = rows;
  const inserted = Number(counts?.inserted);
  const corrected = Number(counts?.corrected);
  const outdated = Number(counts?.outdated);
  const unchanged = staged.rows - inserted - corrected - outdated;
  return { inserted, unchanged, corrected, outdated };
}

interface Change extends Listed {
  readonly before: string;
  readonly after: string;
}

/** Rejects every row that would change a published value. */
export async function rejectCorrections(trx: Trx, problems: Problems): Promise<void> {
  const { rows } = await sql<Change>`
    select d.line, u.name, d.date, count(*) over () as total,
      concat_ws(' / ', d.low_before, d.mid_before, d.high_before) as before,
      concat_ws(' / ', d.low, d.mid, d.high) as after
    from pg_temp.load_differing d join pg_temp.load_subject u using (subject)
    where not d.outdated order by d.line, d.subject limit ${PROBLEMS_MAX}`.execute(trx);
  for (const { line, name, date, before, after } of rows) {
    const change = `The value of ${date} is ${before} and would become ${after}`;
    const message = `${change}; allow corrections, with a reason, to change it`;
    const place = { line: Number(line), column: name, value: after };
    problems.reject('correction_not_allowed', message, place);
  }
  problems.leftOut(Number(rows[0]?.total ?? 0) - rows.length);
}
