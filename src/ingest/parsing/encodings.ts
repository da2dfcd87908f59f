import { Refusal } from '../rejects/problems.ts';
import type { Rejects } from '../rejects/rejects.ts';

/** Encodings of text. `utf-16` is the one that the byte order mark of the file names. */
export const ENCODINGS = [
  'utf-8',
  'utf-16',
  'utf-16le',
  'utf-16be',
  'windows-1252',
  'latin1',
] as const;
type Encoding = (typeof ENCODINGS)[number];

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

/** A file that is said to be UTF-8 in a mapping, and is not. */
function refuseUtf16(head: Buffer): void {
  const mark = head.toString('latin1', 0, 2);
  if (mark !== LITTLE && mark !== BIG) return;
  throw wrong('The file is UTF-16: say so in the mapping, text.encoding: utf-16', 1);
}

/**
 * Bytes of an encoding as UTF-8, in a stream.
 * @throws Refusal for bytes that the encoding does not have, with their line
 */
export async function* inUtf8(
  bytes: AsyncGenerator<Buffer>,
  stated: Encoding,
  head: Buffer,
  rejects: Rejects | null,
): AsyncGenerator<Buffer> {
  if (stated === 'utf-8') {
    refuseUtf16(head);
    return yield* bytes;
  }
  const encoding = byteOrder(stated, head);
  if (rejects && encoding.startsWith('utf-16')) {
    rejects.lineEnd = Buffer.from(encoding === 'utf-16be' ? '\0\n' : '\n\0');
  }
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
