import { LINE_BYTES_MAX, lineBlocks } from './lines.ts';
import { type Problems, Refusal } from './problems.ts';

/** A row of a CSV file. */
export interface CsvRow {
  /** The line on which it starts, from 1. */
  readonly line: number;
  readonly fields: readonly string[];
}

/** A row whose quoted field goes on in the next line; it ends where its quotes are even again. */
interface OpenRow {
  readonly line: number;
  readonly lines: string[];
  length: number;
}

/** Fields of RFC 4180; `open` when a quote is not closed, `wrong` when one is out of place. */
function quotedFields(text: string): string[] | 'open' | 'wrong' {
  const fields: string[] = [];
  for (let at = 0; ; at += 1) {
    if (text[at] !== '"') {
      const comma = text.indexOf(',', at);
      const field = comma < 0 ? text.slice(at) : text.slice(at, comma);
      if (field.includes('"')) return 'wrong';
      fields.push(field);
      if (comma < 0) return fields;
      at = comma;
      continue;
    }
    let end = at + 1;
    for (; ; end += 2) {
      end = text.indexOf('"', end);
      if (end < 0) return 'open';
      if (text[end + 1] !== '"') break;
    }
    fields.push(text.slice(at + 1, end).replaceAll('""', '"'));
    if (end + 1 === text.length) return fields;
    if (text[end + 1] !== ',') return 'wrong';
    at = end + 1;
  }
}

function unclosed(line: number): Refusal {
  return new Refusal('invalid_quote', 'A quotation mark that opens here is never closed', { line });
}

const hasOddQuotes = (text: string): boolean => text.split('"').length % 2 === 0;

/** Puts rows together from lines. Each line is looked at once, however long a row grows. */
class RowReader {
  rows: CsvRow[] = [];
  private open: OpenRow | null = null;
  private readonly problems: Problems;

  constructor(problems: Problems) {
    this.problems = problems;
  }

  take(line: number, text: string): void {
    if (this.open) this.goOn(this.open, text);
    else if (text.includes('"')) this.quoted(line, text);
    // Most lines have no quote, and splitting them is all there is to do.
    else if (text !== '') this.rows.push({ line, fields: text.split(',') });
  }

  /** @throws Refusal when a quote was never closed */
  end(): void {
    if (this.open) throw unclosed(this.open.line);
  }

  private quoted(line: number, text: string): void {
    const fields = quotedFields(text);
    if (fields === 'open') this.open = { line, lines: [text], length: text.length };
    else if (fields !== 'wrong') this.rows.push({ line, fields });
    else {
      const message = 'A quotation mark inside a field: quote the field and double the mark';
      this.problems.reject('invalid_quote', message, { line, value: text, text });
    }
  }

  private goOn(open: OpenRow, text: string): void {
    open.lines.push(text);
    open.length += text.length + 1;
    if (open.length > LINE_BYTES_MAX) throw unclosed(open.line);
    if (!hasOddQuotes(text)) return;
    this.open = null;
    this.quoted(open.line, open.lines.join('\n'));
  }
}

/**
 * Reads CSV as RFC 4180 describes it, in constant memory: commas, optional quotes, LF or CRLF.
 * Empty lines are skipped.
 * @throws Refusal for a file that is not text, or a quote that is never closed
 */
export async function* csvRows(
  bytes: AsyncIterable<Buffer>,
  problems: Problems,
): AsyncGenerator<CsvRow[]> {
  const reader = new RowReader(problems);
  for await (const { first, lines } of lineBlocks(bytes, problems)) {
    for (let index = 0; index < lines.length; index += 1) {
      const text = lines[index];
      if (typeof text === 'string') reader.take(first + index, text);
    }
    yield reader.rows;
    reader.rows = [];
  }
  reader.end();
}
