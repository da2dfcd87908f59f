import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { basename } from 'node:path';
import { chunksOf } from '../../std/chunks.ts';

/** How much of a file has been read; of an archive, of the part that holds the data. */
interface Meter {
  bytes: number;
  /** null when it is not known. */
  bytesTotal: number | null;
}

/** A regular file that stays open for the whole load, so that every reading is of one file. */
export interface SourceFile {
  readonly path: string;
  readonly name: string;
  readonly size: number;
  readonly descriptor: number;
  readonly meter: Meter;
  /** Its first bytes, by which its kind is known. */
  readonly head: Buffer;
  /** The file from its start, counted by `meter`. */
  bytes(): AsyncGenerator<Buffer>;
  /** SHA-256 of the file as it is now. @param onBytes hears how far it is */
  sha256(signal?: AbortSignal, onBytes?: (bytes: number) => void): Promise<Buffer>;
  close(): Promise<void>;
}

/**
 * Opens a file to be loaded.
 * @throws the error of the operating system, or an Error when it is not a regular file
 */
export async function openSource(path: string): Promise<SourceFile> {
  const handle = await open(path, 'r');
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw new Error(`${path} is not a regular file`);
    const head = Buffer.alloc(Math.min(512, stat.size));
    await handle.read(head, 0, head.length, 0);
    return rateSourceOf(handle, path, stat.size, head);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function rateSourceOf(handle: FileHandle, path: string, size: number, head: Buffer): SourceFile {
  const meter: Meter = { bytes: 0, bytesTotal: size };
  return {
    path,
    name: basename(path),
    size,
    descriptor: handle.fd,
    meter,
    head,
    async *bytes() {
      meter.bytes = 0;
      meter.bytesTotal = size;
      for await (const chunk of chunksOf(handle)) {
        meter.bytes += chunk.length;
        yield chunk;
      }
    },
    async sha256(signal, onBytes) {
      const hash = createHash('sha256');
      let bytes = 0;
      for await (const chunk of chunksOf(handle)) {
        signal?.throwIfAborted();
        hash.update(chunk);
        bytes += chunk.length;
        onBytes?.(bytes);
      }
      return hash.digest();
    },
    close: () => handle.close(),
  };
}
