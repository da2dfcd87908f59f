import { publicIdOf } from './key-format.ts';

/** A key found in a text: its public id, and where it begins. Never the key itself. */
export interface FoundKey {
  readonly id: string;
  readonly line: number;
  readonly column: number;
}

const KEY_LENGTH = 58;
const SHAPE = /cps_live_[0-9A-Za-z]{10}_[0-9A-Za-z]{38}/g;

/**
 * Finds API keys in a text of any length, by their form and checksum: what merely looks like one
 * passes the checksum once in 57 billion times. Bytes are read as Latin-1, so that a binary file
 * is searched as well.
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
  for await (const chunk of chunks) {
    const text = rest + chunk.toString('latin1');
    let done = 0;
    for (const { 0: found, index } of text.matchAll(SHAPE)) {
      advance(text.slice(done, index));
      done = index;
      const id = publicIdOf(found);
      if (id !== null) yield { id, line, column };
    }
    // What may be the beginning of a key waits for the next piece; what was found does not.
    const end = Math.max(done === 0 ? 0 : done + 1, text.length - KEY_LENGTH + 1);
    advance(text.slice(done, end));
    rest = text.slice(end);
  }
}
