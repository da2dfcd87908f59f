import { Refusal } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import { LINE_BYTES_MAX, lineBlocks } from './lines.ts';

/** A row of a table. Its fields are texts, or cells of a workbook. */
export interface SourceRow<Field = string> {
  /** The line on which it starts, from 1; in a workbook the number of the row. */
  readonly line: number;
  readonly fields: readonly Field[];
  /** The text of a row in which a quotation mark is out of place; it has no fields then. */
  readonly wrong?: string;
}

/** The separators of fields, by their names in a mapping. */
export const DELIMITERS = { comma: ',', semicolon: ';', tab: '\t', pipe: '|' } as const;

/** How text holds rows. */
interface Dialect {
  /** Fields between spaces, any number of them, are never quoted. */
  readonly delimiter: keyof typeof DELIMITERS | 'spaces';
  /** Whether a line is looked at, unless it goes on with a row. */
  isOfUse?(line: number, text: string): boolean;
}

const QUOTE = '"';

/** A row whose quoted field goes on in the next line; it ends where its quotes are even again. */
interface OpenRow {
  readonly line: number;
  readonly lines: string[];
  length: number;
}

/** Fields of RFC 4180; `open` when a quote is not closed, `wrong` when one is out of place. */
function quotedFields(text: string, delimiter: string): string[] | 'open' | 'wrong' {
  const fields: string[] = [];
  for (let at = 0; ; at += 1) {
    if (text[at] !== QUOTE) {
      const next = text.indexOf(delimiter, at);
      const field = next < 0 ? text.slice(at) : text.slice(at, next);
      if (field.includes(QUOTE)) return 'wrong';
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
    if (text[end + 1] !== delimiter) return 'wrong';
    at = end + 1;
  }
}

function unclosed(line: number): Refusal {
  return new Refusal('invalid_quote', 'A quotation mark that opens here is never closed', { line });
}

/** Puts rows together from lines. Each line is looked at once, however long a row grows. */
class DelimitedReader {
  rows: SourceRow[] = [];
  private open: OpenRow | null = null;
  /** null for spaces. */
  private readonly delimiter: string | null;

  constructor({ delimiter }: Dialect) {
    this.delimiter = delimiter === 'spaces' ? null : DELIMITERS[delimiter];
  }

  /** Whether the next line goes on with a field of the line before. */
  get isOpen(): boolean {
    return this.open !== null;
  }

  /** Takes the next line; empty ones are no rows. */
  take(line: number, text: string): void {
    const { delimiter } = this;
    if (delimiter === null) this.rows.push({ line, fields: text.trim().split(/[ \t]+/) });
    else if (this.open) this.goOn(this.open, text, delimiter);
    else if (text.includes(QUOTE)) this.quoted(line, text, delimiter);
    // Most lines have no quote, and splitting them is all there is to do.
    else if (text !== '') this.rows.push({ line, fields: text.split(delimiter) });
  }

  /** @throws Refusal when a quote was never closed */
  end(): void {
    if (this.open) throw unclosed(this.open.line);
  }

  private quoted(line: number, text: string, delimiter: string): void {
    const fields = quotedFields(text, delimiter);
    if (fields === 'open') this.open = { line, lines: [text], length: text.length };
    else if (fields === 'wrong') this.rows.push({ line, fields: [], wrong: text });
    else this.rows.push({ line, fields });
  }

  private goOn(open: OpenRow, text: string, delimiter: string): void {
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
 * Reads delimited text as rows, in constant memory. Fields may be quoted as RFC 4180 describes it,
 * LF or CRLF ends a line, and empty lines are skipped.
 * @throws Refusal for a file that is not text, or a quote that is never closed
 */
export async function* rows(
  bytes: AsyncIterable<Buffer>,
  dialect: Dialect,
  problems: Problems,
): AsyncGenerator<SourceRow[]> {
  const reader = new DelimitedReader(dialect);
  const { rejects } = problems;
  for await (const { first, lines } of lineBlocks(bytes, problems)) {
    for (let index = 0; index < lines.length; index += 1) {
      const text = lines[index];
      if (reader.isOpen) rejects?.goesOn(first + index);
      else if (typeof text === 'string' && dialect.isOfUse?.(first + index, text) === false)
        continue;
      if (typeof text === 'string') reader.take(first + index, text);
    }
    const { rows } = reader;
    reader.rows = [];
    yield rows;
  }
  reader.end();
}

/** Characters that tables are separated by instead of commas, and what they are called. */
const SEPARATORS: Readonly<Record<string, string>> = { ';': 'semicolon', '\t': 'tab', '|': 'pipe' };

/** What separates the quoted fields of a line, if it is one of these; null for anything else. */
export function otherSeparator(line: string): string | null {
  const [, separator = ''] = /^(?:"[^"]*"|[^"]*?)([;\t|])/.exec(line) ?? [];
  return SEPARATORS[separator] ?? null;
}

/** Refuses a header in which another character than a comma separates quoted names. */
function checkSeparator(line: number, value: string): void {
  const separator = otherSeparator(value);
  if (separator === null) return;
  const message = `Columns are separated by commas, and here by ${separator}s`;
  throw new Refusal('invalid_quote', message, { line, value });
}

/** Notes a quotation mark that is out of place; such a row is rejected. */
export function rejectWrongQuote(line: number, value: string, problems: Problems): void {
  const message = 'A quotation mark inside a field: quote the field and double the mark';
  problems.reject('invalid_quote', message, { line, value });
}

/**
 * The rows of comma-separated text of which the first is the header. Rows with a quotation mark
 * out of place are rejected.
 * @throws Refusal for a file that is something else
 */
export async function* csvRows(
  bytes: AsyncIterable<Buffer>,
  problems: Problems,
): AsyncGenerator<SourceRow[]> {
  let isHeader = true;
  for await (const found of rows(bytes, { delimiter: 'comma' }, problems)) {
    yield found.filter(({ line, wrong }) => {
      if (isHeader && wrong !== undefined) checkSeparator(line, wrong);
      if (isHeader) problems.rejects?.keepAbove(line);
      isHeader = false;
      if (wrong !== undefined) rejectWrongQuote(line, wrong, problems);
      return wrong === undefined;
    });
  }
}
