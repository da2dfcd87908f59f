import { Refusal } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import { byteBlocks, LINE_BYTES_MAX, type LineBytes, textsOf } from './lines.ts';

/*
 * Bytes of a file -> lines of text (`lines.ts`) -> rows of fields (this file), or the rows of a
 * sheet (`xlsx.ts`). Memory does not grow with the file. A fault of a row is reported with its
 * line; one after which the rest is unreadable is a `Refusal`.
 */

/** A row of a table. Its fields are texts, or cells of a workbook. */
export interface SourceRow<Field = string> {
  /** Number of the first line of the row, from 1; in a workbook the row number. */
  readonly line: number;
  readonly fields: readonly Field[];
  /** Text of a row with a misplaced quotation mark; `fields` is empty then. */
  readonly misquoted?: string;
}

/** Field delimiters, by their names in a mapping. */
export const DELIMITERS = { comma: ',', semicolon: ';', tab: '\t', pipe: '|' } as const;

/** The notation of rows in a text. */
interface Dialect {
  /** `spaces` is any number of spaces; such fields are never quoted. */
  readonly delimiter: keyof typeof DELIMITERS | 'spaces';
  /** True to parse a line; lines inside a quoted field are always parsed. */
  isParsed?(line: number, text: string): boolean;
}

const QUOTE = '"';

/** A row whose quoted field continues on the next line. It ends when its quotes are balanced. */
interface OpenRow {
  readonly line: number;
  readonly lines: string[];
  length: number;
}

/** Splits a line by RFC 4180. `open` for an unclosed quote, `misquoted` for a misplaced one. */
function quotedFields(text: string, delimiter: string): string[] | 'open' | 'misquoted' {
  const fields: string[] = [];
  for (let at = 0; ; at += 1) {
    if (text[at] !== QUOTE) {
      const next = text.indexOf(delimiter, at);
      const field = next < 0 ? text.slice(at) : text.slice(at, next);
      if (field.includes(QUOTE)) return 'misquoted';
      fields.push(field);
      if (next < 0) return fields;
      at = next;
      continue;
    }
    let end = at + 1;
    for (; ; end += 2) {
      end = text.indexOf(QUOTE, end);
      if (end < 0) return 'open';
      if (text[end + 1] !== QUOTE) break;
    }
    fields.push(text.slice(at + 1, end).replaceAll(QUOTE + QUOTE, QUOTE));
    if (end + 1 === text.length) return fields;
    if (text[end + 1] !== delimiter) return 'misquoted';
    at = end + 1;
  }
}

function unclosed(line: number): Refusal {
  return new Refusal('invalid_quote', 'A quotation mark is opened here and never closed', { line });
}

/** Assembles rows from lines. Each line is scanned once, however long a row grows. */
class DelimitedReader {
  rows: SourceRow[] = [];
  private open: OpenRow | null = null;
  /** null for spaces. */
  private readonly delimiter: string | null;

  constructor({ delimiter }: Dialect) {
    this.delimiter = delimiter === 'spaces' ? null : DELIMITERS[delimiter];
  }

  /** True if the next line continues a quoted field. */
  get isOpen(): boolean {
    return this.open !== null;
  }

  /** Adds a line; empty lines are skipped. */
  take(line: number, text: string): void {
    const { delimiter } = this;
    if (delimiter === null) this.rows.push({ line, fields: text.trim().split(/[ \t]+/) });
    else if (this.open) this.continueField(this.open, text, delimiter);
    else if (text.includes(QUOTE)) this.quoted(line, text, delimiter);
    // Fast path: most lines have no quote.
    else if (text !== '') this.rows.push({ line, fields: text.split(delimiter) });
  }

  /** @throws Refusal for an unclosed quote */
  end(): void {
    if (this.open) throw unclosed(this.open.line);
  }

  private quoted(line: number, text: string, delimiter: string): void {
    const fields = quotedFields(text, delimiter);
    if (fields === 'open') this.open = { line, lines: [text], length: text.length };
    else if (fields === 'misquoted') this.rows.push({ line, fields: [], misquoted: text });
    else this.rows.push({ line, fields });
  }

  private continueField(open: OpenRow, text: string, delimiter: string): void {
    open.lines.push(text);
    open.length += text.length + 1;
    if (open.length > LINE_BYTES_MAX) throw unclosed(open.line);
    const hasOddQuotes = text.split(QUOTE).length % 2 === 0;
    if (!hasOddQuotes) return;
    this.open = null;
    this.quoted(open.line, open.lines.join('\n'), delimiter);
  }
}

/**
 * Reads delimited text as rows, in constant memory. Fields may be quoted by RFC 4180, LF or CRLF
 * ends a line, and empty lines are skipped.
 * @throws Refusal for a file that is not text, or an unclosed quote
 */
export async function* rows(
  bytes: AsyncIterable<Buffer>,
  dialect: Dialect,
  problems: Problems,
): AsyncGenerator<SourceRow[]> {
  for await (const part of rowsOrLines(bytes, dialect, problems, null)) {
    if (Array.isArray(part)) yield part;
  }
}

/**
 * Reads delimited text as rows, or as the bytes of lines where the caller takes them.
 * @param takesLines whether the caller takes lines without a quotation mark; null for never
 */
async function* rowsOrLines(
  bytes: AsyncIterable<Buffer>,
  dialect: Dialect,
  problems: Problems,
  takesLines: (() => boolean) | null,
): AsyncGenerator<SourceRow[] | LineBytes> {
  const reader = new DelimitedReader(dialect);
  const { rejects } = problems;
  for await (const block of byteBlocks(bytes, problems, takesLines !== null)) {
    const isPlain = !reader.isOpen && !block.isCut && !block.bytes.includes(QUOTE);
    if (isPlain && takesLines?.()) {
      yield block;
      continue;
    }
    const { first } = block;
    for (const [index, text] of textsOf(block, problems).entries()) {
      if (reader.isOpen) rejects?.continueRow(first + index);
      else if (typeof text === 'string' && dialect.isParsed?.(first + index, text) === false)
        continue;
      if (typeof text === 'string') reader.take(first + index, text);
    }
    const { rows } = reader;
    reader.rows = [];
    yield rows;
  }
  reader.end();
}

/** Common separators other than the comma, and their names. */
const SEPARATORS: Readonly<Record<string, string>> = { ';': 'semicolon', '\t': 'tab', '|': 'pipe' };

/** Names the separator of a line, if it is not the comma; null if none is found. */
export function otherSeparator(line: string): string | null {
  const [, separator = ''] = /^(?:"[^"]*"|[^"]*?)([;\t|])/.exec(line) ?? [];
  return SEPARATORS[separator] ?? null;
}

/** Refuses a header whose quoted names are separated by another character than the comma. */
function checkSeparator(line: number, value: string): void {
  const separator = otherSeparator(value);
  if (separator === null) return;
  const message = `Columns must be separated by commas, not by ${separator}s`;
  throw new Refusal('invalid_quote', message, { line, value });
}

/** Rejects a row with a misplaced quotation mark. */
export function rejectMisquoted(line: number, value: string, problems: Problems): void {
  const message = 'A quotation mark inside a field: quote the field and double the mark';
  problems.reject('invalid_quote', message, { line, value });
}

/**
 * Reads comma-separated rows; the first row is the header. Rows with a misplaced quotation mark are
 * rejected.
 * @throws Refusal for a file of another kind
 */
export async function* csvRows(
  bytes: AsyncIterable<Buffer>,
  problems: Problems,
): AsyncGenerator<SourceRow[]> {
  for await (const part of csvRowsOrLines(bytes, problems, null)) {
    if (Array.isArray(part)) yield part;
  }
}

/**
 * Reads comma-separated rows, or the bytes of lines where the caller takes them.
 * @param takesLines whether the caller takes lines without a quotation mark; null for never
 */
export async function* csvRowsOrLines(
  bytes: AsyncIterable<Buffer>,
  problems: Problems,
  takesLines: (() => boolean) | null,
): AsyncGenerator<SourceRow[] | LineBytes> {
  let isHeader = true;
  for await (const part of rowsOrLines(bytes, { delimiter: 'comma' }, problems, takesLines)) {
    if (!Array.isArray(part)) {
      yield part;
      continue;
    }
    yield part.filter(({ line, misquoted }) => {
      if (isHeader && misquoted !== undefined) checkSeparator(line, misquoted);
      if (isHeader) problems.rejects?.keepHeader(line);
      isHeader = false;
      if (misquoted !== undefined) rejectMisquoted(line, misquoted, problems);
      return misquoted === undefined;
    });
  }
}
