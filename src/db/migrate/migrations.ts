import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  sql,
} from 'kysely';
import { DEFAULT_MIGRATION_LOCK_TABLE, DEFAULT_MIGRATION_TABLE } from 'kysely/migration';
import { MARKETS } from '../../catalog/markets.ts';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';
import type { Database } from '../schema.ts';

/** Kysely's table of the migrations that ran, and that of its lock. */
export const [MIGRATION_TABLE, MIGRATION_LOCK_TABLE] = [
  DEFAULT_MIGRATION_TABLE,
  DEFAULT_MIGRATION_LOCK_TABLE,
] as const;

/** The migrations of this version. */
export const FOLDER = new URL('../../../migrations/', import.meta.url);

/** The exports of a file in `migrations/`. */
interface MigrationModule {
  up(db: Kysely<unknown>): Promise<void>;
  /**
   * `false` for statements that need to run outside a transaction, such as CREATE INDEX
   * CONCURRENTLY. Such a migration must be repeatable after an interruption.
   */
  readonly transaction?: boolean;
}

/** One migration, read from its file. */
export interface MigrationFile extends Required<MigrationModule> {
  readonly name: string;
  /** SHA-256 of the file with Unix line ends, in hexadecimal. */
  readonly sha256: string;
}

async function read(folder: URL, file: string): Promise<MigrationFile> {
  const url = new URL(file, folder);
  const text = await readFile(url, 'utf8');
  // The package contains the source, for its hash, and the compiled file, which runs.
  const compiled = new URL(file.replace(/\.ts$/, '.js'), folder);
  const module = existsSync(compiled) ? compiled : url;
  const { up, transaction = true }: MigrationModule = await import(module.href);
  const sha256 = createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex');
  return { name: nameOf(file), up, transaction, sha256 };
}

const nameOf = (file: string): string => file.replace(/\.ts$/, '');

const filesOf = async (folder: URL): Promise<string[]> =>
  (await readdir(folder)).filter((file) => /^\d{4}-.*\.ts$/.test(file)).sort();

/** The names of the migrations of this version, in order. */
export const migrationNames = async (): Promise<string[]> => (await filesOf(FOLDER)).map(nameOf);

/** Every migration of a folder, in the order of the names. */
export const readMigrations = async (folder: URL): Promise<readonly MigrationFile[]> =>
  Promise.all((await filesOf(folder)).map((file) => read(folder, file)));

type AnyDatabase = Kysely<Database> | Kysely<unknown>;

/** A migration that ran in a database. */
interface MigrationRun {
  readonly name: string;
  /** RFC 3339, by the clock of the migration runner. */
  readonly executedAt: string;
  /** SHA-256 of its file; null if it ran before hashes were recorded. */
  readonly sha256: string | null;
}

/** The file of a migration has changed since it ran. The message is for operators. */
class MigrationDriftError extends ExpectedError {
  override readonly name = 'MigrationDriftError';
  override readonly exitCode = EXIT.failed;
}

async function exists(db: AnyDatabase, table: string): Promise<boolean> {
  const { rows } = await sql<{ present: boolean }>`
    select to_regclass(${`public.${table}`}) is not null as present`.execute(db);
  return rows[0]?.present === true;
}

/** Creates the table of file hashes. Kysely creates its own table of migrations. */
export const createFileTable = (db: AnyDatabase): Promise<unknown> =>
  sql`create table if not exists migration_file (
    name text primary key,
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$')
  )`.execute(db);

/** The migrations that ran, by name; empty for a new database. */
export async function migrationRuns(db: AnyDatabase): Promise<readonly MigrationRun[]> {
  if (!(await exists(db, MIGRATION_TABLE))) return [];
  const hashes = (await exists(db, 'migration_file'))
    ? sql`(select sha256 from migration_file f where f.name = m.name)`
    : sql`null`;
  const { rows } = await sql<MigrationRun>`
    select name, "timestamp" as "executedAt", ${hashes} as sha256
    from ${sql.table(MIGRATION_TABLE)} m order by name`.execute(db);
  return rows;
}

/** True if the database has migrations of a newer version. */
export async function isAhead(db: AnyDatabase): Promise<boolean> {
  const known = new Set(await migrationNames());
  return (await migrationRuns(db)).some(({ name }) => !known.has(name));
}

/** Records the hashes of migration files. Does not change recorded ones. */
export async function recordFiles(db: AnyDatabase, files: readonly MigrationFile[]): Promise<void> {
  const names = files.map(({ name }) => name);
  const hashes = files.map(({ sha256 }) => sha256);
  await sql`
    insert into migration_file (name, sha256)
    select * from unnest(${names}::text[], ${hashes}::text[]) on conflict do nothing`.execute(db);
}

/** The migrations whose files have changed since they ran. */
export const changedSince = (
  runs: readonly MigrationRun[],
  files: readonly MigrationFile[],
): readonly MigrationRun[] => {
  const hashes = new Map(files.map(({ name, sha256 }) => [name, sha256]));
  return runs.filter(
    ({ name, sha256 }) => sha256 !== null && (hashes.get(name) ?? sha256) !== sha256,
  );
};

/** @throws MigrationDriftError for the first file that has changed since it ran */
export function rejectDrift(runs: readonly MigrationRun[], files: readonly MigrationFile[]): void {
  const [changed] = changedSince(runs, files);
  if (changed === undefined) return;
  throw new MigrationDriftError(
    `migrations/${changed.name}.ts has changed since it ran here at ${changed.executedAt}: ` +
      'restore the file, and put the change into a new migration',
  );
}

/**
 * Rejects a database that has migrations, but not the first one of this version: a version before
 * 1.0.0 created it, whose migrations were replaced.
 * @throws MigrationDriftError
 */
export function rejectUnreleased(
  runs: readonly MigrationRun[],
  files: readonly MigrationFile[],
): void {
  const [first] = files;
  if (runs.length === 0 || runs.some(({ name }) => name === first?.name)) return;
  throw new MigrationDriftError(
    'a version before 1.0.0 created this database, and 1.0.0 cannot migrate it: load the files ' +
      'into a new database. For a new embedded database, set DATA_DIR to another folder',
  );
}

/** The statements of a pending migration. */
export interface Preview {
  readonly name: string;
  /** True if its statements run in one transaction. */
  readonly transaction: boolean;
  readonly statements: readonly string[];
}

/** Records statements without running them. */
class Recorder extends DummyDriver {
  readonly statements: string[] = [];

  override async acquireConnection() {
    return {
      executeQuery: async ({ sql }: CompiledQuery) => {
        this.statements.push(sql);
        return { rows: [] };
      },
      streamQuery: async function* () {},
    };
  }
}

async function previewOf({ name, transaction, up }: MigrationFile): Promise<Preview> {
  const recorder = new Recorder();
  const db = new Kysely<unknown>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => recorder,
      createIntrospector: (kysely) => new PostgresIntrospector(kysely),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });
  await up(db);
  return { name, transaction, statements: recorder.statements };
}

/**
 * Lists the statements of the pending migrations, in order, without running them or taking locks.
 * This works because no migration depends on data that it reads. Excludes the markets and scopes
 * that `db migrate` inserts.
 * @throws MigrationDriftError if a file has changed since it ran
 */
export async function previewMigrations(
  db: Kysely<Database>,
  folder: URL = FOLDER,
): Promise<Preview[]> {
  const files = await readMigrations(folder);
  const runs = await migrationRuns(db);
  rejectDrift(runs, files);
  rejectUnreleased(runs, files);
  const done = new Set(runs.map(({ name }) => name));
  const previews: Preview[] = [];
  for (const file of files) if (!done.has(file.name)) previews.push(await previewOf(file));
  return previews;
}

/** True if the database has every market and scope of the catalog. */
async function hasCatalog(db: Kysely<Database>): Promise<boolean> {
  const { rows } = await sql<{ present: number }>`
    select count(*)::int as present from market join access_scope on market_id = market.id
    where slug = any(${MARKETS.map((each) => each.slug)}::text[])`.execute(db);
  return rows[0]?.present === MARKETS.length;
}

/**
 * True if the database has every migration of this version and all markets of the catalog. The
 * database of a newer version is current as well.
 */
export async function isSchemaCurrent(db: Kysely<Database>): Promise<boolean> {
  if (!(await exists(db, MIGRATION_TABLE))) return false;
  const ran = await sql<{ name: string }>`
    select name from ${sql.table(MIGRATION_TABLE)}`.execute(db);
  const names = new Set(ran.rows.map((each) => each.name));
  const needed = await migrationNames();
  return needed.every((name) => names.has(name)) && (await hasCatalog(db));
}
