import { constants, crc32, deflateRawSync } from 'node:zlib';

/*
 * An answer as one gzip member (RFC 1952), assembled from pieces that are compressed only once. A
 * piece ends at a byte and refers to no bytes before it, so pieces can follow each other in any
 * order. The CRC of the member is computed from the CRCs of its pieces (crc32_combine of zlib).
 *
 * The CRC arithmetic uses polynomials over GF(2) with reversed bits: bit 31 is x^0. The numbers are
 * signed integers, which are several times as fast as unsigned ones.
 */
const POLYNOMIAL = 0xed_b8_83_20 | 0;
const ONE = 0x80_00_00_00 | 0;

/** The product of two polynomials, modulo the polynomial of CRC-32. */
function times(a: number, b: number): number {
  let product = 0;
  let power = b | 0;
  // Visits the bits of `a` from the highest on: the sign is the next bit.
  for (let rest = a | 0; rest !== 0; rest <<= 1) {
    if (rest < 0) product ^= power;
    power = (power >>> 1) ^ (-(power & 1) & POLYNOMIAL);
  }
  return product;
}

/** x^(8 · 2^n), by n. */
const BYTES: number[] = [];
for (let power = 0x00_80_00_00; BYTES.length < 48; power = times(power, power)) BYTES.push(power);

/** The factor of a CRC when this number of bytes is appended. */
export function shiftOf(bytes: number): number {
  let shift = ONE;
  let rest = bytes;
  for (let n = 0; rest > 0; n += 1) {
    if (rest % 2 === 1) shift = times(BYTES[n] as number, shift);
    rest = Math.floor(rest / 2);
  }
  return shift;
}

/** The CRC of two texts joined. @param shift `shiftOf` the length of the second text */
export const joinedCrc = (before: number, after: number, shift: number): number =>
  times(shift, before) ^ after;

/** `shiftOf` the length of two texts joined, from the shift of each. */
export const joinedShift = times;

/** Compressed bytes, with the CRC and the length of their text. */
export interface Piece {
  /** Whole blocks of DEFLATE that end at a byte and refer to no bytes before them. */
  readonly slices: readonly Buffer[];
  /** CRC-32 of the text, signed, and `shiftOf` its length. */
  readonly crc: number;
  readonly shift: number;
  readonly length: number;
}

/** Texts are short: a small window and a small hash table take less time to set up. */
const OPTIONS = {
  level: 6,
  windowBits: 13,
  memLevel: 6,
  chunkSize: 4_096,
  finishFlush: constants.Z_FULL_FLUSH,
};

/** Bytes before the text of a stored block, and the most bytes of its text. */
export const STORED_HEAD = 5;
const STORED_MAX = 65_535;

/** A text as stored blocks of DEFLATE, uncompressed. */
function stored(text: Buffer): Buffer {
  const blocks: Buffer[] = [];
  for (let at = 0; at < text.length; at += STORED_MAX) {
    const part = text.subarray(at, at + STORED_MAX);
    const head = Buffer.alloc(STORED_HEAD);
    head.writeUInt16LE(part.length, 1);
    head.writeUInt16LE(STORED_MAX - part.length, 3);
    blocks.push(head, part);
  }
  return Buffer.concat(blocks);
}

const checksumOf = (text: Buffer) => ({
  crc: crc32(text) | 0,
  shift: shiftOf(text.length),
  length: text.length,
});

/** A piece that holds its text uncompressed. */
export const storedPiece = (text: Buffer): Piece => ({
  slices: [stored(text)],
  ...checksumOf(text),
});

/** Joins pieces into one. */
export function joinedPieces(pieces: readonly Piece[]): Piece {
  const [first] = pieces;
  if (first === undefined) throw new Error('there is no piece to join');
  let { crc, shift, length } = first;
  for (const piece of pieces.slice(1)) {
    crc = joinedCrc(crc, piece.crc, piece.shift);
    shift = joinedShift(shift, piece.shift);
    length += piece.length;
  }
  return { slices: pieces.flatMap((piece) => piece.slices), crc, shift, length };
}

/** A text as a piece, and the same without its prefix; both share their bytes. */
export interface PrefixedPieces {
  readonly whole: Piece;
  readonly bare: Piece;
}

/** @param prefix length of the prefix in bytes */
export function prefixedPieces(text: Buffer, prefix: number): PrefixedPieces {
  const bare = text.subarray(prefix);
  const before = stored(text.subarray(0, prefix));
  const after = deflateRawSync(bare, OPTIONS);
  // A copy of the exact size: zlib returns a part of a larger buffer.
  const all = Buffer.allocUnsafeSlow(before.length + after.length);
  before.copy(all);
  after.copy(all, before.length);
  return {
    whole: { slices: [all], ...checksumOf(text) },
    bare: { slices: [all.subarray(before.length)], ...checksumOf(bare) },
  };
}

/** Magic number, deflate, no name, no time, unknown system. */
const MEMBER_HEAD = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/** An empty last block of DEFLATE, as ten bits. */
const LAST_BLOCK = [0x03, 0x00];

/** The slices of one gzip member that holds the pieces. */
export function* gzipMember(pieces: Iterable<Piece>): Generator<Buffer> {
  let crc = 0;
  let length = 0;
  yield MEMBER_HEAD;
  for (const piece of pieces) {
    crc = joinedCrc(crc, piece.crc, piece.shift);
    length += piece.length;
    for (const slice of piece.slices) if (slice.length > 0) yield slice;
  }
  const end = Buffer.alloc(LAST_BLOCK.length + 8);
  end.set(LAST_BLOCK);
  end.writeInt32LE(crc, 2);
  end.writeUInt32LE(length % 4_294_967_296, 6);
  yield end;
}
