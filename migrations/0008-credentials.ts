import { type Kysely, sql } from 'kysely';

const KEYS = `
alter table api_key
  add column rate_per_minute integer check (rate_per_minute >= 0),
  add column rate_burst integer check (rate_burst > 0),
  add column concurrent integer check (concurrent >= 0),
  add column replaced_by integer references api_key (id),
  add constraint api_key_rate_is_whole check ((rate_per_minute is null) = (rate_burst is null));
comment on column api_key.rate_per_minute is 'Its own limit, 0 for none; null for that of the service.';

create table key_audit (
  id bigint primary key generated always as identity,
  at timestamptz not null default clock_timestamp(),
  actor text not null,
  action text not null check (action in
    ('created', 'rotated', 'revoked', 'expiry-changed', 'limits-changed', 'changed')),
  public_id text not null,
  before jsonb,
  after jsonb,
  reason text
);
comment on table key_audit is 'What was done to API keys, by whom. Rows cannot be changed or removed.';
create index key_audit_key on key_audit (public_id, id);
create trigger key_audit_frozen before update or delete on key_audit
  for each row execute function refuse_change();
create trigger key_audit_no_truncate before truncate on key_audit execute function refuse_change();

-- The service fills both in; whoever changes keys by hand is named by his account.
create function key_actor() returns text language sql stable as
  $$ select coalesce(nullif(current_setting('prices.actor', true), ''), session_user::text) $$;
create function key_reason() returns text language sql stable as
  $$ select nullif(current_setting('prices.reason', true), '') $$;

-- Written by triggers, so that a change by hand is noted like any other.
create function audit_key() returns trigger language plpgsql security definer
  set search_path = pg_catalog, public, pg_temp as $$
declare
  hidden text[] := '{digest,digest_alg,last_used_at,id}';
  was jsonb := case when tg_op = 'INSERT' then null else to_jsonb(old) - hidden end;
  becomes jsonb := case when tg_op = 'DELETE' then null else to_jsonb(new) - hidden end;
begin
  if was is not distinct from becomes and tg_op = 'UPDATE' then
    -- Another digest under the same id would be another key: that is never right.
    if old.digest is distinct from new.digest then
      raise exception 'the digest of key % never changes', old.public_id;
    end if;
    return null;
  end if;
  insert into key_audit (actor, action, public_id, before, after, reason)
    values (key_actor(),
      case when tg_op = 'INSERT' then 'created'
        when tg_op = 'DELETE' then 'changed'
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
create trigger api_key_audit after insert or update or delete on api_key
  for each row execute function audit_key();

create function audit_key_scope() returns trigger language plpgsql security definer
  set search_path = pg_catalog, public, pg_temp as $$
begin
  insert into key_audit (actor, action, public_id, before, after, reason)
    select key_actor(), 'changed', k.public_id,
      case when tg_op <> 'INSERT' then jsonb_build_object('scope', old.scope) end,
      case when tg_op <> 'DELETE' then jsonb_build_object('scope', new.scope) end, key_reason()
    from api_key k where k.id = coalesce(new.api_key_id, old.api_key_id);
  return null;
end $$;
revoke execute on function audit_key_scope() from public;
create trigger api_key_scope_audit after insert or update or delete on api_key_scope
  for each row execute function audit_key_scope();
`;

const LIMITS = `
create unlogged table rate_usage (
  instance uuid not null,
  name text not null,
  taken bigint not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (instance, name)
);
comment on table rate_usage is
  'What each running instance has counted against rate limits; the others read it. Worth nothing after a crash.';
create index rate_usage_updated on rate_usage (updated_at);
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [KEYS, LIMITS]) await sql.raw(part).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    drop table rate_usage, key_audit;
    drop trigger api_key_audit on api_key;
    drop trigger api_key_scope_audit on api_key_scope;
    drop function audit_key();
    drop function audit_key_scope();
    drop function key_actor();
    drop function key_reason();
    alter table api_key drop column rate_per_minute,
      drop column rate_burst, drop column concurrent, drop column replaced_by;
  `)
    .execute(db);
}
