import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';

/** Bytes that are gathered before they are written. */
const GATHERED_BYTES = 1_048_576;

/** What is known of a file once it is written. */
export interface Written {
  readonly bytes: number;
  /** Of the whole file, in hexadecimal digits. */
  readonly sha256: string;
}

/** A new file that is summed up while it is written. */
export interface Sink {
  /** Takes bytes, which the caller may use again afterwards. Waits for the disk. */
  write(bytes: Uint8Array): Promise<void>;
  /** Brings the file to the disk and closes it. */
  finish(): Promise<Written>;
  /** Closes it as it is. */
  abandon(): Promise<void>;
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, at);
    at += bytesWritten;
  }
}

/**
 * Opens a file that must not be there yet.
 * @throws the error of the operating system
 */
export async function openSink(path: string): Promise<Sink> {
  const handle = await open(path, 'wx');
  const hash = createHash('sha256');
  const gathered = Buffer.allocUnsafe(GATHERED_BYTES);
  let held = 0;
  let total = 0;
  const flush = async (): Promise<void> => {
    await writeAll(handle, gathered.subarray(0, held));
    held = 0;
  };
  return {
    async write(bytes) {
      hash.update(bytes);
      total += bytes.length;
      if (held + bytes.length > GATHERED_BYTES) await flush();
      if (bytes.length > GATHERED_BYTES) return writeAll(handle, bytes);
      gathered.set(bytes, held);
      held += bytes.length;
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
