import { Kysely, PostgresDialect } from 'kysely';
import type { Client } from './client.ts';
import { migrationStatus } from './migrate.ts';

class RolledBack extends Error {}

interface MigrationFile {
  up(db: Kysely<unknown>): Promise<void>;
}

/**
 * The statements of the pending migrations, in order. They are run in one transaction that is
 * rolled back, so what comes out is what the database took. The markets and scopes that `db
 * migrate` adds besides are not among them.
 */
export async function previewMigrations({ db, pool }: Client): Promise<string[]> {
  const pending = (await migrationStatus(db)).filter((each) => each.executedAt === null);
  const statements: string[] = [];
  const dialect = new PostgresDialect({ pool });
  const recording = new Kysely<unknown>({
    dialect,
    log: (event) => {
      if (event.level === 'query') statements.push(event.query.sql);
    },
  });
  const run = recording.transaction().execute(async (trx) => {
    for (const { name } of pending) {
      const migration: MigrationFile = await import(`../../migrations/${name}.ts`);
      await migration.up(trx);
    }
    throw new RolledBack();
  });
  await run.catch((error: unknown) => {
    if (!(error instanceof RolledBack)) throw error;
  });
  return statements.filter((each) => !/^(begin|rollback)$/i.test(each.trim()));
}
