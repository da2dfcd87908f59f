import { dayOfWords, isDay } from '../parsing/dates.ts';
import { lineBlocks } from '../parsing/lines.ts';
import { attributeOf, feedXml, type Tag, type XmlListener } from '../parsing/xml.ts';
import { isZip, openArchive } from '../parsing/zip.ts';
import type { RateRecord, SourceRecord } from '../records.ts';
import { type Problems, Refusal } from '../rejects/problems.ts';
import type { Format, RateReader, ReadContext } from './format.ts';

/** The ECB's word for "no rate on this day". It is never a zero. */
const NO_RATE = 'N/A';

/** The fields of a line; the ECB ends each line with a separator, after which nothing comes. */
function fieldsOf(line: string): string[] {
  const fields = line.split(',').map((field) => field.trim());
  if (fields.at(-1) === '') fields.pop();
  return fields;
}

/** The currencies of the header, which name themselves: they come and go over the years. */
function currenciesOf(line: string): string[] {
  const [date, ...currencies] = fieldsOf(line);
  const place = { line: 1, value: line };
  if (date !== 'Date' || currencies.length === 0) {
    const message = 'The first line of the ECB’s CSV is "Date" and the currencies';
    throw new Refusal('invalid_layout', message, place);
  }
  for (const [index, currency] of currencies.entries()) {
    if (!/^[A-Z]{3}$/.test(currency)) {
      const message = 'The header names something that is no currency code';
      throw new Refusal('unknown_column', message, { line: 1, value: currency });
    }
    if (currencies.indexOf(currency) < index) {
      const message = 'The header names a currency twice';
      throw new Refusal('duplicate', message, { line: 1, value: currency });
    }
  }
  return currencies;
}

/** The history writes 2026-04-13, the single day 13 April 2026. */
const dayOf = (text: string): string | null => (isDay(text) ? text : dayOfWords(text));

function ratesOf(
  text: string,
  line: number,
  currencies: readonly string[],
  problems: Problems,
): RateRecord[] {
  const [day = '', ...rates] = fieldsOf(text);
  if (rates.length !== currencies.length) {
    const message = `The line has ${rates.length} rates, the header ${currencies.length}`;
    problems.reject('wrong_column_count', message, { line, text });
    return [];
  }
  const date = dayOf(day);
  if (date === null) {
    problems.rejected += rates.filter((rate) => rate !== NO_RATE).length;
    const message = 'The date is not a day such as 2026-04-13 or 13 April 2026';
    problems.add('invalid_date', message, { line, column: 'Date', value: day, text });
    return [];
  }
  return rates.flatMap((rate, index) =>
    rate === NO_RATE
      ? []
      : ({ kind: 'rate', line, currency: currencies[index] ?? '', date, rate } as const),
  );
}

/** Reads the ECB's CSV, history or single day. */
const readRatesCsv: RateReader = async function* readRatesCsv(bytes, { problems }) {
  let currencies: string[] | null = null;
  for await (const { first, lines } of lineBlocks(bytes, problems)) {
    const records: RateRecord[] = [];
    for (const [index, text] of lines.entries()) {
      if (text === null || text.trim() === '') continue;
      if (currencies === null) currencies = currenciesOf(text);
      else records.push(...ratesOf(text, first + index, currencies, problems));
    }
    yield records;
  }
};

const ENVELOPE = 'http://www.gesmes.org/xml/2002-08-01';
const RATES = 'http://www.ecb.int/vocabulary/2002-08-01/eurofxref';

/** Collects the rates of the cubes: Cube > Cube time > Cube currency rate. */
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
      else problems.reject('invalid_date', 'The rate stands in a cube without a real day', place);
    },
  };
}

/** Reads the ECB's XML: one day or many, on one line or on many, in either kind of quotes. */
const readRatesXml: RateReader = async function* readRatesXml(bytes, { problems }) {
  const records: RateRecord[] = [];
  for await (const _ of feedXml(bytes, listenerOf(records, problems))) {
    if (records.length > 0) yield records.splice(0);
  }
  if (records.length > 0) yield records.splice(0);
};

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
  lineage: ['ecb'],
  needsVintage: true,
  source: {
    slug: 'ECB',
    name: 'European Central Bank, euro foreign exchange reference rates',
    base: 'EUR',
  },
  read,
};
