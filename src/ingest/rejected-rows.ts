import { sql } from 'kysely';
import type { Rules } from './rejections.ts';

/**
 * Of the staged values of a file that is refused, how many have a fault, each counted once: those
 * of unknown codes, those beside a description that cannot be taken, and those that `load_change`
 * holds something against.
 */
export async function countFaulty(
  { trx }: Pick<Rules, 'trx'>,
  mayCorrect: boolean,
): Promise<number> {
  const { rows } = await sql<{ count: string }>`
    select count(*) from (
      select v.line, v.subject, v.place
      from pg_temp.load_value v join pg_temp.load_subject u using (subject)
      where (u.id is null and not u.described) or v.line = u.rejected_line
      union
      select line, subject, place from pg_temp.load_change
      where state = 'duplicate' or beside is not null or (state = 'changed' and not ${mayCorrect})
    ) as faulty`.execute(trx);
  return Number(rows[0]?.count);
}
