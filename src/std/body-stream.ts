import { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Readable, type Writable } from 'node:stream';
import { turn } from './turns.ts';

/**
 * The bytes of an answer, in batches of slices that are written together. If the length is not
 * known, the slices of a write are joined.
 */
export interface Body {
  readonly batches: AsyncIterable<readonly Buffer[]> | Iterable<readonly Buffer[]>;
  /** Total length in bytes; null if it is not known yet. */
  readonly bytes: number | null;
}

/** Size of a batch: one write for each small slice would cost more than copying its bytes. */
const BATCH_BYTES = 65_536;

/**
 * Most bytes of one write. The event loop is blocked while the system copies them: 3 ms on a
 * machine whose memory is slow. With writes of half the size, an answer of 8 MB took a quarter
 * more CPU.
 */
const WRITE_BYTES = 524_288;

/** Longest time between two yields to the event loop, in milliseconds. */
const TURN_MS = 1;

/** Splits a batch into writes of at most `WRITE_BYTES`, each a list of slices. */
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

/** Groups slices into batches of about `BATCH_BYTES`. */
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

/** Joins a batch into one slice. */
export const joined = (batch: readonly Buffer[]): Buffer =>
  batch.length === 1 ? (batch[0] as Buffer) : Buffer.concat(batch);

/** Waits until a stream accepts more data, or is closed. */
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
 * Resets the connection of a response whose body failed. Without chunks and a length, as in
 * HTTP/1.0, an orderly close would mark the end of a complete body (RFC 9112, section 6.3). Node
 * accepts other versions as well, and answers them as HTTP/1.0.
 */
function resetUnframed(destination: NodeJS.WritableStream): void {
  if (!(destination instanceof ServerResponse) || destination.req.httpVersion === '1.1') return;
  // Injected requests have no socket.
  if (destination.socket instanceof Socket) destination.socket.resetAndDestroy();
}

/**
 * Called after each write of an answer.
 * @param bytes of the write
 * @param drained resolves when the client has taken what was written, or is disconnected; null if
 *   the next write need not wait for it
 * @returns the wait before the next write; null for none
 */
export type AfterWrite = (bytes: number, drained: Promise<void> | null) => Promise<void> | null;

/**
 * A body as a stream, for `reply.send`. Its own `pipe` sends a batch in one write of the socket and
 * waits for the client before the next one. The inherited `pipe` would need one turn of the event
 * loop for each slice.
 */
export class BodyStream extends Readable {
  readonly body: Body;
  afterWrite: AfterWrite = (_bytes, drained) => drained;
  #batches: AsyncIterator<readonly Buffer[]> | Iterator<readonly Buffer[]> | null = null;

  constructor(body: Body) {
    super();
    this.body = body;
  }

  override pipe<T extends NodeJS.WritableStream>(destination: T): T {
    const out = destination as unknown as Writable;
    this.#write(out).then(
      () => {
        if (!out.writableEnded) this.#end(out);
      },
      (error: Error) => {
        resetUnframed(destination);
        this.destroy(error);
      },
    );
    return destination;
  }

  #end(out: Writable): void {
    // Emits 'end' for listeners of this stream, such as `finished`.
    this.push(null);
    this.resume();
    out.end();
  }

  async #write(out: Writable): Promise<void> {
    const { batches, bytes } = this.body;
    let left = bytes;
    let since = performance.now();
    for await (const batch of batches) {
      for (const write of writesOf(batch)) {
        if (out.destroyed) return;
        let hasRoom = true;
        // Writes of one turn are sent together. Without a length, each would become a chunk.
        if (bytes === null) hasRoom = out.write(joined(write));
        else for (const slice of write) hasRoom = out.write(slice);
        const written = write.reduce((sum, slice) => sum + slice.length, 0);
        if (left !== null) left -= written;
        // With the last byte, because its client may send the next request then.
        if (left === 0) this.#end(out);
        // The batches end by themselves, so that a cache keeps them.
        if (left === 0 && hasRoom) continue;
        const wait = this.afterWrite(written, hasRoom ? null : drained(out));
        if (wait !== null) await wait;
        // A fast client never makes the stream wait: yield, or other requests would starve.
        if (performance.now() - since < TURN_MS) continue;
        await turn();
        since = performance.now();
      }
    }
  }

  /** Serves consumers that read instead of piping, such as a compressor. */
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
