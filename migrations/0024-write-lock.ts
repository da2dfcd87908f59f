import { type Kysely, sql } from 'kysely';

/*
 * Every account may take any advisory lock. These locks need a right on a table. The mode matters:
 * PREPARE takes up to ROW EXCLUSIVE without a right and holds it to the end of the transaction, so
 * a mode that conflicts with ROW EXCLUSIVE could be blocked by any account.
 */
const TABLES = `
create table write_lock ();
comment on table write_lock is
  'Has no rows. The transaction that writes data locks it in SHARE UPDATE EXCLUSIVE mode, which needs the right to update it.';
create table seal_lock ();
comment on table seal_lock is
  'Has no rows. Locked in SHARE UPDATE EXCLUSIVE mode from the moment that a revision gets its time until it is visible.';
`;

const PATH = 'set search_path = pg_catalog, public, pg_temp';
const DEFINER = `security definer ${PATH}`;

/** The lock of writers, and the seal that waits for it; both as before, with another lock. */
const functionsWith = (writeLock: string, checkLock: string, sealLock: string): string => `
create or replace function lock_revisions() returns void ${writeLock};

create or replace function open_revision(why text) returns bigint language plpgsql
  ${DEFINER} as $$
declare
  opened bigint := current_revision();
begin
  if opened is not null then
    return opened;
  end if;${checkLock}
  perform lock_revisions();
  select coalesce(max(number), 0) + 1 into opened from revision;
  insert into revision (number, committed_at, reason)
    values (opened, greatest(clock_timestamp(), (select max(committed_at) + interval '1 microsecond' from revision)), why);
  perform set_config('prices.revision', opened::text, true);
  return opened;
end $$;

create or replace function seal_revision() returns trigger language plpgsql
  ${DEFINER} as $$
begin
  if not exists (select from revision_scope where revision = new.number) then
    raise exception 'revision % changed nothing', new.number
      using hint = 'Open a revision only when there is something to write.';
  end if;
  perform number_changes(new.number);
  perform set_config('prices.sealed', new.number::text, true);
  -- Heard by every service that listens, once the commit can be seen.
  perform pg_notify('revision', new.number::text);
  -- Held until the revision can be seen: whoever asks for a moment waits for those before it.
  ${sealLock};
  update revision
    set committed_at = greatest(
      clock_timestamp(),
      (select committed_at + interval '1 microsecond' from revision where number = new.number - 1))
    where number = new.number;
  return null;
end $$;

revoke execute on function open_revision(text), seal_revision() from public;
`;

const WRITE_LOCK = `language plpgsql volatile ${PATH} as $$
begin
  lock table write_lock in share update exclusive mode;
end $$`;

/*
 * A load of the version before that waited while this migration ran holds the advisory lock alone.
 * Another load may have committed after it compared: it must not write.
 */
const CHECK_LOCK = `
  if exists (select from pg_locks
      where pid = pg_backend_pid() and locktype = 'advisory' and granted
        and classid = 1 and objid = 2835574206 and objsubid = 1)
    and not exists (select from pg_locks
      where pid = pg_backend_pid() and relation = 'write_lock'::regclass and granted) then
    raise serialization_failure
      using message = 'the schema was migrated while this load waited', hint = 'Run it again.';
  end if;`;

const SEAL_LOCK = 'lock table seal_lock in share update exclusive mode';

/*
 * A reader looks at the lock and never takes it, so no reader can delay a commit. A commit takes
 * moments: the wait ends after lock_timeout, so that a commit that hangs does not hold readers.
 * Volatile, so that each statement has a snapshot of its own, taken after the wait.
 */
const AS_OF = `
create or replace function revision_as_of(moment timestamptz) returns bigint
  language plpgsql volatile ${PATH} set lock_timeout = '250ms' as $$
declare
  newest timestamptz;
  tries integer := 500 * extract(epoch from current_setting('lock_timeout')::interval);
begin
  select max(committed_at) into newest from revision;
  -- Later revisions get later times, so a moment before the newest one is settled.
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
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  // No transaction that holds the advisory lock alone is under way when this commits.
  await sql`select lock_revisions()`.execute(db);
  await sql.raw(TABLES).execute(db);
  await sql.raw(functionsWith(WRITE_LOCK, CHECK_LOCK, SEAL_LOCK)).execute(db);
  await sql.raw(AS_OF).execute(db);
}

const ADVISORY = 'language sql volatile as $$ select pg_advisory_xact_lock(7130541502) $$';

const AS_OF_BEFORE = `
create or replace function revision_as_of(moment timestamptz) returns bigint
  language plpgsql volatile set lock_timeout = '250ms' ${PATH} as $$
declare
  newest timestamptz;
begin
  select max(committed_at) into newest from revision;
  -- Later revisions get later times, so a moment before the newest one is settled.
  if newest is null or moment > newest then
    if moment >= clock_timestamp() then
      return null;
    end if;
    perform pg_advisory_xact_lock_shared(7130541503);
  end if;
  return coalesce(
    (select number from revision where committed_at <= moment order by committed_at desc limit 1), 0);
end $$;
`;

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`select lock_revisions()`.execute(db);
  await sql
    .raw(functionsWith(ADVISORY, '', 'perform pg_advisory_xact_lock(7130541503)'))
    .execute(db);
  await sql`alter function lock_revisions() reset search_path`.execute(db);
  await sql.raw(AS_OF_BEFORE).execute(db);
  await sql`drop table write_lock, seal_lock`.execute(db);
}
