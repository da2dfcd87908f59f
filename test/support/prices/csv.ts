/**
 * The rows of a CSV, read by the letter of RFC 4180: every record ends with CRLF, a cell with a
 * comma, a quote or a line break stands between quotes, and a quote in it is written twice.
 * @throws Error where the text is anything else
 */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (let at = 0; at < text.length; ) {
    const { value, end } = text[at] === '"' ? quotedCell(text, at) : plainCell(text, at);
    row.push(value);
    if (text[end] === ',') {
      at = end + 1;
      // A comma at the end of a line has one more cell after it, which is empty.
      continue;
    }
    if (!text.startsWith('\r\n', end)) throw new Error(`a row does not end at ${end}`);
    rows.push(row);
    row = [];
    at = end + 2;
  }
  if (row.length > 0) throw new Error('the last row does not end');
  return rows;
}

function plainCell(text: string, start: number): { value: string; end: number } {
  let end = start;
  while (end < text.length && text[end] !== ',' && text[end] !== '\r') {
    if (text[end] === '"' || text[end] === '\n') throw new Error(`a bare character at ${end}`);
    end += 1;
  }
  return { value: text.slice(start, end), end };
}

function quotedCell(text: string, start: number): { value: string; end: number } {
  let value = '';
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] !== '"') value += text[at];
    else if (text[at + 1] === '"') {
      value += '"';
      at += 1;
    } else return { value, end: at + 1 };
  }
  throw new Error('a quote is not closed');
}

/** The rows of a CSV whose cells stand between semicolons, read in the same way. */
export function parseSemicolons(text: string): string[][] {
  let isQuoted = false;
  const swapped = [...text].map((letter) => {
    if (letter === '"') isQuoted = !isQuoted;
    if (isQuoted || !',;'.includes(letter)) return letter;
    return letter === ',' ? '\u0001' : ',';
  });
  return parseCsv(swapped.join('')).map((row) => row.map((cell) => cell.replaceAll('\u0001', ',')));
}

/** The rows as objects, by the names of the columns. */
export function csvRecords(text: string): Record<string, string>[] {
  const [names = [], ...rows] = parseCsv(text);
  return rows.map((row) =>
    Object.fromEntries(names.map((name, index) => [name, row[index] ?? ''])),
  );
}
