import { type Kysely, sql } from 'kysely';
import type { MigrationFile } from './migration-files.ts';
import type { Database } from './schema.ts';

type AnyDatabase = Kysely<Database> | Kysely<unknown>;

/** What ran on this database: a line for each migration. */
interface MigrationRun {
  readonly name: string;
  /** RFC 3339, as the runner's clock had it. */
  readonly executedAt: string;
  /** SHA-256 of its file; null for one that ran before these were recorded. */
  readonly sha256: string | null;
}

/** A migration that ran, and whose file is another one now. The message is for a person. */
export class MigrationDriftError extends Error {
  override readonly name = 'MigrationDriftError';
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

/** Whether a newer version than that of these names has migrated the database. */
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
