/** What PostgreSQL's text format writes for the characters that it escapes. */
const ESCAPED: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};
/** The most characters of one line: a file without ends of lines does not fill the memory. */
const LINE_MAX = 67_108_864;

/**
 * Lines of UTF-8, as many at once as a piece brings.
 * @throws RangeError when a line is longer than 64 Mi characters, TypeError for bytes that are not
 * UTF-8
 */
export async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let rest = '';
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LINE_MAX) throw new RangeError('a line is too long');
    if (lines.length > 0) yield lines;
  }
  rest += decoder.decode();
  if (rest !== '') yield [rest];
}

/** The values of a line of PostgreSQL's text format. */
export function valuesOf(line: string): (string | null)[] {
  const fields = line.split('\t');
  if (!line.includes('\\')) return fields;
  return fields.map((field) => {
    if (field === '\\N') return null;
    return field.replace(/\\(.)/gs, (_, letter: string) => ESCAPED[letter] ?? letter);
  });
}

/** The number of lines that end in a piece of a file or of a COPY. */
export function lineEnds(piece: Buffer): number {
  let count = 0;
  for (let at = piece.indexOf('\n'); at >= 0; at = piece.indexOf('\n', at + 1)) count += 1;
  return count;
}
