import { type Kysely, type RawBuilder, sql } from 'kysely';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';
import type { Database } from '../schema.ts';

/** A lock was not acquired before the timeout. The message names the sessions that hold it. */
export class LockedOutError extends ExpectedError {
  override readonly name = 'LockedOutError';
  override readonly exitCode = EXIT.locked;
}

/** True for `lock_not_available`: a lock was not free for `lock_timeout`. */
export const isLockTimeout = (error: unknown): boolean =>
  (error as { code?: string } | null)?.code === '55P03';

/** Wait for a lock after which its holders are reported. */
export const REPORT_HOLDERS_MS = 2_000;

/** Matches the session that holds the write lock. */
export const WRITE_LOCK = sql<boolean>`
  relation = to_regclass('public.write_lock') and mode = 'ShareUpdateExclusiveLock'`;

/** Matches sessions that hold an advisory lock. */
export const advisoryLock = (key: string): RawBuilder<boolean> => sql<boolean>`
  locktype = 'advisory' and objsubid = 1 and classid = ${key}::bigint >> 32
    and objid = (${key}::bigint & 4294967295)`;

/** Matches sessions that hold a lock on a table of the project, or an advisory lock. */
export const ANY_LOCK = sql<boolean>`
  (locktype = 'advisory' or relation in (
    select oid from pg_class where relnamespace = 'public'::regnamespace))`;

/**
 * Describes other sessions that hold a lock in this database, by virtual transaction id: process,
 * account, application and, if this account may see it, the start of the transaction. Databases
 * that are copies of one template have equal numbers of tables.
 */
export async function lockHolders(
  db: Kysely<Database>,
  lock: RawBuilder<boolean>,
): Promise<Map<string, string>> {
  const { rows } = await sql<{ transaction: string; name: string }>`
    select distinct virtualtransaction as transaction, format('process %s (account %s, %s%s)', pid,
      usename, coalesce(nullif(application_name, ''), 'unnamed application'),
      to_char(coalesce(xact_start, state_change) at time zone 'UTC',
        '", since "YYYY-MM-DD"T"HH24:MI:SS"Z"')) as name
    from pg_locks join pg_stat_activity using (pid)
    where granted and pid <> pg_backend_pid() and ${lock}
      and database = (select oid from pg_database where datname = current_database())`.execute(db);
  return new Map(rows.map(({ transaction, name }) => [transaction, name]));
}

/** Describes the sessions that hold a lock, in one text. */
export async function holdersText(
  db: Kysely<Database>,
  lock: RawBuilder<boolean>,
): Promise<string> {
  const names = [...(await lockHolders(db, lock)).values()];
  return names.join(', ') || 'a session that has just ended';
}

/** `lock_timeout` of the session, in milliseconds; 0 for no limit. */
export async function lockTimeoutOf(db: Kysely<Database>): Promise<number> {
  const { rows } = await sql<{ ms: number }>`
    select setting::integer as ms from pg_settings where name = 'lock_timeout'`.execute(db);
  return rows[0]?.ms ?? 0;
}
