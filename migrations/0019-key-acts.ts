import { type Kysely, sql } from 'kysely';

/* The audit also tells of the first use of a key, and of bursts of requests refused with it. */
const kindsAre = (further: string): string => `
alter table key_audit drop constraint key_audit_action_check,
  add constraint key_audit_action_check check (action in ('created', 'rotated', 'revoked',
    'expiry-changed', 'limits-changed', 'changed', 'deleted'${further})) not valid;
`;

/** What it does on top for a key that was never used before. */
const FIRST_USE = `
    if old.last_used_at is null and new.last_used_at is not null then
      insert into key_audit (actor, action, public_id, after)
        values (key_actor(), 'first-used', new.public_id,
          jsonb_build_object('last_used_at', new.last_used_at));
    end if;`;

const noting = (firstUse: string): string => `
create or replace function audit_key() returns trigger language plpgsql security definer
  set search_path = pg_catalog, public, pg_temp as $$
declare
  hidden text[] := '{digest,digest_alg,last_used_at,id}';
  was jsonb := case when tg_op = 'INSERT' then null else to_jsonb(old) - hidden end;
  becomes jsonb := case when tg_op = 'DELETE' then null else to_jsonb(new) - hidden end;
begin
  if tg_op = 'UPDATE' then
    if (old.id, old.public_id, old.digest, old.digest_alg) is distinct from
      (new.id, new.public_id, new.digest, new.digest_alg) then
      raise exception 'the digest of key % never changes, nor what it is called', old.public_id;
    end if;${firstUse}
    if was is not distinct from becomes then
      return null;
    end if;
  end if;
  insert into key_audit (actor, action, public_id, before, after, reason)
    values (key_actor(),
      case when tg_op = 'INSERT' then 'created'
        when tg_op = 'DELETE' then 'deleted'
        when old.revoked_at is null and new.revoked_at is not null then 'revoked'
        when old.replaced_by is distinct from new.replaced_by then 'rotated'
        when old.expires_at is distinct from new.expires_at then 'expiry-changed'
        when (old.rate_per_minute, old.rate_burst, old.concurrent) is distinct from
          (new.rate_per_minute, new.rate_burst, new.concurrent) then 'limits-changed'
        else 'changed' end,
      coalesce(new.public_id, old.public_id), was, becomes, coalesce(key_reason(), new.revoked_reason));
  return null;
end $$;
revoke execute on function audit_key() from public;
`;

/*
 * Whoever guesses chooses the ids: only those of keys are noted, and each once an hour, so that the
 * audit grows with the keys and not with the guesses.
 */
const BURSTS = `
create function note_denied(ids text[], denied integer[]) returns void language sql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  insert into key_audit (actor, action, public_id, after, reason)
    select key_actor(), 'denied-burst', k.public_id, jsonb_build_object('denied', d.denied),
        format('%s requests were refused within a minute', d.denied)
      from unnest(ids, denied) as d (id, denied) join api_key k on k.public_id = d.id
      where not exists (select from key_audit a
        where a.public_id = k.public_id and a.action = 'denied-burst'
          and a.at > clock_timestamp() - interval '1 hour')
$$;
comment on function note_denied is
  'Notes keys with which requests were refused in bursts: for each id how often within a minute.';
revoke execute on function note_denied from public;
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [kindsAre(", 'first-used', 'denied-burst'"), noting(FIRST_USE), BURSTS]) {
    await sql.raw(part).execute(db);
  }
}

/** The audit keeps its rows: what it noted meanwhile is not looked at again. */
export async function down(db: Kysely<unknown>): Promise<void> {
  for (const part of ['drop function note_denied', noting(''), kindsAre('')]) {
    await sql.raw(part).execute(db);
  }
}
