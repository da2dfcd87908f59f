import { type Kysely, sql } from 'kysely';

/** API keys and their scopes, with a counter of changes. */
const KEYS = `
create table access_scope (
  scope text primary key check (scope ~ '^prices:([*]|[a-z]+(-[a-z]+)*)$'),
  market_id smallint unique references market (id)
);
comment on table access_scope is 'All scopes of API keys, written by the migrate command.';

create table api_key (
  id integer primary key generated always as identity,
  public_id text not null unique check (public_id ~ '^[0-9A-Za-z]{10}$'),
  name text not null check (name <> ''),
  owner text,
  digest bytea not null check (octet_length(digest) = 32),
  digest_alg smallint not null default 1 check (digest_alg = 1),
  created_at timestamptz not null default now(),
  expires_at timestamptz check (expires_at > created_at),
  revoked_at timestamptz,
  revoked_reason text,
  replaced_by integer references api_key (id),
  rate_per_minute integer check (rate_per_minute >= 0),
  rate_burst integer check (rate_burst > 0),
  concurrent integer check (concurrent >= 0),
  last_used_at timestamptz,
  check ((revoked_at is null) = (revoked_reason is null)),
  constraint api_key_rate_is_whole check ((rate_per_minute is null) = (rate_burst is null))
);
comment on table api_key is 'API keys: public id and SHA-256, never the key itself.';
comment on column api_key.rate_per_minute is 'Limit of this key; 0 for no limit, null for that of the service.';
comment on column api_key.last_used_at is
  'Time of the last use, to the minute, written by a separate account.';

create table api_key_scope (
  api_key_id integer not null references api_key (id),
  scope text not null references access_scope (scope),
  primary key (api_key_id, scope)
);
comment on table api_key_scope is 'The scopes of each API key.';

create function refuse_key_truncate() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
begin
  raise exception 'truncate of % is refused: the audit would not show it', tg_table_name
    using hint = 'Revoke keys, or delete their rows.';
end $$;
comment on function refuse_key_truncate() is 'Rejects the removal of keys without an audit entry.';
create trigger api_key_no_truncate before truncate on api_key
  execute function refuse_key_truncate();
create trigger api_key_scope_no_truncate before truncate on api_key_scope
  execute function refuse_key_truncate();

-- The account of keys has no right to update table service, so the function runs as its owner.
create function count_key_change() returns trigger
  language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  update service set keys_version = keys_version + 1, keys_change_id = new_commit_id();
  return null;
end $$;
comment on function count_key_change() is 'Counts a change of API keys, so that services read them again.';
revoke execute on function count_key_change() from public;
create trigger api_key_counted after insert or delete or truncate on api_key
  execute function count_key_change();
-- A change of the last use does not affect cached keys.
create trigger api_key_change_counted after update on api_key for each row
  when (to_jsonb(old) - 'last_used_at' is distinct from to_jsonb(new) - 'last_used_at')
  execute function count_key_change();
create trigger api_key_scope_counted after insert or update or delete or truncate on api_key_scope
  execute function count_key_change();
`;

/** The audit of keys. */
const AUDIT = `
create table key_audit (
  id bigint primary key generated always as identity,
  at timestamptz not null default clock_timestamp(),
  actor text not null,
  action text not null check (action in ('created', 'rotated', 'revoked', 'expiry-changed',
    'limits-changed', 'changed', 'deleted', 'first-used', 'denied-burst')),
  public_id text not null,
  before jsonb,
  after jsonb,
  reason text
);
comment on table key_audit is 'Audit of API keys: actions and actors. Rows are permanent.';
create index key_audit_key on key_audit (public_id, id);
create trigger key_audit_frozen before update or delete on key_audit
  for each row execute function refuse_change();
create trigger key_audit_no_truncate before truncate on key_audit execute function refuse_change();

-- The commands set both; a manual change is recorded with its account.
create function key_actor() returns text language sql stable as
  $$ select coalesce(nullif(current_setting('prices.actor', true), ''), session_user::text) $$;
create function key_reason() returns text language sql stable as
  $$ select nullif(current_setting('prices.reason', true), '') $$;
comment on function key_actor() is 'The actor of a key change: the setting prices.actor, otherwise the account.';
comment on function key_reason() is 'The reason of a key change: the setting prices.reason, or null.';

-- Written by triggers, so that manual changes are recorded as well. Digests never change, because
-- the audit does not show them: a rotation inserts a new key.
create function audit_key() returns trigger language plpgsql security definer
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
    if old.last_used_at is null and new.last_used_at is not null then
      insert into key_audit (actor, action, public_id, after)
        values (key_actor(), 'first-used', new.public_id,
          jsonb_build_object('last_used_at', new.last_used_at));
    end if;
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
comment on function audit_key() is 'Records a change of a key in the audit.';
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
comment on function audit_key_scope() is 'Records a change of a scope of a key in the audit.';
revoke execute on function audit_key_scope() from public;
create trigger api_key_scope_audit after insert or update or delete on api_key_scope
  for each row execute function audit_key_scope();

-- An attacker chooses the ids. Only ids of keys are recorded, each once an hour, so that the audit
-- grows with the keys and not with the guesses.
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
  'Records keys with bursts of rejected requests. The second array has the rejections in a minute by id.';
revoke execute on function note_denied from public;
`;

const USAGE = `
create unlogged table rate_usage (
  instance uuid not null,
  name text not null,
  taken bigint not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (instance, name)
);
comment on table rate_usage is
  'Rate limit counts of each running instance, read by the others. Unlogged, since they expire soon.';
create index rate_usage_updated on rate_usage (updated_at);
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [KEYS, AUDIT, USAGE]) await sql.raw(part).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    drop table rate_usage, api_key_scope, api_key, access_scope, key_audit;
    drop function note_denied(text[], integer[]), audit_key_scope(), audit_key(), key_reason(),
      key_actor(), count_key_change(), refuse_key_truncate();
  `)
    .execute(db);
}
