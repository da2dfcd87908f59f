import { RowReader } from '../csv-rows.ts';
import type { SourceFile } from '../file.ts';
import { lineBlocks } from '../lines.ts';
import { type Problems, Refusal } from '../problems.ts';
import { inUtf8 } from './encodings.ts';
import type { TableRow } from './fields.ts';
import type { Mapping } from './schema.ts';

/** What may stand between two fields, by the name that a mapping has for it. */
export const DELIMITERS = { comma: ',', semicolon: ';', tab: '\t', pipe: '|' } as const;
const QUOTES = { double: '"', single: "'", none: null } as const;

/** How the fields of a text are written, beside its encoding. */
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
