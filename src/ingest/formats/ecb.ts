import { rateSourceOf, readShipped, shippedMapping } from '../mapping/table.ts';
import { isDay } from '../parsing/dates.ts';
import { attributeOf, feedXml, type Tag, type XmlListener } from '../parsing/xml.ts';
import { isZip, openArchive } from '../parsing/zip.ts';
import type { FileFormat, ReadContext } from '../records/format.ts';
import { Refusal } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import type { RateRecord, SourceRecord } from '../records/source-record.ts';

const mapping = shippedMapping(new URL('ecb.yaml', import.meta.url));

const ENVELOPE = 'http://www.gesmes.org/xml/2002-08-01';
const RATES = 'http://www.ecb.int/vocabulary/2002-08-01/eurofxref';

/** Collects the rates of nested cubes: Cube > Cube time > Cube currency rate. */
function listenerOf(records: RateRecord[], problems: Problems): XmlListener {
  let date = '';
  let isRoot = true;
  const checkRoot = ({ local, uri, name }: Tag, line: number): void => {
    if (isRoot && (local !== 'Envelope' || uri !== ENVELOPE)) {
      const message = 'The XML is not the ECB’s: its root is not gesmes:Envelope';
      throw new Refusal('invalid_layout', message, { line, value: name });
    }
    isRoot = false;
  };
  return {
    open(tag, line) {
      checkRoot(tag, line);
      if (tag.local !== 'Cube' || tag.uri !== RATES) return;
      const time = attributeOf(tag, 'time');
      const currency = attributeOf(tag, 'currency');
      if (time !== null) date = time;
      if (currency === null) return;
      const place = { line, column: currency, value: date };
      const rate = attributeOf(tag, 'rate') ?? '';
      if (isDay(date)) records.push({ kind: 'rate', line, currency, date, rate });
      else problems.reject('invalid_date', 'The rate is in a cube without a real day', place);
    },
  };
}

/** Reads the ECB's XML with one day or many. */
async function* readRatesXml(
  bytes: AsyncIterable<Buffer>,
  problems: Problems,
): AsyncGenerator<SourceRecord[]> {
  const records: RateRecord[] = [];
  let newest = '';
  for await (const _ of feedXml(bytes, listenerOf(records, problems))) {
    for (const { date } of records) if (date > newest) newest = date;
    if (records.length > 0) yield records.splice(0);
  }
  if (newest !== '') yield [{ kind: 'vintage', date: newest }];
}

const UNPACKED_BYTES_MAX = 268_435_456;

/** Reads the first chunk of a stream. @returns the chunk, and the complete stream */
async function peek(bytes: AsyncGenerator<Buffer>): Promise<[Buffer, AsyncGenerator<Buffer>]> {
  const first = await bytes.next();
  const head = first.done ? Buffer.alloc(0) : first.value;
  async function* whole(): AsyncGenerator<Buffer> {
    yield head;
    yield* bytes;
  }
  return [head, whole()];
}

/** The text of the file: the file itself, or the only file in its archive. */
async function textOf({ file, problems }: ReadContext): Promise<AsyncGenerator<Buffer>> {
  if (!isZip(file.head)) return file.bytes();
  const archive = await openArchive(file);
  const [name, second] = archive.names;
  if (name === undefined || second !== undefined) {
    const found = `The archive holds ${archive.names.length} files`;
    throw new Refusal('invalid_archive', `${found}; an archive of the ECB holds one`);
  }
  const read = () => archive.read(name, UNPACKED_BYTES_MAX);
  if (problems.rejects) problems.rejects.text = read;
  return read();
}

/**
 * Reads the euro reference rates of the European Central Bank: the history or a single day, as CSV,
 * ZIP or XML. The kind is detected by content. The vintage is the newest day of the file.
 */
async function* read(context: ReadContext): AsyncGenerator<SourceRecord[]> {
  const { problems } = context;
  const [head, text] = await peek(await textOf(context));
  if (!/^(\xef\xbb\xbf)?\s*</.test(head.toString('latin1', 0, 512))) {
    return yield* readShipped(mapping, context, { text });
  }
  problems.rejects?.refuse('an XML file');
  yield* readRatesXml(text, problems);
}

export const ecb: FileFormat = {
  lineage: ['ecb'],
  needsVintage: true,
  source: rateSourceOf(mapping.mapping),
  read,
};
