import type { Format } from '../contract/formats.ts';
import type { Answer } from '../prices/answer.ts';
import { documentHead } from '../prices/json.ts';
import { BETWEEN } from './heads.ts';

/** The formats of a record in JSON. */
export type LineFormat = Exclude<Format, 'csv'>;

/** What stands around the records of a format. */
interface Frame {
  readonly head: (answer: Answer) => Iterable<Buffer>;
  /** Null where the head of a record has it, too: what stands between two records. */
  readonly between: Buffer | null;
  readonly end: Buffer;
  readonly endOfNothing: Buffer;
}

const NOTHING = Buffer.alloc(0);
const LINE_END = Buffer.from(']}\n');

export const FRAMES: Readonly<Record<LineFormat, Frame>> = {
  json: {
    head: ({ metadata }) => documentHead(metadata),
    between: null,
    end: Buffer.from(`${BETWEEN.slice(0, -1)}]}`),
    endOfNothing: Buffer.from(']}'),
  },
  ndjson: { head: () => [], between: LINE_END, end: LINE_END, endOfNothing: NOTHING },
};

/** Cost of a slice in the account of work: about as much as two points. */
export const SLICE_POINTS = 2;

/** Bytes of other JSON that cost about as much as a point. */
export const BYTES_PER_POINT = 128;
