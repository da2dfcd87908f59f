import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename } from 'node:path';
import { chunksOf } from '../../std/chunks.ts';

/** Number of bytes read of a file, or of the data part of an archive. */
interface Meter {
  bytes: number;
  /** null if unknown. */
  bytesTotal: number | null;
}

/** A regular file that stays open during the load, so that every pass reads the same file. */
export interface SourceFile {
  readonly path: string;
  readonly name: string;
  readonly size: number;
  readonly descriptor: number;
  readonly meter: Meter;
  /** First bytes of the file, for detection of its kind. */
  readonly head: Buffer;
  /** Reads the file from its start; counted by `meter`. */
  bytes(): AsyncGenerator<Buffer>;
  /**
   * SHA-256 of the current content. @param onBytes called with the number of bytes hashed so far
   */
  sha256(signal?: AbortSignal, onBytes?: (bytes: number) => void): Promise<Buffer>;
  close(): Promise<void>;
}

/** Opening a named pipe would block a thread until a writer comes, and with it the exit. */
const READ_AT_ONCE = constants.O_RDONLY | constants.O_NONBLOCK;

/**
 * Opens a file for a load.
 * @throws the error of the operating system, or an Error for anything but a regular file
 */
export async function openSource(path: string): Promise<SourceFile> {
  const handle = await open(path, READ_AT_ONCE);
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) {
      throw new Error(
        `${path} is not a regular file; a load reads its file several times: save what a pipe ` +
          'sends as a file first',
      );
    }
    const head = Buffer.alloc(Math.min(512, stat.size));
    await handle.read(head, 0, head.length, 0);
    return sourceFileOf(handle, path, stat.size, head);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function sourceFileOf(handle: FileHandle, path: string, size: number, head: Buffer): SourceFile {
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
