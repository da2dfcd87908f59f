import { Readable, type Writable } from 'node:stream';

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
    for await (const batch of batches) {
      if (out.destroyed) return;
      let free = true;
      // Writes of one turn leave the socket together; without a length each would be a chunk.
      if (bytes === null) free = out.write(joined(batch));
      else for (const slice of batch) free = out.write(slice);
      if (!free) await drained(out);
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
