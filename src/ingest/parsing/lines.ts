import { isUtf8 } from 'node:buffer';
import { Refusal } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import type { RejectsFile } from '../records/rejects-file.ts';

/** Text encodings. `utf-16` takes the byte order from the byte order mark. */
export const ENCODINGS = [
  'utf-8',
  'utf-16',
  'utf-16le',
  'utf-16be',
  'windows-1252',
  'latin1',
] as const;
type TextEncodingName = (typeof ENCODINGS)[number];

/** Characters for bytes that a single-byte encoding does not define. */
const UNDEFINED = /[\u0080-\u009f]/;

/** The encoding that a byte order mark of UTF-16 states; null without one. */
function utf16Of(head: Buffer): 'utf-16le' | 'utf-16be' | null {
  const mark = head.toString('latin1', 0, 2);
  if (mark === '\xff\xfe') return 'utf-16le';
  return mark === '\xfe\xff' ? 'utf-16be' : null;
}

const encodingRefusal = (message: string, line: number): Refusal =>
  new Refusal('invalid_encoding', message, { line });

/** Resolves `utf-16` by the byte order mark at the start of the file. */
function byteOrder(encoding: TextEncodingName, head: Buffer): TextEncodingName {
  const found = utf16Of(head);
  if (encoding === 'utf-16') {
    if (found !== null) return found;
    const advice = 'set utf-16le, utf-16be or another encoding';
    throw encodingRefusal(`The file has no byte order mark of UTF-16: ${advice}`, 1);
  }
  if (found !== null && found !== encoding) {
    throw encodingRefusal(`The file is not ${encoding}: it begins with the mark of ${found}`, 1);
  }
  return encoding;
}

/**
 * Converts a byte stream to UTF-8.
 * @throws Refusal for bytes that are invalid in the encoding, with their line
 */
export async function* inUtf8(
  bytes: AsyncGenerator<Buffer>,
  stated: TextEncodingName,
  head: Buffer,
  rejects: RejectsFile | null,
): AsyncGenerator<Buffer> {
  if (stated === 'utf-8') {
    if (utf16Of(head) === null) return yield* bytes;
    throw encodingRefusal('The file is UTF-16: set text.encoding: utf-16 in the mapping', 1);
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
      throw encodingRefusal(`A text in or after this line is not ${encoding}`, line);
    }
  };
  const checked = (text: string): Buffer => {
    const at = encoding.startsWith('utf-16') ? -1 : text.search(UNDEFINED);
    const before = at < 0 ? text : text.slice(0, at);
    line += before.split('\n').length - 1;
    if (at >= 0)
      throw encodingRefusal(`The line holds a byte that ${encoding} does not define`, line);
    return Buffer.from(text, 'utf8');
  };
  for await (const chunk of bytes) yield checked(decoded(chunk));
  const rest = decoded(null);
  if (rest !== '') yield checked(rest);
}

/** Longest line. Longer lines are skipped and reported, so that memory stays bounded. */
export const LINE_BYTES_MAX = 1_048_576;

const LF = 0x0a;
const BOM = Buffer.from('\ufeff');

/** Consecutive whole lines of a file, as bytes. */
export interface LineBytes {
  /** Number of the first line, from 1. */
  readonly first: number;
  /** The lines, without the end of the last one. */
  readonly bytes: Buffer;
  /** True if the first line is the rest of a skipped line. */
  readonly isCut: boolean;
}

/** Consecutive lines. An unreadable line is null; its problem has been reported. */
interface LineBlock {
  /** Number of the first line, from 1. */
  readonly first: number;
  readonly lines: readonly (string | null)[];
}

/** Refuses UTF-16 and ZIP files, which people load by mistake. */
function refuseOtherKinds(head: Buffer): void {
  if (utf16Of(head) !== null) {
    throw encodingRefusal('The file is UTF-16: save it as UTF-8', 1);
  }
  if (head.toString('latin1', 0, 2) === 'PK') {
    throw new Refusal('invalid_layout', 'The file is a ZIP archive or a workbook, not text', {
      line: 1,
    });
  }
}

/** The text of a line without its end; null if it is unreadable, after reporting the problem. */
export function readableLine(bytes: Buffer, line: number, problems: Problems): string | null {
  if (bytes.length > LINE_BYTES_MAX) return tooLong(line, problems);
  if (bytes.includes(0)) {
    problems.reject('invalid_encoding', 'The line holds a NUL character', { line });
    return null;
  }
  if (!isUtf8(bytes)) {
    const value = bytes.toString('latin1');
    const message = 'The line is not UTF-8: load table --map reads Windows-1252 and others';
    problems.reject('invalid_encoding', message, { line, value });
    return null;
  }
  return bytes.toString('utf8').replace(/\r$/, '');
}

function tooLong(line: number, problems: Problems): null {
  const message = `The line is longer than ${LINE_BYTES_MAX} bytes`;
  problems.reject('line_too_long', message, { line });
  return null;
}

/** Splits complete lines. A valid block is decoded at once, an invalid one line by line. */
function linesOf(block: Buffer, first: number, problems: Problems): (string | null)[] {
  if (isUtf8(block) && !block.includes(0) && block.length <= LINE_BYTES_MAX) {
    const text = `${block.toString('utf8')}\n`;
    return (text.includes('\r') ? text.replaceAll('\r\n', '\n') : text).slice(0, -1).split('\n');
  }
  const lines: (string | null)[] = [];
  for (let start = 0; start <= block.length; ) {
    const found = block.indexOf(LF, start);
    const end = found < 0 ? block.length : found;
    lines.push(readableLine(block.subarray(start, end), first + lines.length, problems));
    start = end + 1;
  }
  return lines;
}

/** The lines after the rest of a skipped line; null stands for the skipped line. */
function linesAfterSkipped(block: Buffer, first: number, problems: Problems): (string | null)[] {
  const end = block.indexOf(LF);
  return end < 0 ? [null] : [null, ...linesOf(block.subarray(end + 1), first + 1, problems)];
}

/** Number of lines. */
function linesIn(bytes: Buffer): number {
  let lines = 1;
  for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, at + 1)) lines += 1;
  return lines;
}

/**
 * Reads UTF-8 text as whole lines, in constant memory. A byte order mark is dropped, and the last
 * line may lack its terminator.
 * @param separatesFirst true to yield the first line, a header, as a block of its own
 * @throws Refusal for a file that is not UTF-8 text
 */
export async function* byteBlocks(
  bytes: AsyncIterable<Buffer>,
  problems: Problems,
  separatesFirst: boolean,
): AsyncGenerator<LineBytes> {
  let next = 1;
  let rest: Buffer = Buffer.alloc(0);
  let isCut = false;
  function* blocksOf(block: Buffer): Generator<LineBytes> {
    const isMarked = next === 1 && !isCut && block.subarray(0, BOM.length).equals(BOM);
    const text = isMarked ? block.subarray(BOM.length) : block;
    const head = separatesFirst && next === 1 ? text.indexOf(LF) : -1;
    const parts = head < 0 ? [text] : [text.subarray(0, head), text.subarray(head + 1)];
    for (const part of parts) {
      const first = next;
      next += linesIn(part);
      yield { first, bytes: part, isCut };
      isCut = false;
    }
  }
  for await (const chunk of bytes) {
    if (next === 1 && rest.length === 0 && !isCut) refuseOtherKinds(chunk);
    const end = chunk.lastIndexOf(LF);
    if (end >= 0) yield* blocksOf(Buffer.concat([rest, chunk.subarray(0, end)]));
    // A copy: a slice would keep the whole chunk in memory.
    const tail = chunk.subarray(end + 1);
    rest = end >= 0 ? Buffer.from(tail) : Buffer.concat([rest, tail]);
    if (rest.length > LINE_BYTES_MAX) {
      if (!isCut) tooLong(next, problems);
      isCut = true;
      rest = Buffer.alloc(0);
    }
  }
  if (rest.length > 0 || isCut) yield* blocksOf(rest);
}

/** The texts of lines. */
export const textsOf = (
  { first, bytes, isCut }: LineBytes,
  problems: Problems,
): readonly (string | null)[] => (isCut ? linesAfterSkipped : linesOf)(bytes, first, problems);

/**
 * Reads UTF-8 text as lines, in constant memory. LF and CRLF end a line.
 * @throws Refusal for a file that is not UTF-8 text
 */
export async function* lineBlocks(
  bytes: AsyncIterable<Buffer>,
  problems: Problems,
): AsyncGenerator<LineBlock> {
  for await (const block of byteBlocks(bytes, problems, false)) {
    yield { first: block.first, lines: textsOf(block, problems) };
  }
}
