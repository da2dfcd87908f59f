import { publicIdOf } from './key-format.ts';
import { unpackedOnly } from './packed.ts';

/** A key found in a text: its public id, and where it begins. Never the key itself. */
export interface FoundKey {
  readonly id: string;
  readonly line: number;
  readonly column: number;
}

const KEY_LENGTH = 58;
/** Looks ahead for all but the first letters: a key may begin where another is cut off. */
const SHAPE = /cps_live_(?=[0-9A-Za-z]{10}_[0-9A-Za-z]{38})/g;
/** The mark at the beginning of UTF-8 and of both orders of UTF-16, which is not in a column. */
const MARK = /^(?:\u00ef\u00bb\u00bf|\u00ff\u00fe|\u00fe\u00ff)/;

/**
 * The text of bytes as Latin-1, so that a binary file is searched as well, and without zeros: a key
 * in UTF-16, in either order, is then the same text, wherever in a file it begins.
 */
async function* textsOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let isFirst = true;
  for await (const chunk of unpackedOnly(chunks)) {
    const text = chunk.toString('latin1').replaceAll('\0', '');
    yield isFirst ? text.replace(MARK, '') : text;
    isFirst = false;
  }
}

/**
 * Finds API keys in a text of any length, by their form and checksum: what merely looks like one
 * passes the checksum once in 57 billion times. Columns are counted in bytes other than zero.
 * @throws PackedError when the text is compressed
 */
export async function* scanForKeys(chunks: AsyncIterable<Buffer>): AsyncGenerator<FoundKey> {
  let rest = '';
  let line = 1;
  let column = 1;
  const advance = (text: string): void => {
    const last = text.lastIndexOf('\n');
    if (last < 0) column += text.length;
    else column = text.length - last;
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) line += 1;
  };
  for await (const each of textsOf(chunks)) {
    const text = rest + each;
    let done = 0;
    for (const { index } of text.matchAll(SHAPE)) {
      advance(text.slice(done, index));
      done = index;
      const id = publicIdOf(text.slice(index, index + KEY_LENGTH));
      if (id !== null) yield { id, line, column };
    }
    // What may be the beginning of a key waits for the next piece; what was found does not.
    const end = Math.max(done, text.length - KEY_LENGTH + 1);
    advance(text.slice(done, end));
    rest = text.slice(end);
  }
}
