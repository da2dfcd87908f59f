import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type Kysely, sql } from 'kysely';
import type { Database } from '../schema.ts';
import { FOLDER, isAhead, migrationNames } from './migrations.ts';
import { asOnlyRunner, untilUnlocked } from './only-runner.ts';

const SCRAM_ITERATIONS = 4096;
const SALT_BYTES = 16;
const DIGEST_BYTES = 32;

/**
 * The SCRAM verifier of a password (RFC 5803). Sent in place of the password, it keeps the password
 * out of every statement and server log.
 * @param password of printable ASCII, which needs no normalisation
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(SALT_BYTES)): string {
  const salted = pbkdf2Sync(password, salt, SCRAM_ITERATIONS, DIGEST_BYTES, 'sha256');
  const keyFor = (name: string): Buffer => createHmac('sha256', salted).update(name).digest();
  const stored = createHash('sha256').update(keyFor('Client Key')).digest('base64');
  const server = keyFor('Server Key').toString('base64');
  return `SCRAM-SHA-256$${SCRAM_ITERATIONS}:${salt.toString('base64')}$${stored}:${server}`;
}

/** The accounts that log in; the owner of the tables does not. */
export const LOGINS = ['migrator', 'loader', 'usage', 'service', 'keys'] as const;
export type Login = (typeof LOGINS)[number];

/** What stands before the names of the accounts unless the operator says otherwise. */
export const ROLE_PREFIX = 'prices';

/** A wish about accounts that cannot be met. The message is one line for a terminal. */
class RoleError extends Error {
  override readonly name = 'RoleError';
  readonly exitCode = 2;
}

const FILE = new URL('../roles.sql', import.meta.url);
const NAMES = new RegExp(`\\b${ROLE_PREFIX}_(owner|${LOGINS.join('|')})\\b`, 'g');
const RIGHTS = '-- ==== Rights ====';

/** `service` → `prices_service`. */
export const roleName = (prefix: string, login: Login | 'owner'): string => `${prefix}_${login}`;

/**
 * The statements that make the accounts and give them their rights, for accounts named
 * `<prefix>_service` and so on.
 * @throws RoleError when the prefix cannot begin a name
 */
export async function rolesSql(prefix: string): Promise<string> {
  if (!/^[a-z][a-z0-9_]{0,39}$/.test(prefix)) {
    throw new RoleError('a prefix has up to 40 small letters, digits and _, a letter first');
  }
  return (await readFile(FILE, 'utf8')).replace(NAMES, `${prefix}_$1`);
}

/** @throws RoleError when PostgreSQL and its clients might not read the password alike */
function checkPassword(login: Login, password: string): void {
  if (!/^[ -~]{8,256}$/.test(password)) {
    throw new RoleError(
      `the password for ${login} must have 8 to 256 printable characters of ASCII`,
    );
  }
}

/** One transaction, with what a file of statements may not say itself. */
const inTransaction = (db: Kysely<Database>, text: string): Promise<unknown> =>
  untilUnlocked(db, () =>
    db.transaction().execute(async (trx) => {
      await sql`set local client_min_messages = warning`.execute(trx);
      await sql.raw(text).execute(trx);
    }),
  );

/**
 * Makes the accounts where they lack, brings their settings and rights to what `roles.sql` says,
 * and sets the passwords that are given. Doing it twice changes nothing more.
 * @throws RoleError for a prefix or password that cannot be used, and where a newer version knows
 * better who may do what
 */
export async function applyRoles(
  db: Kysely<Database>,
  prefix: string,
  passwords: ReadonlyMap<Login, string> = new Map(),
): Promise<void> {
  const text = await rolesSql(prefix);
  for (const [login, password] of passwords) checkPassword(login, password);
  const statements = [...passwords].map(
    ([login, password]) =>
      `alter role ${roleName(prefix, login)} password '${scramVerifier(password)}';`,
  );
  const names = await migrationNames(FOLDER);
  await asOnlyRunner(db, async (one) => {
    if (await isAhead(one, names)) {
      throw new RoleError('a newer version has migrated this database: let it make the accounts');
    }
    await inTransaction(one, [text, ...statements].join('\n'));
  });
}

/** The prefix of the accounts that this database was made for; null when it has none. */
async function prefixOf(db: Kysely<Database>): Promise<string | null> {
  const { rows } = await sql<{ prefix: string }>`
    select prefix from (
      select substring(pg_get_userbyid(relowner) from '^([a-z][a-z0-9_]*)_owner$') as prefix
      from pg_class where oid = to_regclass('public.market')) as owned
    where exists (select from pg_roles where rolname = prefix || '_service')`.execute(db);
  return rows[0]?.prefix ?? null;
}

/**
 * Gives the accounts their rights on what migrations made; without accounts there is nothing to
 * do. To be called by who runs alone.
 */
export async function renewRights(db: Kysely<Database>): Promise<void> {
  const prefix = await prefixOf(db);
  if (prefix === null) return;
  const text = await rolesSql(prefix);
  await inTransaction(db, text.slice(text.indexOf(RIGHTS)));
}

/** What the account of a session may do, as far as the service is concerned. */
interface Account {
  readonly name: string;
  /** What it may do beyond reading, in words; empty for an account made for the service. */
  readonly excess: readonly string[];
  /** Tables that it cannot read. */
  readonly unreadable: readonly string[];
}

/**
 * Looks at what the account of this session may do. The service reads and does nothing else, so
 * an error in it, or somebody who broke into it, must not be able to do more.
 */
export async function accountOf(db: Kysely<Database>): Promise<Account> {
  const { rows } = await sql<{ name: string; excess: string[]; unreadable: string[] }>`
    with me as (
      select * from pg_roles where rolname = current_user
    ), tables as (
      select oid, relname, relowner from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
    ), writable as (
      select count(*) as number from tables
      where has_table_privilege(oid, 'insert, update, delete, truncate, trigger')
        or has_any_column_privilege(oid, 'insert, update')
    )
    select rolname as name,
      case when rolsuper then array['is a superuser'] else array_remove(array[
        case when rolcreaterole or rolcreatedb or rolreplication or rolbypassrls
          then 'may make accounts or databases, replicate, or pass row security' end,
        case when exists (select from tables where pg_has_role(relowner, 'member'))
          then 'may act as the owner of the tables' end,
        case when writable.number > 0 then format('may write to %s tables', writable.number) end,
        case when has_schema_privilege('public', 'create')
            or has_database_privilege(current_database(), 'create, temporary')
          then 'may make schemas or tables' end,
        case when has_function_privilege(to_regprocedure('open_revision(text)'), 'execute')
          then 'may open revisions' end
      ], null) end as excess,
      array(select relname::text from tables
        where not has_table_privilege(oid, 'select') and relname <> 'kysely_migration_lock'
        order by relname) as unreadable
    from me, writable`.execute(db);
  const [account] = rows;
  if (!account) throw new Error('the session has no account');
  return account;
}
