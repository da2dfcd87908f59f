import type { SourceFile } from '../file.ts';
import { RowReader } from '../parsing/csv-rows.ts';
import { lineBlocks } from '../parsing/lines.ts';
import { type Sheet, sheetOf, sheetRows, type Workbook } from '../parsing/xlsx.ts';
import { indexOfLetters, type SheetRow } from '../parsing/xlsx-rows.ts';
import { type Problems, Refusal } from '../rejects/problems.ts';
import type { Field, TableRow } from './fields.ts';
import type { Mapping } from './schema.ts';

/** Encodings that are not read as they stand. */
type Encoding = 'utf-16' | 'utf-16le' | 'utf-16be' | 'windows-1252' | 'latin1';

/** Bytes to which the encodings of one byte give no character. */
const UNDEFINED = /[\u0080-\u009f]/;
const LITTLE = '\xff\xfe';
const BIG = '\xfe\xff';

const wrong = (message: string, line: number): Refusal =>
  new Refusal('invalid_encoding', message, { line });

/** The encoding that `utf-16` stands for, by the byte order mark at the start of the file. */
function byteOrder(encoding: Encoding, head: Buffer): Encoding {
  const mark = head.toString('latin1', 0, 2);
  const found = mark === LITTLE ? 'utf-16le' : mark === BIG ? 'utf-16be' : null;
  if (encoding === 'utf-16' && found === null) {
    const advice = 'say utf-16le or utf-16be, or another encoding';
    throw wrong(`The file has no byte order mark of UTF-16: ${advice}`, 1);
  }
  if (encoding === 'utf-16') return found ?? encoding;
  if (found !== null && found !== encoding) {
    throw wrong(`The file is not ${encoding}: it begins with the mark of ${found}`, 1);
  }
  return encoding;
}

/**
 * Bytes of another encoding as UTF-8, in a stream.
 * @throws Refusal for bytes that the encoding does not have, with their line
 */
async function* inUtf8(
  bytes: AsyncIterable<Buffer>,
  stated: Encoding,
  head: Buffer,
): AsyncGenerator<Buffer> {
  const encoding = byteOrder(stated, head);
  const decoder =
    encoding === 'latin1' ? null : new TextDecoder(encoding, { fatal: true, ignoreBOM: false });
  let line = 1;
  const decoded = (chunk: Buffer | null): string => {
    try {
      if (!decoder) return chunk?.toString('latin1') ?? '';
      return chunk ? decoder.decode(chunk, { stream: true }) : decoder.decode();
    } catch {
      throw wrong(`A text in or after this line is not ${encoding}`, line);
    }
  };
  const checked = (text: string): Buffer => {
    const at = encoding.startsWith('utf-16') ? -1 : text.search(UNDEFINED);
    const before = at < 0 ? text : text.slice(0, at);
    line += before.split('\n').length - 1;
    if (at >= 0) throw wrong(`A byte that ${encoding} gives no character`, line);
    return Buffer.from(text, 'utf8');
  };
  for await (const chunk of bytes) yield checked(decoded(chunk));
  const rest = decoded(null);
  if (rest !== '') yield checked(rest);
}

/** The separators of fields, by their names in a mapping. */
export const DELIMITERS = { comma: ',', semicolon: ';', tab: '\t', pipe: '|' } as const;
const QUOTES = { double: '"', single: "'", none: null } as const;

/** The dialect of a text file, without its encoding. */
type TextSettings = NonNullable<Mapping['text']>;

/** Takes lines, and hands them on as rows. */
interface LineReader {
  rows: TableRow[];
  readonly isOpen: boolean;
  take(line: number, text: string): void;
  end(): void;
}

/** Splits lines at runs of spaces and tabs. */
function spacesReader(): LineReader {
  const reader: LineReader = {
    rows: [],
    isOpen: false,
    take(line, text) {
      reader.rows.push({ line, fields: text.trim().split(/[ \t]+/) });
    },
    end() {},
  };
  return reader;
}

function readerOf({ delimiter = 'comma', quote = 'double' }: TextSettings): LineReader {
  if (delimiter === 'spaces') return spacesReader();
  return new RowReader({ delimiter: DELIMITERS[delimiter], quote: QUOTES[quote] });
}

/** A file whose encoding is said to be UTF-8, but is not. */
function refuseUtf16(head: Buffer): void {
  const mark = head.toString('latin1', 0, 2);
  if (mark !== '\xff\xfe' && mark !== '\xfe\xff') return;
  const message = 'The file is UTF-16: say so in the mapping, text.encoding: utf-16';
  throw new Refusal('invalid_encoding', message, { line: 1 });
}

/**
 * The lines of a delimited text as rows, in constant memory; a blank line is a row without
 * fields. Lines that are of no use, and comments, are left out whatever they hold.
 * @throws Refusal for a file that is not text, or a quote that is never closed
 */
export async function* textRows(
  file: SourceFile,
  settings: TextSettings,
  isOfUse: (line: number) => boolean,
  problems: Problems,
): AsyncGenerator<TableRow[]> {
  const { encoding = 'utf-8', comment } = settings;
  if (encoding === 'utf-8') refuseUtf16(file.head);
  const bytes = encoding === 'utf-8' ? file.bytes() : inUtf8(file.bytes(), encoding, file.head);
  const reader = readerOf(settings);
  const take = (line: number, text: string): void => {
    if (reader.isOpen) reader.take(line, text);
    else if (!isOfUse(line) || (comment !== undefined && text.startsWith(comment))) return;
    else if (text.trim() === '') reader.rows.push({ line, fields: [] });
    else reader.take(line, text);
  };
  for await (const { first, lines } of lineBlocks(bytes, problems)) {
    for (let index = 0; index < lines.length; index += 1) {
      const text = lines[index];
      if (typeof text === 'string') take(first + index, text);
    }
    const { rows } = reader;
    reader.rows = [];
    yield rows;
  }
  reader.end();
}

/**
 * The sheet with the table: the one that the mapping names, else the only one.
 * @throws Refusal when the workbook lacks it, or has several
 */
export function sheetWithTable(workbook: Workbook, wanted: string | number | undefined): Sheet {
  const [only, second] = workbook.sheets;
  if (wanted !== undefined || !only) return sheetOf(workbook, wanted ?? 1);
  if (!second) return only;
  const names = workbook.sheets.map(({ name }) => `"${name}"`).join(', ');
  const message = `The workbook has several sheets: say which, workbook.sheet, of ${names}`;
  throw new Refusal('invalid_layout', message);
}

function rowOf({ number, cells }: SheetRow): TableRow {
  const fields: (Field | undefined)[] = [];
  for (const [letters, cell] of cells) {
    const index = indexOfLetters(letters);
    while (fields.length < index) fields.push(undefined);
    fields.push(cell);
  }
  return { line: number, fields };
}

/**
 * The rows of a sheet in a stream. Where the file leaves out empty rows, one without fields
 * stands for them. Hidden rows and columns are read like others; of merged cells, the first holds
 * the value and the others are empty.
 * @throws Refusal when the sheet is damaged
 */
export async function* workbookRows(workbook: Workbook, sheet: Sheet): AsyncGenerator<TableRow[]> {
  let last = 0;
  for await (const rows of sheetRows(workbook, sheet)) {
    const table: TableRow[] = [];
    for (const row of rows) {
      if (row.number > last + 1) table.push({ line: last + 1, fields: [] });
      table.push(rowOf(row));
      last = row.number;
    }
    yield table;
  }
}
