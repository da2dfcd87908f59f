import { Readable, type Writable } from 'node:stream';
import { turn } from './turns.ts';

/**
 * The bytes of an answer, in batches of slices that are written together. Where the length is not
 * known they are joined.
 */
export interface Body {
  readonly batches: AsyncIterable<readonly Buffer[]> | Iterable<readonly Buffer[]>;
  /** How many bytes they are in all; null where that is not known yet. */
  readonly bytes: number | null;
}

/** Bytes of a batch: a write for each small slice would cost more than its bytes. */
const BATCH_BYTES = 65_536;

/** Bytes that are written at once: nobody else is served while the system copies them. */
const WRITE_BYTES = 262_144;

/** How long a body may be written without letting others run, in milliseconds. */
const TURN_MS = 1;

/** The slices of a batch as they are written together, none of them long. */
function* writesOf(batch: readonly Buffer[]): Generator<readonly Buffer[]> {
  let write: Buffer[] = [];
  let bytes = 0;
  for (const slice of batch) {
    for (let at = 0; at < slice.length; at += WRITE_BYTES) {
      const piece = slice.subarray(at, at + WRITE_BYTES);
      if (bytes > 0 && bytes + piece.length > WRITE_BYTES) {
        yield write;
        write = [];
        bytes = 0;
      }
      write.push(piece);
      bytes += piece.length;
    }
  }
  if (bytes > 0) yield write;
}

/** Gathers slices to batches of some size. */
export async function* batched(slices: AsyncIterable<Buffer>): AsyncGenerator<readonly Buffer[]> {
  let batch: Buffer[] = [];
  let bytes = 0;
  for await (const slice of slices) {
    batch.push(slice);
    bytes += slice.length;
    if (bytes < BATCH_BYTES) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}

/** A batch as one slice. */
export const joined = (batch: readonly Buffer[]): Buffer =>
  batch.length === 1 ? (batch[0] as Buffer) : Buffer.concat(batch);

/** Waits until a stream takes more, or will never take anything again. */
const drained = (stream: Writable): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done);
      stream.off('close', done);
      resolve();
    };
    stream.on('drain', done);
    stream.on('close', done);
  });

/**
 * A body as a stream, for `reply.send`. It pipes itself: a batch leaves in one write of the socket,
 * and the next is asked for when the client has taken it. A stream's own way would be a turn for
 * each slice.
 */
export class BodyStream extends Readable {
  readonly body: Body;
  #batches: AsyncIterator<readonly Buffer[]> | Iterator<readonly Buffer[]> | null = null;

  constructor(body: Body) {
    super();
    this.body = body;
  }

  override pipe<T extends NodeJS.WritableStream>(destination: T): T {
    this.#write(destination as unknown as Writable).then(
      () => {
        // What watches this stream learns that it ended well.
        this.push(null);
        this.resume();
        destination.end();
      },
      (error: Error) => this.destroy(error),
    );
    return destination;
  }

  async #write(out: Writable): Promise<void> {
    const { batches, bytes } = this.body;
    let since = performance.now();
    for await (const batch of batches) {
      for (const write of writesOf(batch)) {
        if (out.destroyed) return;
        let free = true;
        // Writes of one turn leave the socket together; without a length each would be a chunk.
        if (bytes === null) free = out.write(joined(write));
        else for (const slice of write) free = out.write(slice);
        if (!free) await drained(out);
        // A client who takes all at once would let nobody else run until it has it.
        if (performance.now() - since < TURN_MS) continue;
        await turn();
        since = performance.now();
      }
    }
  }

  /** For those who read it as any other stream. */
  override _read(): void {
    const { batches } = this.body;
    this.#batches ??=
      Symbol.asyncIterator in batches
        ? batches[Symbol.asyncIterator]()
        : batches[Symbol.iterator]();
    Promise.resolve(this.#batches.next()).then(
      ({ value, done }) => this.push(done ? null : joined(value)),
      (error: Error) => this.destroy(error),
    );
  }
}
