import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import Value from 'typebox/value';

/** The formats that the tables of an archive can be written in. */
export const ARCHIVE_FORMATS = ['csv', 'ndjson', 'parquet'] as const;
export type ArchiveFormat = (typeof ARCHIVE_FORMATS)[number];

/** An archive, or a database to take one in, that is not as it must be; nothing was written. */
export class ArchiveRefusal extends Error {
  override readonly name = 'ArchiveRefusal';
  readonly exitCode = 3;
}

/** A folder that an archive cannot be written into. */
export class FolderRefusal extends Error {
  override readonly name = 'FolderRefusal';
  readonly exitCode = 2;
}

/** Progress of an export or import. */
export interface ArchiveProgress {
  /** The table that is written or read, or the file that is checked. */
  readonly what: string;
  readonly done: number;
  readonly total: number;
  readonly unit: 'rows' | 'bytes';
}

/** The name of the manifest; a folder without it is no archive. */
export const MANIFEST_FILE = 'manifest.json';

/** What the manifest says it is; the number grows when a reader of before could not read it. */
export const ARCHIVE = { format: 'commodity-prices-archive', version: 1 } as const;

const count = Type.Integer({ minimum: 0 });

const ManifestSchema = Type.Object({
  format: Type.Literal(ARCHIVE.format),
  version: Type.Literal(ARCHIVE.version),
  /** When the state of the data was taken, RFC 3339. */
  createdAt: Type.String(),
  /** Version of the software that wrote it. */
  createdBy: Type.String(),
  fileFormat: Type.Unsafe<ArchiveFormat>({ enum: ARCHIVE_FORMATS }),
  migrations: Type.Array(Type.String()),
  epoch: Type.String(),
  /** The newest revision; "0" when there is none. */
  revision: Type.String({ pattern: '^[0-9]+$' }),
  /** Slugs of the markets whose prices it carries; null when it carries all. */
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

/** What an archive says about itself. */
export type Manifest = Static<typeof ManifestSchema>;
export type ManifestFile = Manifest['files'][number];

/** The name of the file of a table. */
export const fileNameOf = (table: string, format: string): string => `${table}.${format}`;

function versionFault(value: unknown): string | null {
  const { format, version } = (value ?? {}) as Partial<Manifest>;
  if (format !== ARCHIVE.format) return 'is not the manifest of an archive of prices';
  if (version === ARCHIVE.version) return null;
  return `is of version ${JSON.stringify(version)}; this version reads ${ARCHIVE.version}`;
}

/** Every table of an archive once, each in a file of its own name: no path leads elsewhere. */
function fileFault({ files, fileFormat }: Manifest, tables: readonly string[]): string | null {
  const named = files.map((each) => each.table);
  const missing = tables.filter((each) => !named.includes(each));
  if (missing.length > 0) return `lacks the tables ${missing.join(', ')}`;
  const strange = named.find((each, at) => !tables.includes(each) || named.indexOf(each) !== at);
  if (strange !== undefined) return `names a table too many: ${strange}`;
  const wrong = files.find((each) => each.file !== fileNameOf(each.table, fileFormat));
  return wrong ? `names the file ${wrong.file} for ${wrong.table}` : null;
}

/**
 * Reads the manifest of an archive that has to hold these tables.
 * @throws ArchiveRefusal when there is none, or it is not one that this version understands
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

/** Brings the names in a folder to the disk, where the system can. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => null);
  await handle?.sync().catch(() => {});
  await handle?.close();
}

/** The manifest while it is not finished: it also tells that somebody writes into the folder. */
export const MANIFEST_PART = `${MANIFEST_FILE}.part`;

/** Writes the manifest, whole or not at all: with it the folder becomes an archive. */
export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const part = join(folder, MANIFEST_PART);
  const handle = await open(part, 'w');
  try {
    await handle.writeFile(`${JSON.stringify(manifest, null, 2)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await syncFolder(folder);
  await rename(part, join(folder, MANIFEST_FILE));
  await syncFolder(folder);
}
