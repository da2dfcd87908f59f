import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { Kysely } from 'kysely';

/** The migrations of this version. */
export const FOLDER = new URL('../../migrations/', import.meta.url);

/** What a file of `migrations/` exports. */
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
  const { up, down, transaction = true }: MigrationModule = await import(url.href);
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
