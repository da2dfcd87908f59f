import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely';
import { FOLDER, type MigrationFile, readMigrations } from './migration-files.ts';
import { migrationRuns, refuseDrift } from './migration-log.ts';
import type { Database } from './schema.ts';

/** A migration that would run. */
export interface Preview {
  readonly name: string;
  /** Whether its statements are one transaction. */
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
  const done = new Set(runs.map(({ name }) => name));
  const previews: Preview[] = [];
  for (const file of files) if (!done.has(file.name)) previews.push(await previewOf(file));
  return previews;
}
