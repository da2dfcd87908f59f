import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type t from 'tap';
import { exportArchive } from '../../src/archive/export.ts';
import { MANIFEST_FILE } from '../../src/archive/format.ts';
import { importArchive } from '../../src/archive/import.ts';
import type { Manifest } from '../../src/archive/manifest.ts';
import type { Client } from '../../src/db/client.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';

type Test = Pick<typeof t, 'teardown'>;

/** A path for an archive, which goes after the test. */
export async function archivePath(test: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'commodity-prices-archive-'));
  test.teardown(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'archive');
}

/** Exports into a new folder and returns its path. */
export async function exported(
  test: Test,
  client: Client,
  markets: readonly string[] | null = null,
): Promise<string> {
  const folder = await archivePath(test);
  await exportArchive(client, { folder, markets });
  return folder;
}

/** A new database that holds what is in the folder. */
export async function imported(test: Test, folder: string): Promise<TestDatabase> {
  const database = await testDatabase(test);
  await importArchive(database.client, { folder });
  return database;
}

/** The files of an archive by name; of the manifest all but when it was written. */
export async function contentsOf(folder: string): Promise<Record<string, string>> {
  const names = (await readdir(folder)).sort();
  const contents = names.map(async (name): Promise<[string, string]> => {
    const bytes = await readFile(join(folder, name));
    if (name !== MANIFEST_FILE) return [name, createHash('sha256').update(bytes).digest('hex')];
    return [name, bytes.toString().replace(/"createdAt": "[^"]+"/, '')];
  });
  return Object.fromEntries(await Promise.all(contents));
}

/** The manifest of an archive. */
export const manifestOf = async (folder: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(folder, MANIFEST_FILE), 'utf8'));

/** Writes a changed manifest. */
export const putManifest = (folder: string, manifest: unknown): Promise<void> =>
  writeFile(join(folder, MANIFEST_FILE), JSON.stringify(manifest));

/** Writes a changed file with the sum and size that it then has: only its content is wrong. */
export async function putFile(folder: string, name: string, content: Uint8Array): Promise<void> {
  await writeFile(join(folder, name), content);
  const manifest = await manifestOf(folder);
  const sha256 = createHash('sha256').update(content).digest('hex');
  const files = manifest.files.map((each) =>
    each.file === name ? { ...each, bytes: content.length, sha256 } : each,
  );
  await putManifest(folder, { ...manifest, files });
}
