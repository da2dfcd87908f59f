import { type Kysely, sql } from 'kysely';
import { Migrator } from 'kysely/migration';
import { MARKETS } from '../../catalog/markets.ts';
import { ALL_MARKETS, scopeOf } from '../../catalog/scopes.ts';
import type { Database } from '../schema.ts';
import {
  changedSince,
  FOLDER,
  forgetFile,
  type MigrationFile,
  migrationNames,
  migrationRuns,
  prepareLog,
  readMigrations,
  recordFiles,
  refuseDrift,
  refuseUnreleased,
} from './migrations.ts';
import { asOnlyRunner, type Patience, untilUnlocked, waits } from './only-runner.ts';
import { renewRights } from './roles.ts';

/** A step back that would have taken data with it. Nothing was changed. */
class DataLossError extends Error {
  override readonly name = 'DataLossError';
  readonly exitCode = 3;
}

/** The data that the migration runner writes, each time it runs. */
const OURS = ['kysely_migration', 'kysely_migration_lock', 'migration_file'];
const CATALOG = ['service', 'market', 'access_scope'];

/** The columns of the tables that hold rows, as `table.column`. */
async function filledColumns(trx: Kysely<unknown>): Promise<Set<string>> {
  const { rows: columns } = await sql<{ table: string; column: string }>`
    select c.relname::text as "table", a.attname::text as "column"
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
      and a.attnum > 0 and not a.attisdropped
      and c.relname <> all(${[...OURS, ...CATALOG]})
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
 * Does a step back in the transaction of the caller, and fails when tables or columns of tables
 * with rows are gone after it.
 * @throws DataLossError naming them
 */
async function withoutLoss(
  trx: Kysely<unknown>,
  name: string,
  step: () => Promise<void>,
): Promise<void> {
  const before = await filledColumns(trx);
  await step();
  const after = await filledColumns(trx);
  const lost = [...before].filter((each) => !after.has(each));
  if (lost.length === 0) return;
  const shown = lost.slice(0, 3).join(', ');
  const more = lost.length > 3 ? ` and ${lost.length - 3} more columns` : '';
  throw new DataLossError(
    `taking back ${name} would lose ${shown}${more}; nothing was changed. An older version of ` +
      'the service runs on this schema as it is',
  );
}

/** Writes the markets and scopes of the catalog that the database lacks; never removes one. */
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

/** True if the database has every market and scope of the catalog. */
async function hasCatalog(db: Kysely<Database>): Promise<boolean> {
  const { rows } = await sql<{ present: number }>`
    select count(*)::int as present from market join access_scope on market_id = market.id
    where slug = any(${MARKETS.map((each) => each.slug)}::text[])`.execute(db);
  return rows[0]?.present === MARKETS.length;
}

/** Outside a transaction nothing is locked that readers need, and old ones are waited for. */
const PATIENT_MS = 60_000;

interface MigrateOptions extends Patience {
  /** Where the migrations lie. */
  readonly folder?: URL;
  /** The last one to run. */
  readonly until?: string;
}

/** What a database has of this version's migrations. */
export interface MigrationStatus {
  readonly name: string;
  /** When it ran, RFC 3339, or null when it is pending. */
  readonly executedAt: string | null;
  /** `changed`: its file is not what ran; `unknown`: a newer version ran it. */
  readonly state: 'ran' | 'pending' | 'changed' | 'unknown';
}

/** Every migration of this version, and those that a newer one ran, in order. */
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

/** Kysely's runner over our files, with what we do besides in the same transaction. */
function migratorOf(
  one: Kysely<Database>,
  files: readonly MigrationFile[],
  { loseData }: { readonly loseData: boolean },
): Migrator {
  const migrations = files.map((file) => {
    const up = async (trx: Kysely<unknown>): Promise<void> => {
      if (file.transaction) await waits(trx, undefined, true);
      await file.up(trx);
      await recordFiles(trx, [file]);
    };
    const back = (trx: Kysely<unknown>) => file.down(trx);
    const down = async (trx: Kysely<unknown>): Promise<void> => {
      await waits(trx, undefined, true);
      await (loseData ? back(trx) : withoutLoss(trx, file.name, () => back(trx)));
      await forgetFile(trx, file.name);
    };
    return [file.name, { up, down }] as const;
  });
  return new Migrator({
    db: one,
    provider: { getMigrations: async () => Object.fromEntries(migrations) },
  });
}

/** Runs one migration, in a transaction of its own unless it says otherwise. */
async function step(one: Kysely<Database>, files: readonly MigrationFile[], next: MigrationFile) {
  const migrator = migratorOf(one, files, { loseData: false });
  if (!next.transaction) await waits(one, PATIENT_MS);
  const { error } = await migrator.migrateUp({ disableTransactions: !next.transaction });
  if (!next.transaction) await waits(one);
  if (error) throw error;
}

/**
 * Brings the database to the newest schema, one transaction for each migration, and the rights of
 * its accounts with it; returns the names of the migrations it ran. Readers go on: a table that is
 * in use is waited for shortly, and then again. Cut off anywhere, it goes on from there when it is
 * run again. A database that a newer version has migrated stays as it is.
 * @throws MigrationDriftError when a file is not what ran, LockedOutError when a table stays locked
 */
export async function migrateUp(
  db: Kysely<Database>,
  { folder = FOLDER, until, ...patience }: MigrateOptions = {},
): Promise<string[]> {
  const files = await readMigrations(folder);
  return asOnlyRunner(
    db,
    async (one) => {
      await untilUnlocked(one, () => prepareLog(one), patience);
      const runs = await migrationRuns(one);
      refuseDrift(runs, files);
      refuseUnreleased(runs, files);
      const done = new Set(runs.map(({ name }) => name));
      await recordFiles(
        one,
        files.filter(({ name }) => done.has(name)),
      );
      const pending = files.filter(({ name }) => !done.has(name));
      // What a newer version made is its own to keep, markets and rights included.
      if (pending.length === 0 && done.size > files.length) return [];
      const wanted = pending.filter(({ name }) => until === undefined || name <= until);
      for (const next of wanted) await untilUnlocked(one, () => step(one, files, next), patience);
      await writeCatalog(one);
      await renewRights(one);
      return wanted.map(({ name }) => name);
    },
    patience,
  );
}

/**
 * Takes back the newest migration; returns its name, or null when there is none.
 * @param loseData whether the tables that it made may go with what is in them
 * @throws DataLossError when they would, and may not
 */
export async function migrateDown(
  db: Kysely<Database>,
  { folder = FOLDER, loseData = false }: { folder?: URL; loseData?: boolean } = {},
): Promise<string | null> {
  const files = await readMigrations(folder);
  return asOnlyRunner(db, async (one) => {
    await prepareLog(one);
    return untilUnlocked(one, async () => {
      const { error, results } = await migratorOf(one, files, { loseData }).migrateDown();
      if (error) throw error;
      return results?.[0]?.migrationName ?? null;
    });
  });
}

/**
 * True if the database has every migration of this version and the catalog's markets: what the
 * readiness probe asks. A database that is ahead of this version counts as current.
 */
export async function isSchemaCurrent(db: Kysely<Database>): Promise<boolean> {
  const { rows } = await sql<{ present: boolean }>`
    select to_regclass('kysely_migration') is not null as present`.execute(db);
  if (!rows[0]?.present) return false;
  const ran = await sql<{ name: string }>`select name from kysely_migration`.execute(db);
  const names = new Set(ran.rows.map((each) => each.name));
  const needed = await migrationNames(FOLDER);
  return needed.every((name) => names.has(name)) && (await hasCatalog(db));
}
