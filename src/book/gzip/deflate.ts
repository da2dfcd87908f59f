import { constants, crc32, deflateRawSync } from 'node:zlib';
import { calendarDay } from '../../conversion/calendar.ts';
import { type Fragment, fragmentFor, remember, type SeriesTerms } from '../answer/fragment.ts';
import type { Block } from '../store/block.ts';
import { type Budget, OVERHEAD_BYTES, Remembered } from '../store/budget.ts';
import type { Turns } from '../store/turns.ts';
import { joinedCrc, joinedShift, shiftOf } from './crc.ts';

/** Compressed bytes, and what is known of the text that they stand for. */
export interface Piece {
  /** Whole blocks of DEFLATE that end at a byte and refer to nothing before them. */
  readonly slices: readonly Buffer[];
  /** CRC-32 of the text, signed, and what it takes to join it to the CRC of what is before. */
  readonly crc: number;
  readonly shift: number;
  readonly length: number;
}

/** Points that a part of a block has at least, where there are as many: parts end with months. */
const PART_POINTS = 16;

/** What compressing a point costs, in points that are encoded. */
const DEFLATE_COST = 12;

/** Texts are short: a small window and a small table are set up in less time. */
const OPTIONS = {
  level: 6,
  windowBits: 13,
  memLevel: 6,
  chunkSize: 4_096,
  finishFlush: constants.Z_FULL_FLUSH,
};

/** Numbers that are kept of a part. */
const SUMS = 6;

const STORED_HEAD = 5;
const STORED_MOST = 65_535;

/** Compresses a text so that other pieces can come before and after it. */
const deflated = (text: Buffer): Buffer => deflateRawSync(text, OPTIONS);

/** A text as it is, as blocks of DEFLATE. */
function stored(text: Buffer): Buffer {
  const blocks: Buffer[] = [];
  for (let at = 0; at < text.length; at += STORED_MOST) {
    const part = text.subarray(at, at + STORED_MOST);
    const head = Buffer.alloc(STORED_HEAD);
    head.writeUInt16LE(part.length, 1);
    head.writeUInt16LE(STORED_MOST - part.length, 3);
    blocks.push(head, part);
  }
  return Buffer.concat(blocks);
}

/** A piece that holds its text as it is. */
export const storedPiece = (text: Buffer): Piece => ({
  slices: [stored(text)],
  ...sumsOf(text),
});

const sumsOf = (text: Buffer) => ({
  crc: crc32(text) | 0,
  shift: shiftOf(text.length),
  length: text.length,
});

/** Pieces one after the other, as one. */
export function joinedPieces(pieces: readonly Piece[]): Piece {
  const [first] = pieces;
  if (first === undefined) throw new Error('there is nothing to join');
  let { crc, shift, length } = first;
  for (const piece of pieces.slice(1)) {
    crc = joinedCrc(crc, piece.crc, piece.shift);
    shift = joinedShift(shift, piece.shift);
    length += piece.length;
  }
  return { slices: pieces.flatMap((piece) => piece.slices), crc, shift, length };
}

const monthOf = (day: number): number => {
  const { year, month } = calendarDay(day);
  return 12 * year + month;
};

/** Indexes at which the parts of a block begin, and its length. */
function partsOf(block: Block): number[] {
  const starts = [0];
  let start = 0;
  for (let index = 1; index < block.length; index += 1) {
    if (index - start < PART_POINTS) continue;
    if (monthOf(block.day(index)) === monthOf(block.day(index - 1))) continue;
    starts.push(index);
    start = index;
  }
  return [...starts, block.length];
}

/**
 * A text as two pieces over the same bytes: whole, and bare of its first bytes.
 * @param prefix how many bytes come first that can be left away
 */
export function prefixedPieces(text: Buffer, prefix: number): { whole: Piece; bare: Piece } {
  const bare = text.subarray(prefix);
  const before = stored(text.subarray(0, prefix));
  const after = deflated(bare);
  // Exactly as long as it is: what comes from zlib is a part of something bigger.
  const all = Buffer.allocUnsafeSlow(before.length + after.length);
  before.copy(all);
  after.copy(all, before.length);
  return {
    whole: { slices: [all], ...sumsOf(text) },
    bare: { slices: [all.subarray(before.length)], ...sumsOf(bare) },
  };
}

/** Some points of a block, with or without the comma before the first. */
interface Asked {
  readonly from: number;
  readonly to: number;
  readonly hasComma: boolean;
  readonly piece: Piece;
}

/** The points of a block as compressed JSON, each part after a comma that can be left away. */
export class DeflatedBlock extends Remembered {
  bytes: number;
  /** Index of the first point of each part, and the number of points. */
  readonly firsts: readonly number[];
  readonly withoutRate: readonly number[];
  readonly #block: Block;
  readonly #key: string;
  readonly #deflated: Buffer;
  /** Where each part begins, its comma included, and where the last one ends. */
  readonly #starts: Uint32Array;
  /** Of each part: CRC, shift and length with its comma, then the same without it. */
  readonly #sums: Int32Array;
  /** All parts, commas included. */
  readonly #all: Piece;
  readonly #ownBytes: number;
  #last: Asked | null = null;

  constructor(block: Block, key: string, fragment: Fragment) {
    super();
    this.#block = block;
    this.#key = key;
    this.firsts = partsOf(block);
    this.withoutRate = fragment.withoutRate;
    const count = this.firsts.length - 1;
    this.#starts = new Uint32Array(count + 1);
    this.#sums = new Int32Array(SUMS * count);
    const pieces: Buffer[] = [];
    for (let part = 0; part < count; part += 1) {
      const [from, to] = [this.firsts[part] as number, this.firsts[part + 1] as number];
      const { whole, bare } = prefixedPieces(fragment.slice(from, to), 1);
      const [bytes] = whole.slices as readonly [Buffer];
      pieces.push(bytes);
      this.#starts[part + 1] = (this.#starts[part] as number) + bytes.length;
      const sums = [whole, bare].flatMap(({ crc, shift, length }) => [crc, shift, length]);
      this.#sums.set(sums, SUMS * part);
    }
    this.#deflated = Buffer.allocUnsafeSlow(this.#starts[count] as number);
    Buffer.concat(pieces).copy(this.#deflated);
    this.#all = this.#join(0, count, true);
    const numbers = this.#starts.byteLength + this.#sums.byteLength + 8 * this.firsts.length;
    this.#ownBytes = 3 * OVERHEAD_BYTES + this.#deflated.length + numbers;
    this.bytes = this.#ownBytes;
  }

  forget(): void {
    this.#block.kept?.delete(this.#key);
  }

  /** The first part that begins at a point or after it; their number where none does. */
  partFrom(point: number): number {
    let part = 0;
    while (part < this.firsts.length - 1 && (this.firsts[part] as number) < point) part += 1;
    return part;
  }

  /** Some points as they were asked for last; null where others were. */
  askedLast(from: number, to: number, hasComma: boolean): Piece | null {
    const last = this.#last;
    if (last?.from !== from || last.to !== to || last.hasComma !== hasComma) return null;
    return last.piece;
  }

  /** Notes what was asked for, as many ask for the same days. @param bytes that it holds itself */
  note(from: number, to: number, hasComma: boolean, piece: Piece, bytes: number): void {
    this.#last = { from, to, hasComma, piece };
    const all = this.#ownBytes + bytes;
    if (this.in === null) this.bytes = all;
    else this.in.resize(this, all);
  }

  /** Some parts as one piece, each with its comma but the first where it has none. */
  piece(from: number, to: number, hasComma: boolean): Piece {
    const isAll = from === 0 && to === this.firsts.length - 1;
    return isAll && hasComma ? this.#all : this.#join(from, to, hasComma);
  }

  #join(from: number, to: number, hasComma: boolean): Piece {
    const sums = this.#sums;
    let at = SUMS * from + (hasComma ? 0 : 3);
    let crc = sums[at] as number;
    let shift = sums[at + 1] as number;
    let length = sums[at + 2] as number;
    for (let part = from + 1; part < to; part += 1) {
      at = SUMS * part;
      crc = joinedCrc(crc, sums[at] as number, sums[at + 1] as number);
      shift = joinedShift(shift, sums[at + 1] as number);
      length += sums[at + 2] as number;
    }
    const start = (this.#starts[from] as number) + (hasComma ? 0 : STORED_HEAD + 1);
    return { slices: [this.#deflated.subarray(start, this.#starts[to])], crc, shift, length };
  }
}

/** The compressed points of a block: remembered, or made now and remembered. */
export function deflatedBlock(
  block: Block,
  terms: SeriesTerms,
  budget: Budget,
  turns: Turns,
): DeflatedBlock {
  const key = `${terms.key} deflated`;
  const known = block.kept?.get(key) as DeflatedBlock | undefined;
  if (known) {
    budget.use(known);
    return known;
  }
  const made = new DeflatedBlock(block, key, fragmentFor(block, terms, turns));
  turns.spend(DEFLATE_COST * block.length);
  remember(block, key, made, budget);
  return made;
}
