import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { ZipFile } from 'yazl';

/** An entry of an archive, whose bytes are produced while the archive is read. */
export interface ZipEntry {
  readonly path: string;
  readonly slices: AsyncIterable<Buffer> | Iterable<Buffer>;
}

/**
 * Fastest level, as for other answers. Entries have no time, so that equal contents are equal
 * bytes.
 */
const OPTIONS = { compressionLevel: 1, mtime: new Date(1980, 0, 1), forceDosTimestamp: true };

/**
 * A ZIP archive in slices, its entries compressed by deflate one after the other. The next entry is
 * requested once the previous one is read, and its slices are requested as the archive is read.
 * @throws errors of the entries, as they were thrown
 */
export async function* zipSlices(
  entries: AsyncIterable<ZipEntry> | Iterable<ZipEntry>,
): AsyncGenerator<Buffer> {
  const zip = new ZipFile();
  const output = zip.outputStream as Readable;
  let source: Readable | null = null;
  const write = async (): Promise<void> => {
    for await (const { path, slices } of entries) {
      // The reader may have stopped while the entry was made: nothing would read its slices.
      if (output.destroyed) return;
      source = Readable.from(slices, { objectMode: false });
      zip.addReadStream(source, path, OPTIONS);
      await finished(source);
    }
    zip.end();
  };
  // yazl does not pass errors of its sources on.
  const fail = (error: Error): void => void output.destroy(error);
  zip.on('error', fail);
  const written = write().catch(fail);
  try {
    for await (const chunk of output) yield chunk as Buffer;
  } finally {
    // A reader that stops early stops the entries too.
    (source as Readable | null)?.destroy();
    await written;
  }
}
