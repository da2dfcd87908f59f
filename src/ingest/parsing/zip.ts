import { crc32 } from 'node:zlib';
import { type Entry, fromFdPromise, type ZipFile } from 'yauzl';
import { Refusal } from '../records/load-error.ts';
import type { SourceFile } from '../records/source-file.ts';

const ENTRIES_MAX = 1_000;

/** An open archive. Entries are never written to disk, so their names cannot escape a folder. */
export interface Archive {
  readonly names: readonly string[];
  /**
   * Unpacks one entry as a stream.
   * @throws Refusal if it is missing, damaged, encrypted, or unpacks to more than `bytesMax`
   */
  read(name: string, bytesMax: number): AsyncGenerator<Buffer>;
}

const SIGNATURES = new Set(['PK\x03\x04', 'PK\x05\x06']);

/** True if a file starts with a ZIP signature (workbooks do). */
export const isZip = (head: Buffer): boolean => SIGNATURES.has(head.toString('latin1', 0, 4));

const refusalOf = (error: unknown): Refusal =>
  error instanceof Refusal
    ? error
    : new Refusal('invalid_archive', `The archive cannot be read: ${(error as Error).message}`);

async function entriesOf(zip: ZipFile): Promise<Map<string, Entry>> {
  if (zip.entryCount > ENTRIES_MAX) {
    throw new Refusal('invalid_archive', `The archive holds more than ${ENTRIES_MAX} files`);
  }
  const entries = new Map<string, Entry>();
  for await (const entry of zip.eachEntry()) {
    if (entries.has(entry.fileName)) {
      throw new Refusal('invalid_archive', `The archive holds ${entry.fileName} twice`);
    }
    if (!entry.fileName.endsWith('/')) entries.set(entry.fileName, entry);
  }
  return entries;
}

/**
 * Unpacks one entry and enforces the size limit while reading, whatever size the archive states.
 */
async function* unpacked(
  zip: ZipFile,
  entry: Entry,
  file: SourceFile,
  bytesMax: number,
): AsyncGenerator<Buffer> {
  const tooLarge = () =>
    new Refusal('invalid_archive', `${entry.fileName} unpacks to more than ${bytesMax} bytes`);
  if (entry.uncompressedSize > bytesMax) throw tooLarge();
  const stream = await zip.openReadStreamPromise(entry);
  file.meter.bytes = 0;
  file.meter.bytesTotal = entry.uncompressedSize;
  let sum = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    file.meter.bytes += chunk.length;
    if (file.meter.bytes > bytesMax) throw tooLarge();
    sum = crc32(chunk, sum);
    yield chunk;
  }
  if (sum !== entry.crc32) {
    throw new Refusal('invalid_archive', `${entry.fileName} is damaged: its checksum is wrong`);
  }
}

/**
 * Opens an archive.
 * @throws Refusal if the file is not an archive, or damaged
 */
export async function openArchive(file: SourceFile): Promise<Archive> {
  try {
    const zip = await fromFdPromise(file.descriptor, { autoClose: false, strictFileNames: false });
    const entries = await entriesOf(zip);
    return {
      names: [...entries.keys()],
      async *read(name, bytesMax) {
        const entry = entries.get(name);
        if (!entry) throw new Refusal('invalid_archive', `The archive lacks ${name}`);
        try {
          yield* unpacked(zip, entry, file, bytesMax);
        } catch (error) {
          throw refusalOf(error);
        }
      },
    };
  } catch (error) {
    throw refusalOf(error);
  }
}
