import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Database } from '../db/schema.ts';

/** The key that each key took the place of, by their public ids. */
export const predecessors = (db: Kysely<Database>) =>
  db
    .selectFrom('api_key as old')
    .innerJoin('api_key as heir', 'heir.id', 'old.replaced_by')
    // By hand a key can be given for the heir of several: the newest of them is told.
    .distinctOn('heir.id')
    .select(['heir.public_id as heir', 'old.public_id as replaced'])
    .orderBy('heir.id')
    .orderBy('old.id', 'desc');

/**
 * What the audit keeps of a key before or after a change, with the public id of the key that took
 * its place where it has the number of a row, which nobody outside of the database knows. Null
 * where the row of that key was removed since.
 */
export const withPublicIds = (side: 'before' | 'after'): RawBuilder<unknown> => {
  const kept = sql.ref(`key_audit.${side}`);
  return sql`case when ${kept} ->> 'replaced_by' is null then ${kept}
    else jsonb_set(${kept}, '{replaced_by}', coalesce((select to_jsonb(heir.public_id)
      from api_key heir where heir.id = (${kept} ->> 'replaced_by')::integer), 'null')) end`;
};
