import type { Answer } from '../../prices/write/contents.ts';
import { type SeriesTerms, textOf } from '../answer/fragment.ts';
import { type LineFormat, type Sink, type Source, walk } from '../answer/walk.ts';
import type { Stretch } from '../store/series.ts';
import type { Turns } from '../store/turns.ts';
import { joinedCrc } from './crc.ts';
import {
  type DeflatedBlock,
  deflatedBlock,
  joinedPieces,
  type Piece,
  storedPiece,
} from './deflate.ts';

/*
 * An answer as one member of gzip (RFC 1952), put together from pieces that were compressed before:
 * the pieces end at bytes and refer to nothing before them, so they may follow one another in any
 * order, and the CRC of the whole is computed from theirs. Nothing is compressed twice.
 */

/** Magic number, deflate, no name, no time, of an unknown system. */
const MEMBER_HEAD = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/** A last block of DEFLATE without anything in it, as ten bits. */
const LAST_BLOCK = [0x03, 0x00];

/** Some points of a block: whole parts as they are kept, and what is left of others as text. */
function pointsPiece(
  turns: Turns,
  terms: SeriesTerms,
  { block, from, to }: Stretch,
  made: DeflatedBlock,
  hasComma: boolean,
): Piece {
  const known = made.askedLast(from, to, hasComma);
  if (known) return known;
  const first = made.partFrom(from);
  // The part that ends last, but not after the end.
  let last = first;
  while ((made.firsts[last + 1] ?? Number.POSITIVE_INFINITY) <= to) last += 1;
  const start = Math.min(made.firsts[first] as number, to);
  const end = Math.max(made.firsts[last] as number, start);
  const pieces: Piece[] = [];
  let bytes = 0;
  const addText = (begin: number, stop: number): void => {
    const text = textOf(block, terms, begin, stop, turns);
    const piece = storedPiece(hasComma || pieces.length > 0 ? text : text.subarray(1));
    bytes += piece.length;
    pieces.push(piece);
  };
  if (start > from) addText(from, start);
  if (last > first) pieces.push(made.piece(first, last, hasComma || pieces.length > 0));
  if (to > end) addText(end, to);
  const piece = joinedPieces(pieces);
  made.note(from, to, hasComma, piece, bytes);
  return piece;
}

/** Compressed pieces of an answer. */
const piecesSink = ({ budget, turns }: Source): Sink<Piece, DeflatedBlock> => ({
  text: storedPiece,
  head: (head, isWhole) => head.pieces(turns)[isWhole ? 'whole' : 'bare'],
  block: (block, terms) => deflatedBlock(block, terms, budget, turns),
  points: (made, stretch, terms, hasComma) => pointsPiece(turns, terms, stretch, made, hasComma),
});

/** An answer in the book as the slices of one member of gzip. */
export function* gzipSlices(source: Source, answer: Answer, format: LineFormat): Generator<Buffer> {
  let crc = 0;
  let length = 0;
  yield MEMBER_HEAD;
  for (const piece of walk(source, answer, format, piecesSink(source))) {
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
