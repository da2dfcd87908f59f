import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type Kysely, sql } from 'kysely';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';
import type { Database } from '../schema.ts';
import { retryLocked, withMigrationLock } from './migration-lock.ts';
import { isAhead } from './migrations.ts';

const SCRAM_ITERATIONS = 4096;
const SALT_BYTES = 16;
const DIGEST_BYTES = 32;

/**
 * The SCRAM verifier of a password (RFC 5803). Sending it instead of the password keeps the
 * password out of statements and server logs.
 * @param password printable ASCII, which needs no normalisation
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(SALT_BYTES)): string {
  const salted = pbkdf2Sync(password, salt, SCRAM_ITERATIONS, DIGEST_BYTES, 'sha256');
  const keyFor = (name: string): Buffer => createHmac('sha256', salted).update(name).digest();
  const stored = createHash('sha256').update(keyFor('Client Key')).digest('base64');
  const server = keyFor('Server Key').toString('base64');
  return `SCRAM-SHA-256$${SCRAM_ITERATIONS}:${salt.toString('base64')}$${stored}:${server}`;
}

/** The accounts that can log in. The owner of the tables cannot. */
export const LOGINS = [
  'migrator',
  'loader',
  'usage',
  'service',
  'keys',
  'reader',
  'webhooks',
] as const;
export type Login = (typeof LOGINS)[number];

/** Default prefix of the account names. */
export const ROLE_PREFIX = 'prices';

/** A change of accounts is not possible. The message is one line for a terminal. */
class RoleError extends ExpectedError {
  override readonly name = 'RoleError';
  override readonly exitCode = EXIT.usage;
}

const ROLES_FILE = new URL('../roles.sql', import.meta.url);
const ACCOUNT_NAMES = new RegExp(`\\b${ROLE_PREFIX}_(owner|${LOGINS.join('|')})\\b`, 'g');
const RIGHTS_HEADING = '-- ==== Rights ====';

/** `service` → `prices_service`. */
export const roleName = (prefix: string, login: Login | 'owner'): string => `${prefix}_${login}`;

/**
 * The statements that create the accounts `<prefix>_service` and so on, and grant their rights.
 * @throws RoleError for an invalid prefix
 */
export async function rolesSql(prefix: string): Promise<string> {
  if (!/^[a-z][a-z0-9_]{0,39}$/.test(prefix)) {
    throw new RoleError('a prefix has up to 40 lower-case letters, digits and _, a letter first');
  }
  return (await readFile(ROLES_FILE, 'utf8')).replace(ACCOUNT_NAMES, `${prefix}_$1`);
}

/** A right on a table that `roles.sql` grants. */
interface NeededRight {
  readonly account: string;
  /** `select`, `insert`, `update` or `delete`. */
  readonly privilege: string;
  /** Columns of the right; empty for the whole table. */
  readonly columns: readonly string[];
  readonly table: string;
}

/** The rights on tables in the list of `roles.sql`, for accounts with a prefix. */
export async function neededRights(prefix: string): Promise<NeededRight[]> {
  const text = await rolesSql(prefix);
  return [...text.matchAll(/^ +\('(\w+)', '([^']+)', '(\w+)'\),?$/gm)].flatMap(
    ([, account = '', rights = '', table = '']) =>
      [...rights.matchAll(/(\w+)(?: \(([^)]+)\))?(?:, |$)/g)].map(
        ([, privilege = '', columns]) => ({
          account,
          privilege,
          columns: columns?.split(', ') ?? [],
          table,
        }),
      ),
  );
}

/** @throws RoleError for a password that PostgreSQL and its clients might normalise differently */
function checkPassword(login: Login, password: string): void {
  if (!/^[ -~]{8,256}$/.test(password)) {
    throw new RoleError(
      `the password for ${login} must have 8 to 256 printable characters of ASCII`,
    );
  }
}

/** Runs the text of a file in one transaction. */
const inTransaction = (db: Kysely<Database>, text: string): Promise<unknown> =>
  retryLocked(db, () =>
    db.transaction().execute(async (trx) => {
      await sql`set local client_min_messages = warning`.execute(trx);
      await sql.raw(text).execute(trx);
    }),
  );

/**
 * Creates missing accounts, applies the settings and rights of `roles.sql`, and sets the given
 * passwords. Idempotent.
 * @throws RoleError for an invalid prefix or password, or a database that a newer version migrated
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
  await withMigrationLock(db, async (session) => {
    if (await isAhead(session)) {
      throw new RoleError('a newer version has migrated this database: run its db roles instead');
    }
    await inTransaction(session, [text, ...statements].join('\n'));
  });
}

/** The prefix of the accounts of this database; null if it has none. */
async function prefixOf(db: Kysely<Database>): Promise<string | null> {
  const { rows } = await sql<{ prefix: string }>`
    select prefix from (
      select substring(pg_get_userbyid(relowner) from '^([a-z][a-z0-9_]*)_owner$') as prefix
      from pg_class where oid = to_regclass('public.market')) as owned
    where exists (select from pg_roles where rolname = prefix || '_service')`.execute(db);
  return rows[0]?.prefix ?? null;
}

/**
 * Grants the accounts their rights on new tables and functions, if the database has accounts. The
 * advisory lock of migrations must be held.
 */
export async function grantRights(db: Kysely<Database>): Promise<void> {
  const prefix = await prefixOf(db);
  if (prefix === null) return;
  const text = await rolesSql(prefix);
  await inTransaction(db, text.slice(text.indexOf(RIGHTS_HEADING)));
}
