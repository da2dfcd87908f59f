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
import type { Database } from '../schema.ts';

/** The migrations of this version. */
export const FOLDER = new URL('../../../migrations/', import.meta.url);

/** The exports of a file in `migrations/`. */
interface MigrationModule {
  up(db: Kysely<unknown>): Promise<void>;
  down(db: Kysely<unknown>): Promise<void>;
  /**
   * `false` for what PostgreSQL does outside a transaction only, such as CREATE INDEX
   * CONCURRENTLY. It must not mind being run again after it was cut off anywhere.
   */
  readonly transaction?: boolean;
}

/** One migration, read from its file. */
export interface MigrationFile extends Required<MigrationModule> {
  readonly name: string;
  /** SHA-256 of the file, in hexadecimal; what it would be with the line ends of Unix. */
  readonly sha256: string;
}

async function read(folder: URL, file: string): Promise<MigrationFile> {
  const url = new URL(file, folder);
  const text = await readFile(url, 'utf8');
  // The package holds the source, whose hash is recorded, and what runs beside it.
  const compiled = new URL(file.replace(/\.ts$/, '.js'), folder);
  const module = existsSync(compiled) ? compiled : url;
  const { up, down, transaction = true }: MigrationModule = await import(module.href);
  const sha256 = createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex');
  return { name: nameOf(file), up, down, transaction, sha256 };
}

const nameOf = (file: string): string => file.replace(/\.ts$/, '');

const filesOf = async (folder: URL): Promise<string[]> =>
  (await readdir(folder)).filter((file) => /^\d{4}-.*\.ts$/.test(file)).sort();

/** The names of the migrations of a folder, in order. */
export const migrationNames = async (folder: URL): Promise<string[]> =>
  (await filesOf(folder)).map(nameOf);

/** Every migration of a folder, in the order of the names. */
export const readMigrations = async (folder: URL): Promise<readonly MigrationFile[]> =>
  Promise.all((await filesOf(folder)).map((file) => read(folder, file)));

type AnyDatabase = Kysely<Database> | Kysely<unknown>;

/** The migrations of this database, a line each. */
interface MigrationRun {
  readonly name: string;
  /** RFC 3339, as the runner's clock had it. */
  readonly executedAt: string;
  /** SHA-256 of its file; null for one that ran before these were recorded. */
  readonly sha256: string | null;
}

/** A migration that ran, and whose file is another one now. The message is for a person. */
class MigrationDriftError extends Error {
  override readonly name = 'MigrationDriftError';
  readonly exitCode = 1;
}

async function exists(db: AnyDatabase, table: string): Promise<boolean> {
  const { rows } = await sql<{ present: boolean }>`
    select to_regclass(${`public.${table}`}) is not null as present`.execute(db);
  return rows[0]?.present === true;
}

/** Makes the table of what was in the files; Kysely makes its own of what ran. */
export const prepareLog = (db: AnyDatabase): Promise<unknown> =>
  sql`create table if not exists migration_file (
    name text primary key,
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$')
  )`.execute(db);

/** The migrations that ran, in their order; none on a database that never saw one. */
export async function migrationRuns(db: AnyDatabase): Promise<readonly MigrationRun[]> {
  if (!(await exists(db, 'kysely_migration'))) return [];
  const sums = (await exists(db, 'migration_file'))
    ? sql`(select sha256 from migration_file f where f.name = m.name)`
    : sql`null`;
  const { rows } = await sql<MigrationRun>`
    select name, "timestamp" as "executedAt", ${sums} as sha256
    from kysely_migration m order by name`.execute(db);
  return rows;
}

/** True if a newer version than that of these names has migrated the database. */
export async function isAhead(db: AnyDatabase, names: readonly string[]): Promise<boolean> {
  const known = new Set(names);
  return (await migrationRuns(db)).some(({ name }) => !known.has(name));
}

/** Notes what the files of migrations hold that ran; the first note of each stays. */
export async function recordFiles(db: AnyDatabase, files: readonly MigrationFile[]): Promise<void> {
  const names = files.map(({ name }) => name);
  const sums = files.map(({ sha256 }) => sha256);
  await sql`
    insert into migration_file (name, sha256)
    select * from unnest(${names}::text[], ${sums}::text[]) on conflict do nothing`.execute(db);
}

/** Forgets a migration that is taken back. */
export const forgetFile = (db: AnyDatabase, name: string): Promise<unknown> =>
  sql`delete from migration_file where name = ${name}`.execute(db);

/** The migrations that ran here with another content than their file has now. */
export const changedSince = (
  runs: readonly MigrationRun[],
  files: readonly MigrationFile[],
): readonly MigrationRun[] => {
  const sums = new Map(files.map(({ name, sha256 }) => [name, sha256]));
  return runs.filter(
    ({ name, sha256 }) => sha256 !== null && (sums.get(name) ?? sha256) !== sha256,
  );
};

/** @throws MigrationDriftError naming the first file that is not what ran here */
export function refuseDrift(runs: readonly MigrationRun[], files: readonly MigrationFile[]): void {
  const [changed] = changedSince(runs, files);
  if (changed === undefined) return;
  throw new MigrationDriftError(
    `migrations/${changed.name}.ts is not the file that ran here at ${changed.executedAt}: what ` +
      'ran never changes. Bring the file back, and put the change into a new migration',
  );
}

/**
 * Refuses a database that lacks this version's first migration but has others: one of the versions
 * before 1.0.0, whose migrations were replaced.
 * @throws MigrationDriftError
 */
export function refuseUnreleased(
  runs: readonly MigrationRun[],
  files: readonly MigrationFile[],
): void {
  const [first] = files;
  if (runs.length === 0 || runs.some(({ name }) => name === first?.name)) return;
  throw new MigrationDriftError(
    'a version before 1.0.0 made this database, and 1.0.0 cannot migrate it: load the files into ' +
      'a new database. The embedded database is new when DATA_DIR names another folder',
  );
}

/** A migration that would run. */
export interface Preview {
  readonly name: string;
  /** True if its statements are one transaction. */
  readonly transaction: boolean;
  readonly statements: readonly string[];
}

/** Writes down what it is told to run, and runs nothing. */
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
      createIntrospector: (of) => new PostgresIntrospector(of),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });
  await up(db);
  return { name, transaction, statements: recorder.statements };
}

/**
 * The statements of the pending migrations, in order. Nothing is run and nothing is locked: what a
 * migration does must not depend on what it reads. The markets and scopes that `db migrate` adds
 * besides are not among them.
 * @throws MigrationDriftError when a file is not what ran
 */
export async function previewMigrations(
  db: Kysely<Database>,
  folder: URL = FOLDER,
): Promise<Preview[]> {
  const files = await readMigrations(folder);
  const runs = await migrationRuns(db);
  refuseDrift(runs, files);
  refuseUnreleased(runs, files);
  const done = new Set(runs.map(({ name }) => name));
  const previews: Preview[] = [];
  for (const file of files) if (!done.has(file.name)) previews.push(await previewOf(file));
  return previews;
}
