import { type Kysely, sql } from 'kysely';

/** Revisions: the commits that change data, their numbers, times, ids and locks. */
const SCHEMA = `
create function new_commit_id() returns text language sql volatile parallel safe
begin atomic
  select substr(lower(translate(encode(uuid_send(gen_random_uuid()), 'base64'), '+/', '01')), 1, 6);
end;
comment on function new_commit_id() is 'Six random letters and digits that identify a commit.';

create table service (
  id smallint primary key default 1 check (id = 1),
  epoch text not null check (epoch ~ '^[0-9a-z]{4,12}$'),
  keys_version bigint not null default 0,
  keys_change_id text not null default new_commit_id()
);
comment on table service is
  'One row: the epoch, which is the prefix of every revision in the wire format, and the version of the API keys.';
comment on column service.keys_version is
  'Increases with every change of an API key or its scopes, in the same transaction.';
comment on column service.keys_change_id is
  'Identifies the last change of an API key: keys_version can repeat after a failover, this cannot.';
insert into service (epoch) values (substr(md5(gen_random_uuid()::text), 1, 6));

create table market (
  id smallint primary key generated always as identity,
  slug text not null unique check (slug ~ '^[a-z]+(-[a-z]+)*$'),
  name text not null
);
comment on table market is 'The markets of the catalog, written by the migrate command.';

-- The locks are empty tables, because every account can take any advisory lock, but locking a table
-- needs a right. PREPARE takes up to ROW EXCLUSIVE without a right until the end of the transaction,
-- so the mode of the locks must not conflict with ROW EXCLUSIVE: any account could block it.
create table write_lock ();
comment on table write_lock is
  'Has no rows. The transaction that writes data locks it in SHARE UPDATE EXCLUSIVE mode, which needs the right to update it.';
create table seal_lock ();
comment on table seal_lock is
  'Has no rows. Locked in SHARE UPDATE EXCLUSIVE mode from the time that a revision gets its commit time until it is visible.';

create table revision (
  number bigint primary key check (number > 0),
  committed_at timestamptz not null unique,
  reason text not null,
  opened_by xid8 not null default pg_current_xact_id(),
  commit_id text not null default new_commit_id()
    constraint revision_has_commit_id check (commit_id ~ '^[0-9a-z]{6}$')
);
comment on table revision is
  'One row for each commit that changed data, with consecutive numbers and the commit time.';
comment on column revision.commit_id is
  'Identifies the commit: its number can repeat after a failover, this cannot.';

create table revision_scope (
  scope text not null check (scope ~ '^(fx:[A-Z0-9]+|[a-z]+(-[a-z]+)*)$'),
  revision bigint not null references revision (number),
  primary key (scope, revision)
);
comment on table revision_scope is
  'Scopes that each revision changed: the slug of a market, reference, or fx:<source>. The greatest revision of a scope is its newest.';
create index revision_scope_revision on revision_scope (revision);

create function current_revision() returns bigint language sql stable parallel safe as
  $$ select nullif(current_setting('prices.revision', true), '')::bigint $$;
comment on function current_revision() is 'The revision that this transaction has opened, or null.';

create function needed_revision() returns bigint language plpgsql stable parallel safe as $$
begin
  if current_revision() is null then
    raise exception 'a change of series needs a revision of its own'
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  return current_revision();
end $$;
comment on function needed_revision() is
  'The revision that this transaction has opened. Fails with a hint if it has opened none.';

create function lock_revisions() returns void language plpgsql volatile
  set search_path = pg_catalog, public, pg_temp as $$
begin
  lock table write_lock in share update exclusive mode;
end $$;
comment on function lock_revisions() is
  'Acquires the write lock until the end of the transaction.';

create function open_revision(why text) returns bigint language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  opened bigint := current_revision();
begin
  if opened is not null then
    return opened;
  end if;
  perform lock_revisions();
  select coalesce(max(number), 0) + 1 into opened from revision;
  insert into revision (number, committed_at, reason)
    values (opened, greatest(clock_timestamp(), (select max(committed_at) + interval '1 microsecond' from revision)), why);
  perform set_config('prices.revision', opened::text, true);
  return opened;
end $$;
comment on function open_revision(text) is
  'Opens the next revision in this transaction. Every change of data needs one.';
revoke execute on function open_revision(text) from public;

-- The setting alone could be forged; the row records which transaction opened the revision.
create function check_revision() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
begin
  if current_revision() is not null and not exists (select from revision
      where number = current_revision() and opened_by = pg_current_xact_id_if_assigned()) then
    raise exception 'revision % was not opened by this transaction', current_revision()
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  return null;
end $$;
comment on function check_revision() is 'Rejects a revision that another transaction has opened.';

create function stamp_revision() returns trigger language plpgsql as $$
begin
  if current_revision() is null then
    raise exception 'a change of % needs a revision of its own', tg_table_name
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  new.revision := current_revision();
  return new;
end $$;
comment on function stamp_revision() is 'Sets the open revision in updated rows.';

create function refuse_without_revision() returns trigger language plpgsql as $$
begin
  raise exception 'a change of % needs a revision of its own', tg_table_name
    using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
end $$;
comment on function refuse_without_revision() is 'Rejects a change outside a revision.';

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% of % is refused: what was published is kept for ever', lower(tg_op), tg_table_name;
end $$;
comment on function refuse_change() is 'Rejects changes of permanent rows.';

create function refuse_after_seal() returns void language plpgsql as $$
begin
  if current_setting('prices.sealed', true) = current_revision()::text then
    raise exception 'revision % is sealed', current_revision()
      using hint = 'Leave its constraints deferred: it is sealed once, by the commit.';
  end if;
end $$;
comment on function refuse_after_seal() is 'Rejects a change of a revision that is already sealed.';

create trigger revision_frozen before update or delete on revision for each row
  when (pg_trigger_depth() = 0) execute function refuse_change();
create trigger revision_no_truncate before truncate on revision execute function refuse_change();
create trigger revision_scope_frozen before update or delete on revision_scope
  for each row execute function refuse_change();
create trigger revision_scope_by_triggers before insert on revision_scope for each statement
  when (pg_trigger_depth() = 0) execute function refuse_change();
create trigger revision_scope_no_truncate before truncate on revision_scope
  execute function refuse_change();

-- A reader checks the lock without taking it, so it cannot delay a commit. The wait ends after
-- lock_timeout, so that a commit that hangs does not block readers. Volatile, so that each statement
-- has its own snapshot, taken after the wait.
create function revision_as_of(moment timestamptz) returns bigint
  language plpgsql volatile set search_path = pg_catalog, public, pg_temp
  set lock_timeout = '250ms' as $$
declare
  newest timestamptz;
  tries integer := 500 * extract(epoch from current_setting('lock_timeout')::interval);
begin
  select max(committed_at) into newest from revision;
  -- Commit times increase, so an instant before the newest one is settled.
  if newest is null or moment > newest then
    if moment >= clock_timestamp() then
      return null;
    end if;
    while exists (select from pg_locks
        where relation = 'seal_lock'::regclass and mode = 'ShareUpdateExclusiveLock' and granted
          and database = (select oid from pg_database where datname = current_database())) loop
      if tries = 0 then
        raise lock_not_available using message = 'a commit before this moment does not end';
      end if;
      tries := tries - 1;
      perform pg_sleep(0.002);
    end loop;
  end if;
  return coalesce(
    (select number from revision where committed_at <= moment order by committed_at desc limit 1), 0);
end $$;
comment on function revision_as_of(timestamptz) is
  'The last revision committed at or before an instant, 0 before the first, null for the future. The result never changes.';

create function revision_text(at bigint) returns text language sql stable parallel safe
begin atomic
  select s.epoch || coalesce((select r.commit_id from revision r where r.number = at), '')
    || '.' || at
  from service s;
end;
comment on function revision_text(bigint) is 'A revision in the wire format.';

-- Volatile, so that it sees commits for which the statement has waited.
create function commit_id_of(at bigint) returns text language sql volatile parallel safe
begin atomic
  select commit_id from revision where number = at;
end;
comment on function commit_id_of(bigint) is 'The commit id of a revision; null if it does not exist.';

create function require_commit(at bigint, id text) returns boolean
  language plpgsql stable parallel safe as $$
begin
  if id is null or exists (select from public.revision r where r.number = at and r.commit_id = id)
  then
    return true;
  end if;
  raise exception 'revision % is not the commit %', at, id
    using errcode = 'object_not_in_prerequisite_state',
      hint = 'The server lacks it, or took its number again.';
end $$;
comment on function require_commit(bigint, text) is
  'True if a revision has this commit id, otherwise an error. A null id matches any commit.';
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(SCHEMA).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    drop function require_commit(bigint, text), commit_id_of(bigint), revision_text(bigint),
      revision_as_of(timestamptz);
    drop table revision_scope, revision, seal_lock, write_lock, market, service;
    drop function refuse_after_seal(), refuse_change(), refuse_without_revision(),
      stamp_revision(), check_revision(), open_revision(text), lock_revisions(),
      needed_revision(), current_revision(), new_commit_id();
  `)
    .execute(db);
}
