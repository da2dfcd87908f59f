import { type Kysely, sql } from 'kysely';
import { Migrator } from 'kysely/migration';
import { MARKETS } from '../../catalog/markets.ts';
import { ALL_MARKETS, scopeOf } from '../../catalog/scopes.ts';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';
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
  deleteFile,
  FOLDER,
  type MigrationFile,
  migrationRuns,
  readMigrations,
  recordFiles,
  rejectDrift,
  rejectUnreleased,
} from './migrations.ts';
import { grantRights } from './roles.ts';

/** Rolling back a migration would lose data. Nothing was changed. */
class DataLossError extends ExpectedError {
  override readonly name = 'DataLossError';
  override readonly exitCode = EXIT.refused;
}

/** Tables that the migration runner writes. */
const RUNNER_TABLES = ['kysely_migration', 'kysely_migration_lock', 'migration_file'];
const CATALOG_TABLES = ['service', 'market', 'access_scope'];

/** The columns of all tables with rows, as `table.column`. */
async function filledColumns(trx: Kysely<unknown>): Promise<Set<string>> {
  const { rows: columns } = await sql<{ table: string; column: string }>`
    select c.relname::text as "table", a.attname::text as "column"
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
      and a.attnum > 0 and not a.attisdropped
      and c.relname <> all(${[...RUNNER_TABLES, ...CATALOG_TABLES]})
    order by c.relname, a.attnum`.execute(trx);
  const filled = new Set<string>();
  for (const table of new Set(columns.map((each) => each.table))) {
    const { rows } = await sql`select from ${sql.table(table)} limit 1`.execute(trx);
    if (rows.length === 0) continue;
    for (const each of columns) {
      if (each.table === table) filled.add(`${table}.${each.column}`);
    }
  }
  return filled;
}

/**
 * Rolls back a migration in the given transaction, and fails if tables with rows, or their columns,
 * are missing afterwards.
 * @throws DataLossError with their names
 */
async function withoutLoss(
  trx: Kysely<unknown>,
  name: string,
  rollBack: () => Promise<void>,
): Promise<void> {
  const before = await filledColumns(trx);
  await rollBack();
  const after = await filledColumns(trx);
  const lost = [...before].filter((each) => !after.has(each));
  if (lost.length === 0) return;
  const shown = lost.slice(0, 3).join(', ');
  const more = lost.length > 3 ? ` and ${lost.length - 3} more columns` : '';
  throw new DataLossError(
    `rolling back ${name} would lose ${shown}${more}; nothing was changed. An older version of ` +
      'the service runs on this schema as it is',
  );
}

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

/** Kysely's migrator. Each step also records its file, in the same transaction. */
function migratorOf(
  session: Kysely<Database>,
  files: readonly MigrationFile[],
  { loseData }: { readonly loseData: boolean },
): Migrator {
  const migrations = files.map((file) => {
    const up = async (trx: Kysely<unknown>): Promise<void> => {
      if (file.transaction) await setTimeouts(trx, undefined, true);
      await file.up(trx);
      await recordFiles(trx, [file]);
    };
    const revert = (trx: Kysely<unknown>) => file.down(trx);
    const down = async (trx: Kysely<unknown>): Promise<void> => {
      await setTimeouts(trx, undefined, true);
      await (loseData ? revert(trx) : withoutLoss(trx, file.name, () => revert(trx)));
      await deleteFile(trx, file.name);
    };
    return [file.name, { up, down }] as const;
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
  const migrator = migratorOf(session, files, { loseData: false });
  if (!next.transaction) await setTimeouts(session, CONCURRENT_LOCK_TIMEOUT_MS);
  const { error } = await migrator.migrateUp({ disableTransactions: !next.transaction });
  if (!next.transaction) await setTimeouts(session);
  if (error) throw error;
}

/**
 * Runs the pending migrations, one transaction each, and renews the rights of the accounts. Does
 * not block readers: it waits for a table lock only briefly, and retries. An interrupted run is
 * completed by the next one. A database that a newer version has migrated is not changed.
 * @returns the names of the migrations that it ran
 * @throws MigrationDriftError if a file has changed, LockedOutError if a table stays locked
 */
export async function migrateUp(
  db: Kysely<Database>,
  { folder = FOLDER, until, ...waitOptions }: MigrateOptions = {},
): Promise<string[]> {
  const files = await readMigrations(folder);
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
      for (const next of wanted)
        await retryLocked(session, () => runMigration(session, files, next), waitOptions);
      await writeCatalog(session);
      await grantRights(session);
      return wanted.map(({ name }) => name);
    },
    waitOptions,
  );
}

/**
 * Rolls back the newest migration. Returns its name, or null if there is none.
 * @param loseData true to drop tables with rows
 * @throws DataLossError if it would lose data without `loseData`
 */
export async function migrateDown(
  db: Kysely<Database>,
  { folder = FOLDER, loseData = false }: { folder?: URL; loseData?: boolean } = {},
): Promise<string | null> {
  const files = await readMigrations(folder);
  return withMigrationLock(db, async (session) => {
    await createFileTable(session);
    return retryLocked(session, async () => {
      const { error, results } = await migratorOf(session, files, { loseData }).migrateDown();
      if (error) throw error;
      return results?.[0]?.migrationName ?? null;
    });
  });
}
