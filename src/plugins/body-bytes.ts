import type { IncomingMessage } from 'node:http';
import { Problem } from '../errors.ts';

/** Room for the first pieces of a body that does not come as one. */
const ROOM_BYTES = 4_096;

type Done = (error: Problem | null, bytes: Buffer) => void;

const NOTHING = Buffer.alloc(0);

const tooLarge = (): Problem =>
  new Problem('body_too_large', 'Send a smaller body, in several requests');

/** Pieces that have come, as one: each takes some 400 bytes of memory, even if it is of one. */
class Collected {
  /** Begins with what has come; the rest is room. */
  #room: Buffer = NOTHING;
  length = 0;

  add(piece: Buffer, most: number): void {
    const length = this.length + piece.length;
    if (this.length === 0) {
      this.#room = piece;
    } else {
      if (length > this.#room.length) this.#grow(length, most);
      this.#room.set(piece, this.length);
    }
    this.length = length;
  }

  get bytes(): Buffer {
    return this.#room.subarray(0, this.length);
  }

  #grow(length: number, most: number): void {
    const wanted = Math.max(ROOM_BYTES, length, 2 * this.#room.length);
    const room = Buffer.allocUnsafeSlow(Math.min(wanted, most));
    room.set(this.bytes);
    this.#room = room;
  }
}

/**
 * Reads the body of a request, in memory of not much more than its bytes, however small the pieces
 * that it comes in.
 * @param most bytes that it may have
 * @param done is called once: with the bytes, or `body_too_large` as soon as more are announced or
 *   have come, or `malformed_request` where the client broke it off
 */
export function readBody(request: IncomingMessage, most: number, done: Done): void {
  const collected = new Collected();
  const onData = (piece: Buffer): void => {
    if (collected.length + piece.length > most) end(tooLarge());
    else collected.add(piece, most);
  };
  const onEnd = (): void => end(null);
  const onError = (cause: Error): void =>
    end(new Problem('malformed_request', 'The request could not be read', { cause }));
  const end = (error: Problem | null): void => {
    request.off('data', onData).off('end', onEnd).off('error', onError);
    done(error, error === null ? collected.bytes : NOTHING);
  };
  if (Number(request.headers['content-length'] ?? 0) > most) done(tooLarge(), NOTHING);
  else request.on('data', onData).on('end', onEnd).on('error', onError);
}
