import { readRatesCsv } from './ecb-csv.ts';
import { readRatesXml } from './ecb-xml.ts';
import type { Format, ReadContext } from './format.ts';
import { Refusal } from './problems.ts';
import type { SourceRecord } from './records.ts';
import { isZip, openArchive } from './zip.ts';

const UNPACKED_BYTES_MAX = 268_435_456;

/** The first bytes of a stream, and the stream as it was. */
async function peek(bytes: AsyncGenerator<Buffer>): Promise<[Buffer, AsyncGenerator<Buffer>]> {
  const first = await bytes.next();
  const head = first.done ? Buffer.alloc(0) : first.value;
  async function* whole(): AsyncGenerator<Buffer> {
    yield head;
    yield* bytes;
  }
  return [head, whole()];
}

/** The text file that the ECB sends: the file itself, or the only one in its archive. */
async function textOf({ file }: ReadContext): Promise<AsyncGenerator<Buffer>> {
  if (!isZip(file.head)) return file.bytes();
  const archive = await openArchive(file);
  const [name, second] = archive.names;
  if (name === undefined || second !== undefined) {
    const held = `The archive holds ${archive.names.length} files`;
    throw new Refusal('invalid_archive', `${held}; the ECB's hold one`);
  }
  return archive.read(name, UNPACKED_BYTES_MAX);
}

/**
 * Reads the euro reference rates of the European Central Bank: the history and the single day, as
 * CSV, ZIP or XML, known by content and not by name. The vintage is the newest day of the file.
 */
async function* read(context: ReadContext): AsyncGenerator<SourceRecord[]> {
  const [head, text] = await peek(await textOf(context));
  const isXml = /^(\xef\xbb\xbf)?\s*</.test(head.toString('latin1', 0, 512));
  let newest = '';
  for await (const records of isXml ? readRatesXml(text, context) : readRatesCsv(text, context)) {
    for (const { date } of records) if (date > newest) newest = date;
    yield records;
  }
  if (newest !== '') yield [{ kind: 'vintage', date: newest }];
}

export const ecb: Format = {
  title: 'European Central Bank, euro foreign exchange reference rates',
  accepts: 'the history or the single day, as CSV, ZIP or XML',
  holds: 'rates',
  lineage: ['ecb'],
  needsVintage: true,
  source: {
    slug: 'ECB',
    name: 'European Central Bank, euro foreign exchange reference rates',
    base: 'EUR',
  },
  read,
};
