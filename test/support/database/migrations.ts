import { copyFile, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type t from 'tap';

type Test = Pick<typeof t, 'teardown'>;

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const OWN = join(ROOT, 'migrations');

/** The statements of a test migration. */
export interface MigrationStep {
  readonly up: string;
  readonly transaction?: boolean;
}

const textOf = ({ up, transaction = true }: MigrationStep): string => `
import { sql } from 'kysely';
export const transaction = ${transaction};
const run = async (db, statements) => {
  for (const each of statements.split(';;')) if (each.trim()) await sql.raw(each).execute(db);
};
export const up = (db) => run(db, ${JSON.stringify(up)});
`;

/** A folder of migrations: those of this version and test migrations. */
export interface Migrations {
  readonly url: URL;
  /** Writes a file; `;;` separates statements. */
  write(name: string, step: MigrationStep): Promise<void>;
  remove(name: string): Promise<void>;
  pathOf(name: string): string;
}

/** Copies `migrations/` to a new folder and adds test migrations. */
export async function migrationsWith(
  test: Test,
  steps: Readonly<Record<string, MigrationStep>>,
): Promise<Migrations> {
  const root = await mkdtemp(join(tmpdir(), 'commodity-prices-migrations-'));
  test.teardown(() => rm(root, { recursive: true, force: true }));
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  // Node caches imports by URL: a new folder gives a changed file a new URL.
  const folder = join(root, 'migrations');
  await mkdir(folder);
  for (const file of await readdir(OWN)) await copyFile(join(OWN, file), join(folder, file));
  const pathOf = (name: string): string => join(folder, `${name}.ts`);
  const write = (name: string, step: MigrationStep) => writeFile(pathOf(name), textOf(step));
  for (const [name, step] of Object.entries(steps)) await write(name, step);
  return {
    url: pathToFileURL(`${folder}/`),
    write,
    remove: (name) => rm(pathOf(name)),
    pathOf,
  };
}
