import { open, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import { EXIT, ExpectedError } from '../std/base-errors.ts';
import { MANIFEST_FILE } from './format.ts';

/*
 * An archive: all data as a folder of files, one for each table, and a manifest with their SHA-256.
 * `export.ts` writes it, `import.ts` reads it into an empty database, and `tables.ts` says how a
 * table moves.
 */

/** An archive, or the database for its import, is unsuitable. Nothing was written. */
export class ArchiveRefusal extends ExpectedError {
  override readonly name = 'ArchiveRefusal';
  override readonly exitCode = EXIT.refused;
}

/** An export cannot use the folder. */
export class FolderRefusal extends ExpectedError {
  override readonly name = 'FolderRefusal';
  override readonly exitCode = EXIT.usage;
}

/** Identifies an archive. The version increases with incompatible changes. */
export const ARCHIVE = { format: 'commodity-prices-archive', version: 1 } as const;

const count = Type.Integer({ minimum: 0 });

const ManifestSchema = Type.Object({
  format: Type.Literal(ARCHIVE.format),
  version: Type.Literal(ARCHIVE.version),
  /** Time of the snapshot, RFC 3339. */
  createdAt: Type.String(),
  /** Version of the software that exported it. */
  createdBy: Type.String(),
  migrations: Type.Array(Type.String()),
  epoch: Type.String(),
  /** Number of the newest revision; "0" if there is none. */
  revision: Type.String({ pattern: '^[0-9]+$' }),
  /** Slugs of the exported markets; null for all. */
  markets: Type.Union([Type.Array(Type.String()), Type.Null()]),
  files: Type.Array(
    Type.Object({
      table: Type.String(),
      file: Type.String(),
      rows: count,
      bytes: count,
      sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
      columns: Type.Array(Type.Object({ name: Type.String(), type: Type.String() })),
    }),
  ),
});

/** The description of an archive in `manifest.json`. */
export type Manifest = Static<typeof ManifestSchema>;
export type ManifestFile = Manifest['files'][number];

/** The file name of a table. */
export const fileNameOf = (table: string): string => `${table}.csv`;

function versionFault(value: unknown): string | null {
  const { format, version } = (value ?? {}) as Partial<Manifest>;
  if (format !== ARCHIVE.format) return 'is not the manifest of an archive of prices';
  if (version !== ARCHIVE.version) {
    return `is of version ${JSON.stringify(version)}; this version reads ${ARCHIVE.version}`;
  }
  // Version 1.0.0 also exported other formats.
  const { fileFormat = 'csv' } = value as { fileFormat?: unknown };
  if (fileFormat === 'csv') return null;
  return `is of ${fileFormat} files, which cannot be imported; export again as CSV`;
}

/**
 * The fault of the list of files; null if it is valid. Only names derived from tables are valid, so
 * no path leads out of the folder.
 */
function fileFault({ files }: Manifest, tables: readonly string[]): string | null {
  const named = files.map((each) => each.table);
  const missing = tables.filter((each) => !named.includes(each));
  if (missing.length > 0) return `lacks the tables ${missing.join(', ')}`;
  const unexpected = named.find((each, at) => !tables.includes(each) || named.indexOf(each) !== at);
  if (unexpected !== undefined) return `names an unexpected table: ${unexpected}`;
  const wrong = files.find((each) => each.file !== fileNameOf(each.table));
  return wrong ? `names the file ${wrong.file} for ${wrong.table}` : null;
}

/**
 * Reads the manifest of an archive, which must contain exactly these tables.
 * @throws ArchiveRefusal if the manifest is missing or invalid, or of another version
 */
export async function readManifest(folder: string, tables: readonly string[]): Promise<Manifest> {
  const path = join(folder, MANIFEST_FILE);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error;
    throw new ArchiveRefusal(`${folder} holds no ${MANIFEST_FILE}: it is no finished export`);
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ArchiveRefusal(`${path} is not JSON`);
  }
  const fault = versionFault(value);
  if (fault !== null) throw new ArchiveRefusal(`${path} ${fault}`);
  if (!Value.Check(ManifestSchema, value)) {
    const [first] = Value.Errors(ManifestSchema, value);
    throw new ArchiveRefusal(`${path} ${first?.instancePath} ${first?.message}`);
  }
  const wrong = fileFault(value, tables);
  if (wrong !== null) throw new ArchiveRefusal(`${path} ${wrong}`);
  return value;
}

/** Flushes the entries of a folder to disk, if the system supports it. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => null);
  await handle?.sync().catch(() => {});
  await handle?.close();
}

/** File name of the unfinished manifest, which also marks the folder as claimed. */
export const MANIFEST_PART = `${MANIFEST_FILE}.part`;

/** Writes the manifest atomically, as the last file of an archive. */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const part = join(folder, MANIFEST_PART);
  await writeFile(part, `${JSON.stringify(manifest, null, 2)}\n`, { flush: true });
  await syncFolder(folder);
  await rename(part, join(folder, MANIFEST_FILE));
  await syncFolder(folder);
}
