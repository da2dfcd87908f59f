import { type RawBuilder, sql } from 'kysely';

/** Most rotations that are followed: manual edits can make a circle. */
const ROTATIONS_MAX = 50;

/**
 * SQL: the scopes of the key of a subscription now; null if the key has expired or was revoked. A
 * key that was rotated stands for its replacement. The clock of the database decides, as for
 * requests.
 * @param keyId the column with the id of the key
 */
export const scopesNow = (keyId: RawBuilder<unknown>): RawBuilder<string[] | null> =>
  sql<string[] | null>`(
    with recursive chain as (
      select k.id, k.expires_at, k.revoked_at, k.replaced_by, 1 as place
        from api_key k where k.id = ${keyId}
      union all
      select k.id, k.expires_at, k.revoked_at, k.replaced_by, chain.place + 1
        from chain join api_key k on k.id = chain.replaced_by
        where chain.place < ${ROTATIONS_MAX}::integer)
    select array(select s.scope from api_key_scope s where s.api_key_id = newest.id)
    from (select * from chain order by place desc limit 1) as newest
    where newest.revoked_at is null
      and (newest.expires_at is null or newest.expires_at > clock_timestamp()))`;
