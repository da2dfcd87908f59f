import { type Kysely, sql } from 'kysely';
import { Migrator } from 'kysely/migration';
import { MARKETS } from '../../catalog/markets.ts';
import { ALL_MARKETS, scopeOf } from '../../catalog/scopes.ts';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import type { Database } from '../schema.ts';
import {
  type LockWaitOptions,
  retryLocked,
  setTimeouts,
  withMigrationLock,
} from './migration-lock.ts';
import {
  changedSince,
  createFileTable,
  FOLDER,
  type MigrationFile,
  migrationRuns,
  readMigrations,
  recordFiles,
  rejectDrift,
  rejectUnreleased,
} from './migrations.ts';
import { grantRights } from './roles.ts';

/*
 * Migrations. `migrations.ts` reads the files and what has run, `migration-lock.ts` takes locks
 * without blocking readers, and `roles.ts` creates the accounts.
 */

/** Inserts missing markets and scopes of the catalog. Never removes one. */
async function writeCatalog(db: Kysely<Database>): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await trx
      .insertInto('market')
      .values(MARKETS.map(({ slug, name }) => ({ slug, name })))
      .onConflict((conflict) => conflict.column('slug').doNothing())
      .execute();
    const markets = await trx.selectFrom('market').select(['id', 'slug']).execute();
    const idOf = new Map(markets.map((each) => [each.slug, each.id]));
    await trx
      .insertInto('access_scope')
      .values([
        { scope: ALL_MARKETS, market_id: null },
        ...MARKETS.map(({ slug }) => ({
          scope: scopeOf(slug),
          market_id: idOf.get(slug) ?? null,
        })),
      ])
      .onConflict((conflict) => conflict.column('scope').doNothing())
      .execute();
  });
}

/** Lock timeout outside a transaction, where the statement blocks no readers. */
const CONCURRENT_LOCK_TIMEOUT_MS = 60_000;

interface MigrateOptions extends LockWaitOptions {
  readonly folder?: URL;
  /** Name of the last migration to run. */
  readonly until?: string;
}

/** The status of one migration in a database. */
export interface MigrationStatus {
  readonly name: string;
  /** RFC 3339; null if it is pending. */
  readonly executedAt: string | null;
  /** `changed`: the file has changed since it ran. `unknown`: a newer version ran it. */
  readonly state: 'ran' | 'pending' | 'changed' | 'unknown';
}

/** All migrations of this version, and those that a newer version ran, by name. */
export async function migrationStatus(
  db: Kysely<Database>,
  { folder = FOLDER }: MigrateOptions = {},
): Promise<MigrationStatus[]> {
  const [files, runs] = [await readMigrations(folder), await migrationRuns(db)];
  const changed = new Set(changedSince(runs, files));
  const known = new Set(files.map(({ name }) => name));
  const done = new Set(runs.map(({ name }) => name));
  const ran = runs.map((run): MigrationStatus => {
    const state = !known.has(run.name) ? 'unknown' : changed.has(run) ? 'changed' : 'ran';
    return { name: run.name, executedAt: run.executedAt, state };
  });
  const pending = files
    .filter(({ name }) => !done.has(name))
    .map(({ name }): MigrationStatus => ({ name, executedAt: null, state: 'pending' }));
  return [...ran, ...pending].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Kysely's migrator. Each migration also records its file, in the same transaction. */
function migratorOf(session: Kysely<Database>, files: readonly MigrationFile[]): Migrator {
  const migrations = files.map((file) => {
    const up = async (trx: Kysely<unknown>): Promise<void> => {
      if (file.transaction) await setTimeouts(trx, undefined, true);
      await file.up(trx);
      await recordFiles(trx, [file]);
    };
    return [file.name, { up }] as const;
  });
  return new Migrator({
    db: session,
    provider: { getMigrations: async () => Object.fromEntries(migrations) },
  });
}

/** Runs one migration, in its own transaction unless its file exports `transaction = false`. */
async function runMigration(
  session: Kysely<Database>,
  files: readonly MigrationFile[],
  next: MigrationFile,
) {
  const migrator = migratorOf(session, files);
  if (!next.transaction) await setTimeouts(session, CONCURRENT_LOCK_TIMEOUT_MS);
  const { error } = await migrator.migrateUp({ disableTransactions: !next.transaction });
  if (!next.transaction) await setTimeouts(session);
  if (error) throw error;
}

/** The migration that makes the schema `published`. */
const MAKES_SCHEMA = '0014-published';

/** The account of a migration lacks a right. The message is one line for a terminal. */
class MissingRightError extends ExpectedError {
  override readonly name = 'MissingRightError';
  override readonly exitCode = EXIT.failed;
}

/**
 * Checks before the first migration that the account may make the schema: those of earlier versions
 * may not, and a run that ends halfway would leave a schema of neither version.
 * @throws MissingRightError
 */
async function requireSchemaRight(
  session: Kysely<Database>,
  wanted: readonly MigrationFile[],
): Promise<void> {
  if (!wanted.some(({ name }) => name === MAKES_SCHEMA)) return;
  const { rows } = await sql<{ may: boolean }>`
    select to_regnamespace('published') is not null
      or has_database_privilege(current_database(), 'create') as may`.execute(session);
  if (rows[0]?.may === true) return;
  throw new MissingRightError(
    'this account may not create the schema published; nothing was changed: run ' +
      `"${PROGRAM} db roles" of this version first, as the administrator of the database`,
  );
}

/** A new database cannot hold every text. */
class EncodingError extends ExpectedError {
  override readonly name = 'EncodingError';
  override readonly exitCode = EXIT.usage;
}

/**
 * Requires UTF-8, because names are Chinese too. Servers that were made without a locale have
 * SQL_ASCII.
 * @throws EncodingError
 */
async function requireUtf8(db: Kysely<Database>): Promise<void> {
  const { rows } = await sql<{ encoding: string }>`
    select current_setting('server_encoding') as encoding`.execute(db);
  const encoding = rows[0]?.encoding ?? '';
  if (encoding === 'UTF8') return;
  throw new EncodingError(
    `DATABASE_URL: the database has the encoding ${encoding}, and needs UTF8; nothing was ` +
      'changed: make it again by createdb --template=template0 --encoding=UTF8 <name>',
  );
}

/**
 * Runs the pending migrations, one transaction each, and renews the rights of the accounts. Does
 * not block readers: it waits for a table lock only briefly, and retries. An interrupted run is
 * completed by the next one. A database that a newer version has migrated is not changed.
 * @returns the names of the migrations that it ran
 * @throws MigrationDriftError if a file has changed, LockedOutError if a table stays locked,
 *   EncodingError for a new database, MissingRightError before the first migration if the account
 *   may not make the schema of one
 */
export async function migrateUp(
  db: Kysely<Database>,
  { folder = FOLDER, until, ...waitOptions }: MigrateOptions = {},
): Promise<string[]> {
  const files = await readMigrations(folder);
  const { rows } = await sql<{ isNew: boolean }>`
    select to_regclass('public.kysely_migration') is null as "isNew"`.execute(db);
  if (rows[0]?.isNew) await requireUtf8(db);
  return withMigrationLock(
    db,
    async (session) => {
      await retryLocked(session, () => createFileTable(session), waitOptions);
      const runs = await migrationRuns(session);
      rejectDrift(runs, files);
      rejectUnreleased(runs, files);
      const done = new Set(runs.map(({ name }) => name));
      await recordFiles(
        session,
        files.filter(({ name }) => done.has(name)),
      );
      const pending = files.filter(({ name }) => !done.has(name));
      // A newer version also maintains the markets and rights.
      if (pending.length === 0 && done.size > files.length) return [];
      const wanted = pending.filter(({ name }) => until === undefined || name <= until);
      await requireSchemaRight(session, wanted);
      for (const next of wanted)
        await retryLocked(session, () => runMigration(session, files, next), waitOptions);
      await writeCatalog(session);
      await grantRights(session);
      return wanted.map(({ name }) => name);
    },
    waitOptions,
  );
}
