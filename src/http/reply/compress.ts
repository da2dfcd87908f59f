import { pipeline, type Transform } from 'node:stream';
import { promisify } from 'node:util';
import {
  brotliCompress,
  constants,
  createBrotliCompress,
  createGzip,
  createZstdCompress,
  gzip,
  zstdCompress,
} from 'node:zlib';
import { type Body, joined } from '../../std/body-stream.ts';
import type { Coding } from '../../std/negotiation.ts';

/** Output buffer size of an encoder. */
const CHUNK_BYTES = 65_536;

/** Fastest level of each coding: higher levels cost more time than they save in transfer. */
const OPTIONS = {
  gzip: { level: 1, chunkSize: CHUNK_BYTES },
  br: { params: { [constants.BROTLI_PARAM_QUALITY]: 1 }, chunkSize: CHUNK_BYTES },
  zstd: { params: { [constants.ZSTD_c_compressionLevel]: 1 }, chunkSize: CHUNK_BYTES },
};

const CODERS: Readonly<Record<Coding, () => Transform>> = {
  gzip: () => createGzip(OPTIONS.gzip),
  br: () => createBrotliCompress(OPTIONS.br),
  zstd: () => createZstdCompress(OPTIONS.zstd),
};

const [gzipWhole, brotliWhole, zstdWhole] = [
  promisify<Buffer, object, Buffer>(gzip),
  promisify<Buffer, object, Buffer>(brotliCompress),
  promisify<Buffer, object, Buffer>(zstdCompress),
];

/** Best levels, for documents that are compressed once and sent often. */
const BEST = {
  gzip: { level: 9 },
  br: { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } },
  zstd: { params: { [constants.ZSTD_c_compressionLevel]: 19 } },
};

const WHOLE: Readonly<Record<Coding, (bytes: Buffer, levels: typeof BEST) => Promise<Buffer>>> = {
  gzip: (bytes, { gzip }) => gzipWhole(bytes, gzip),
  br: (bytes, { br }) => brotliWhole(bytes, br),
  zstd: (bytes, { zstd }) => zstdWhole(bytes, zstd),
};

/** Compresses a buffer at the fastest level. */
export const compressed = (bytes: Buffer, coding: Coding): Promise<Buffer> =>
  WHOLE[coding](bytes, OPTIONS);

/** Compresses a document at the best level, which is slow. */
export const compressedOnce = (bytes: Buffer, coding: Coding): Promise<Buffer> =>
  WHOLE[coding](bytes, BEST);

/** Size to which slices are joined before encoding: many small writes would cost more. */
const INPUT_BYTES = 65_536;

async function* joinedSlices(batches: Body['batches']): AsyncGenerator<Buffer> {
  for await (const batch of batches) {
    let some: Buffer[] = [];
    let bytes = 0;
    for (const slice of batch) {
      some.push(slice);
      bytes += slice.length;
      if (bytes < INPUT_BYTES) continue;
      yield joined(some);
      some = [];
      bytes = 0;
    }
    if (some.length > 0) yield joined(some);
  }
}

/**
 * Compresses batches with backpressure: a batch is read when the output of the previous ones is
 * consumed. If the consumer stops, the source stops; an error of the source is thrown here.
 */
export async function* compressedBatches(
  batches: Body['batches'],
  coding: Coding,
): AsyncGenerator<readonly Buffer[]> {
  const coder = CODERS[coding]();
  // An error destroys the coder, which then throws it to the loop below.
  pipeline(joinedSlices(batches), coder, () => {});
  for await (const chunk of coder) yield [chunk as Buffer];
}
