import { setTimeout as pause } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import { PROGRAM } from '../std/program.ts';
import { instantOf } from './instant.ts';
import type { Link } from './link/link.ts';
import { isSchemaCurrent, MIGRATION_LOCK_TABLE } from './migrate/migrations.ts';
import type { NewestRevision } from './newest-revision.ts';
import { ownTables, PRIVATE_TABLES } from './own-tables.ts';
import type { Reads } from './reads.ts';
import type { Database } from './schema.ts';

export interface DatabaseHealth {
  readonly database: 'ok' | 'unavailable';
  readonly schema: 'ok' | 'schema_outdated' | 'unknown';
  /** Slugs of the sources of exchange rates; null if unknown. */
  readonly rateSources: readonly string[] | null;
  /** Newest day with a rate, `YYYY-MM-DD`, by slug of the source; without sources of no rate. */
  readonly rateDays: ReadonlyMap<string, string>;
  /** Newest publication time by slug of the market, RFC 3339. */
  readonly publishedAt: ReadonlyMap<string, string>;
  readonly newest: NewestRevision | null;
}

/** The health of the database, read in the background. */
export interface Health {
  /** Never throws. Waits up to two seconds for the first read. */
  current(): Promise<DatabaseHealth>;
  /** The same without waiting; null before the first read. */
  cached(): DatabaseHealth | null;
  /** Reads the health again. */
  refresh(): Promise<void>;
}

const FIRST_READ_TIMEOUT_MS = 2_000;

const DOWN: DatabaseHealth = {
  database: 'unavailable',
  schema: 'unknown',
  rateSources: null,
  rateDays: new Map(),
  publishedAt: new Map(),
  newest: null,
};
const OUTDATED: DatabaseHealth = { ...DOWN, database: 'ok', schema: 'schema_outdated' };

/** The slugs of all sources of exchange rates. @throws the errors of the database */
export async function rateSourceSlugs(db: Kysely<Database>): Promise<readonly string[]> {
  const rows = await db.selectFrom('fx_source').select('slug').orderBy('slug').execute();
  return rows.map(({ slug }) => slug);
}

/** Newest day by slug, for sources with rates. Reads the end of the index of each currency. */
async function newestRateDays(db: Kysely<Database>): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<{ slug: string; day: string | null }>`
    select s.slug, max(newest.date) as day
    from fx_source s cross join currency c
      left join lateral (select r.date from fx_rate r
        where r.source = s.slug and r.currency_id = c.id order by r.date desc limit 1) as newest
        on true
    group by s.slug`.execute(db);
  return new Map(rows.flatMap(({ slug, day }) => (day === null ? [] : [[slug, day]])));
}

/** The state of an empty installation, and what the operator has to do. */
export const NO_PRICES = `No price has a value yet: load a file by ${PROGRAM} load`;

/** True if any price has a value. */
export async function hasPoints(db: Kysely<Database>): Promise<boolean> {
  return (await db.selectFrom('series').select('date').limit(1).executeTakeFirst()) !== undefined;
}

/** Newest publication time by slug, for markets with points. */
async function publications(db: Kysely<Database>): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<{ slug: string; at: string | null }>`
    select market.slug, max((select published_at from series where price_id = price.id
        order by date desc limit 1)) as at
    from price join market on market.id = price.market_id group by market.slug`.execute(db);
  return new Map(rows.flatMap(({ slug, at }) => (at === null ? [] : [[slug, instantOf(at)]])));
}

/** Creates a health whose owner calls `refresh` after each successful check. */
export function healthOf(reads: Reads, link: Link): Health {
  let last: DatabaseHealth | null = null;
  let reading: Promise<void> | null = null;

  const read = async (): Promise<DatabaseHealth> => {
    const db = reads.db();
    if (!(await isSchemaCurrent(db))) return OUTDATED;
    const newest = await link.newestRevision();
    // The same object means that nothing was committed since.
    if (last !== null && last.newest === newest) return last;
    const [rateSources, rateDays, publishedAt] = await Promise.all([
      rateSourceSlugs(db),
      newestRateDays(db),
      publications(db),
    ]);
    return { database: 'ok', schema: 'ok', rateSources, rateDays, publishedAt, newest };
  };
  const cached = (): DatabaseHealth | null => (link.state === 'up' ? last : DOWN);
  return {
    cached,
    current: async () => {
      link.start();
      if (last === null) {
        const timeout = pause(FIRST_READ_TIMEOUT_MS, undefined, { ref: false });
        await Promise.race([link.firstCheck.then(() => reading), timeout]);
      }
      return cached() ?? DOWN;
    },
    refresh: () => {
      reading ??= read()
        .then((found) => {
          last = found;
        })
        // The last health stays valid; the link reports whether the database is up.
        .catch(() => {})
        .finally(() => {
          reading = null;
        });
      return reading;
    },
  };
}

/** The rights of the account of a session, compared with those that the service needs. */
interface SessionAccount {
  readonly name: string;
  /** Rights beyond reading, in words; empty for the account of the service. */
  readonly excess: readonly string[];
  /** Tables that it cannot read. */
  readonly unreadable: readonly string[];
}

/** Tables that the service needs no right to read. */
const UNREAD = [MIGRATION_LOCK_TABLE, ...PRIVATE_TABLES];

/**
 * Reads the rights of the account of this session. The service only reads data, so neither a bug
 * nor an attacker should be able to do more through its account.
 */
export async function accountOf(db: Kysely<Database>): Promise<SessionAccount> {
  const names = await ownTables();
  const { rows } = await sql<{ name: string; excess: string[]; unreadable: string[] }>`
    with me as (
      select * from pg_roles where rolname = current_user
    ), tables as (
      select oid, relname, relowner from pg_class
      where relnamespace = 'public'::regnamespace and relname = any(${names}::text[])
    ), writable as (
      select count(*) as number from tables
      where has_table_privilege(oid, 'insert, update, delete, truncate, trigger')
        or has_any_column_privilege(oid, 'insert, update')
    )
    select rolname as name,
      case when rolsuper then array['is a superuser'] else array_remove(array[
        case when rolcreaterole or rolcreatedb or rolreplication or rolbypassrls
          then 'may create accounts or databases, replicate, or bypass row security' end,
        case when exists (select from tables where pg_has_role(relowner, 'member'))
          then 'may act as the owner of the tables' end,
        case when writable.number > 0 then format('may write to %s tables', writable.number) end,
        case when has_schema_privilege('public', 'create')
            or has_database_privilege(current_database(), 'create, temporary')
          then 'may create schemas or tables' end,
        case when has_function_privilege(to_regprocedure('open_revision(text)'), 'execute')
          then 'may open revisions' end
      ], null) end as excess,
      array(select relname::text from tables
        where not has_table_privilege(oid, 'select') and relname <> all(${UNREAD}::text[])
        order by relname) as unreadable
    from me, writable`.execute(db);
  const [account] = rows;
  if (!account) throw new Error('the session has no account');
  return account;
}
