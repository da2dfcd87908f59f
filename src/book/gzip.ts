import type { Answer } from '../prices/answer.ts';
import { joinedCrc } from './crc.ts';
import {
  type DeflatedBlock,
  deflatedBlock,
  joinedPieces,
  type Piece,
  prefixedPieces,
  storedPiece,
} from './deflate.ts';
import { type SeriesTerms, textOf } from './fragment.ts';
import { BYTES_PER_POINT, FRAMES, type LineFormat, SLICE_POINTS } from './frames.ts';
import { BETWEEN, deflatedHeadOf, HEAD_COST } from './heads.ts';
import {
  type BookRecord,
  headWithSummary,
  recordsOf,
  type Source,
  withoutRateIn,
} from './records.ts';
import type { Stretch } from './series.ts';
import type { Turns } from './turns.ts';

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

/** The head of a record, with or without what ends the record before it. */
function headPiece(
  source: Source,
  answer: Answer,
  record: BookRecord,
  withoutRate: number,
  which: 'whole' | 'bare',
): Piece {
  const { context: terms } = answer;
  if (terms.plan.options.includeSummary) {
    const text = headWithSummary(source, answer, record, withoutRate);
    source.turns.spend(HEAD_COST);
    return prefixedPieces(text, BETWEEN.length)[which];
  }
  const { bookPrice: of, planned } = record;
  return deflatedHeadOf({ of, terms, planned, withoutRate }, source.budget, source.turns)[which];
}

function* piecesOf(source: Source, answer: Answer, format: LineFormat): Generator<Piece> {
  const { budget, turns } = source;
  const frame = FRAMES[format];
  for (const slice of frame.head(answer)) {
    source.turns.spend(Math.ceil(slice.length / BYTES_PER_POINT));
    yield storedPiece(slice);
  }
  const between = frame.between && storedPiece(frame.between);
  let written = 0;
  for (const record of recordsOf(source, answer)) {
    const { stretches, terms } = record;
    const blocks = stretches.map(({ block }) => deflatedBlock(block, terms, budget, turns));
    const withoutRate = terms.conversion ? withoutRateIn(record, blocks) : 0;
    if (written > 0 && between) yield between;
    const which = written > 0 && !between ? 'whole' : 'bare';
    yield headPiece(source, answer, record, withoutRate, which);
    for (const [index, stretch] of stretches.entries()) {
      yield pointsPiece(turns, terms, stretch, blocks[index] as DeflatedBlock, index > 0);
    }
    written += 1;
  }
  yield storedPiece(written > 0 ? frame.end : frame.endOfNothing);
}

/** An answer in the book as the slices of one member of gzip. */
export function* gzipSlices(source: Source, answer: Answer, format: LineFormat): Generator<Buffer> {
  let crc = 0;
  let length = 0;
  yield MEMBER_HEAD;
  for (const piece of piecesOf(source, answer, format)) {
    crc = joinedCrc(crc, piece.crc, piece.shift);
    length += piece.length;
    source.turns.spend(SLICE_POINTS);
    for (const slice of piece.slices) if (slice.length > 0) yield slice;
  }
  const end = Buffer.alloc(LAST_BLOCK.length + 8);
  end.set(LAST_BLOCK);
  end.writeInt32LE(crc, 2);
  end.writeUInt32LE(length % 4_294_967_296, 6);
  yield end;
}
