import { type Problems, Refusal } from '../rejects/problems.ts';
import { LINE_BYTES_MAX, lineBlocks } from './lines.ts';

/** A row of a CSV file. */
export interface CsvRow {
  /** The line on which it starts, from 1. */
  readonly line: number;
  readonly fields: readonly string[];
  /** The text of a row in which a quotation mark is out of place; it has no fields then. */
  readonly wrong?: string;
}

/** How the fields of a row are told apart. */
interface Dialect {
  /** One character. */
  readonly delimiter: string;
  /** One character; null when fields are never quoted. */
  readonly quote: string | null;
}

/** What RFC 4180 describes. */
const RFC_4180: Dialect = { delimiter: ',', quote: '"' };

/** A row whose quoted field goes on in the next line; it ends where its quotes are even again. */
interface OpenRow {
  readonly line: number;
  readonly lines: string[];
  length: number;
}

/** Fields of RFC 4180; `open` when a quote is not closed, `wrong` when one is out of place. */
function quotedFields(text: string, delimiter: string, quote: string): string[] | 'open' | 'wrong' {
  const fields: string[] = [];
  for (let at = 0; ; at += 1) {
    if (text[at] !== quote) {
      const next = text.indexOf(delimiter, at);
      const field = next < 0 ? text.slice(at) : text.slice(at, next);
      if (field.includes(quote)) return 'wrong';
      fields.push(field);
      if (next < 0) return fields;
      at = next;
      continue;
    }
    let end = at + 1;
    for (; ; end += 2) {
      end = text.indexOf(quote, end);
      if (end < 0) return 'open';
      if (text[end + 1] !== quote) break;
    }
    fields.push(text.slice(at + 1, end).replaceAll(quote + quote, quote));
    if (end + 1 === text.length) return fields;
    if (text[end + 1] !== delimiter) return 'wrong';
    at = end + 1;
  }
}

function unclosed(line: number): Refusal {
  return new Refusal('invalid_quote', 'A quotation mark that opens here is never closed', { line });
}

/** Puts rows together from lines. Each line is looked at once, however long a row grows. */
export class RowReader {
  rows: CsvRow[] = [];
  private open: OpenRow | null = null;
  private readonly delimiter: string;
  private readonly quote: string | null;

  constructor({ delimiter, quote }: Dialect) {
    this.delimiter = delimiter;
    this.quote = quote;
  }

  /** Whether the next line goes on with a field of the line before. */
  get isOpen(): boolean {
    return this.open !== null;
  }

  /** Takes the next line; empty ones are no rows. */
  take(line: number, text: string): void {
    if (this.open) this.goOn(this.open, text);
    else if (this.quote !== null && text.includes(this.quote)) this.quoted(line, text, this.quote);
    // Most lines have no quote, and splitting them is all there is to do.
    else if (text !== '') this.rows.push({ line, fields: text.split(this.delimiter) });
  }

  /** @throws Refusal when a quote was never closed */
  end(): void {
    if (this.open) throw unclosed(this.open.line);
  }

  private quoted(line: number, text: string, quote: string): void {
    const fields = quotedFields(text, this.delimiter, quote);
    if (fields === 'open') this.open = { line, lines: [text], length: text.length };
    else if (fields === 'wrong') this.rows.push({ line, fields: [], wrong: text });
    else this.rows.push({ line, fields });
  }

  private goOn(open: OpenRow, text: string): void {
    const quote = this.quote ?? '';
    open.lines.push(text);
    open.length += text.length + 1;
    if (open.length > LINE_BYTES_MAX) throw unclosed(open.line);
    const hasOddQuotes = text.split(quote).length % 2 === 0;
    if (!hasOddQuotes) return;
    this.open = null;
    this.quoted(open.line, open.lines.join('\n'), quote);
  }
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
  problems.reject('invalid_quote', message, { line, value, text: value });
}

/**
 * Reads CSV as RFC 4180 describes it, in constant memory: commas, optional quotes, LF or CRLF.
 * Empty lines are skipped, and rows with a quotation mark out of place are rejected.
 * @throws Refusal for a file that is not text, or a quote that is never closed
 */
export async function* csvRows(
  bytes: AsyncIterable<Buffer>,
  problems: Problems,
): AsyncGenerator<CsvRow[]> {
  const reader = new RowReader(RFC_4180);
  let isHeader = true;
  for await (const { first, lines } of lineBlocks(bytes, problems)) {
    for (let index = 0; index < lines.length; index += 1) {
      const text = lines[index];
      if (typeof text === 'string') reader.take(first + index, text);
    }
    const { rows } = reader;
    reader.rows = [];
    yield rows.filter(({ line, wrong }) => {
      if (isHeader && wrong !== undefined) checkSeparator(line, wrong);
      isHeader = false;
      if (wrong !== undefined) rejectWrongQuote(line, wrong, problems);
      return wrong === undefined;
    });
  }
  reader.end();
}
