import { type Kysely, sql } from 'kysely';

/* A key whose row is removed was noted as changed, like one that got another name. */
const kindsAre = (kinds: string): string => `
alter table key_audit drop constraint key_audit_action_check,
  add constraint key_audit_action_check check (action in
    ('created', 'rotated', 'revoked', 'expiry-changed', 'limits-changed', 'changed'${kinds})) not valid;
`;

/** Writes the audit; a removed row is noted as this. */
const noting = (removed: string): string => `
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
    end if;
    if was is not distinct from becomes then
      return null;
    end if;
  end if;
  insert into key_audit (actor, action, public_id, before, after, reason)
    values (key_actor(),
      case when tg_op = 'INSERT' then 'created'
        when tg_op = 'DELETE' then '${removed}'
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

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(noting('deleted')).execute(db);
  await sql.raw(kindsAre(", 'deleted'")).execute(db);
}

/** The audit keeps its rows: what it noted meanwhile is not looked at again. */
export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw(noting('changed')).execute(db);
  await sql.raw(kindsAre('')).execute(db);
}
