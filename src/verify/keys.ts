import type { Rule } from './rule.ts';

/** Columns of `api_key` that the triggers of the audit exclude. */
const HIDDEN = `'{digest,digest_alg,last_used_at,id}'::text[]`;

/** The last entry of the audit for each scope of a key. */
const LAST_SCOPES = `
  select distinct on (public_id, scope) public_id, scope, granted
  from key_audit cross join lateral (values
    (before ->> 'scope', false, 0), (after ->> 'scope', true, 1)) as e (scope, granted, step)
  where not coalesce(after, before) ? 'public_id' and scope is not null
  order by public_id, scope, id desc, step desc`;

/** Rules of API keys. */
export const KEY_RULES: readonly Rule[] = [
  {
    name: 'keys-audited',
    meaning:
      'Every API key and each of its scopes agrees with its last audit entry. Removed keys ' +
      'have an entry of their removal.',
    broken: `
      with last as (
        select distinct on (public_id) public_id, after from key_audit
        where coalesce(after, before) ? 'public_id' order by public_id, id desc)
      select public_id as key, null as scope,
          case when k.id is null then 'was removed without an audit entry'
            when l.public_id is null then 'was created without an audit entry'
            when l.after is null then 'is removed by its last audit entry'
            else 'differs from its last audit entry' end as problem
        from api_key k full join last l using (public_id)
        where case when k.id is null then l.after is not null
          else l.public_id is null or l.after is null or to_jsonb(k) - ${HIDDEN}
            <> to_jsonb(jsonb_populate_record(k, l.after)) - ${HIDDEN} end
      union all
      select coalesce(h.public_id, l.public_id), coalesce(h.scope, l.scope),
          case when h.scope is null then 'was revoked without an audit entry'
            else 'was granted without an audit entry' end
        from (select k.public_id, s.scope
            from api_key_scope s join api_key k on k.id = s.api_key_id) as h
          full join (${LAST_SCOPES}) as l on l.public_id = h.public_id and l.scope = h.scope
        where (l.scope is null or l.granted <> (h.scope is not null))
          and exists (select from api_key k where k.public_id in (h.public_id, l.public_id))`,
  },
  {
    name: 'keys-sound',
    meaning: 'A key has a scope, and its replacement is another key.',
    broken: `select k.public_id as key, replaced_by from api_key k
      where replaced_by = k.id
        or not exists (select from api_key_scope s where s.api_key_id = k.id)`,
  },
];
