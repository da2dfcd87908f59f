import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';

const BUFFER_BYTES = 1_048_576;

/** Size and hash of a written file. */
export interface WrittenFile {
  readonly bytes: number;
  /** In hexadecimal digits. */
  readonly sha256: string;
}

/** A new file that is hashed while it is written. */
export interface Sink {
  /** Writes bytes, with backpressure. The buffer can be reused afterwards. */
  write(bytes: Uint8Array): Promise<void>;
  /** Flushes the file to disk and closes it. */
  finish(): Promise<WrittenFile>;
  /** Closes the incomplete file. */
  abandon(): Promise<void>;
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, at);
    at += bytesWritten;
  }
}

/**
 * Creates a file.
 * @throws the error of the operating system, such as EEXIST
 */
export async function openSink(path: string): Promise<Sink> {
  const handle = await open(path, 'wx');
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  let buffered = 0;
  let total = 0;
  const flush = async (): Promise<void> => {
    await writeAll(handle, buffer.subarray(0, buffered));
    buffered = 0;
  };
  return {
    async write(bytes) {
      hash.update(bytes);
      total += bytes.length;
      if (buffered + bytes.length > BUFFER_BYTES) await flush();
      if (bytes.length > BUFFER_BYTES) return writeAll(handle, bytes);
      buffer.set(bytes, buffered);
      buffered += bytes.length;
    },
    async finish() {
      await flush();
      await handle.sync();
      await handle.close();
      return { bytes: total, sha256: hash.digest('hex') };
    },
    abandon: () => handle.close().catch(() => {}),
  };
}
