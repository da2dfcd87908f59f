import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Manifest, ManifestFile } from './manifest.ts';
import { ArchiveRefusal } from './refusal.ts';

const CHUNK_BYTES = 262_144;

/** A file of an archive, which stays open so that what is read is what was summed up. */
export interface ArchiveFile {
  readonly entry: ManifestFile;
  readonly handle: FileHandle;
  readonly stat: BigIntStats;
}

/** The bytes of a file from its start. */
export async function* bytesOf({ handle }: Pick<ArchiveFile, 'handle'>): AsyncGenerator<Buffer> {
  for (let position = 0; ; ) {
    const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

async function openFile(folder: string, entry: ManifestFile): Promise<ArchiveFile> {
  const handle = await open(join(folder, entry.file), 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    throw new ArchiveRefusal(`${entry.file} is missing from ${folder}`);
  });
  const stat = await handle.stat({ bigint: true });
  if (stat.isFile() && stat.size === BigInt(entry.bytes)) return { entry, handle, stat };
  await handle.close();
  throw new ArchiveRefusal(
    `${entry.file} has ${stat.size} bytes; the manifest says ${entry.bytes}`,
  );
}

/** Closes all files. */
export async function closeFiles(files: readonly ArchiveFile[]): Promise<void> {
  for (const { handle } of files) await handle.close();
}

/**
 * Opens the files of an archive, in the order of the manifest.
 * @throws ArchiveRefusal when one is missing or has another size than the manifest says
 */
export async function openFiles(folder: string, manifest: Manifest): Promise<ArchiveFile[]> {
  const files: ArchiveFile[] = [];
  try {
    for (const entry of manifest.files) files.push(await openFile(folder, entry));
    return files;
  } catch (error) {
    await closeFiles(files);
    throw error;
  }
}

/**
 * Reads a whole file and compares it with its sum.
 * @throws ArchiveRefusal when it is not what the manifest says
 */
export async function checkSum(
  file: ArchiveFile,
  onBytes: (bytes: number) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  const hash = createHash('sha256');
  for await (const bytes of bytesOf(file)) {
    signal?.throwIfAborted();
    hash.update(bytes);
    onBytes(bytes.length);
  }
  if (hash.digest('hex') === file.entry.sha256) return;
  throw new ArchiveRefusal(
    `${file.entry.file} was changed after the export: its SHA-256 is not that of the manifest`,
  );
}

/**
 * Makes sure that a file is still the one that was summed up.
 * @throws ArchiveRefusal when it was written to since it was opened
 */
export async function checkUnchanged({ entry, handle, stat }: ArchiveFile): Promise<void> {
  const now = await handle.stat({ bigint: true });
  const isSame =
    now.size === stat.size && now.mtimeNs === stat.mtimeNs && now.ctimeNs === stat.ctimeNs;
  if (!isSame) throw new ArchiveRefusal(`${entry.file} was changed while it was read`);
}
