import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { Problem } from '../errors.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The bytes of a request that has any, which come while other things are checked. */
    bodyBytes: BodyBytes | null;
  }
}

/** Room for the first pieces of a body that does not come as one. */
const ROOM_BYTES = 4_096;

type Done = (error: Problem | null, bytes: Buffer) => void;

const NOTHING = Buffer.alloc(0);

const tooLarge = (most: number): Problem =>
  new Problem('body_too_large', `Send at most ${most} bytes, in several requests if need be`);

const brokenOff = (cause: Error): Problem =>
  new Problem('malformed_request', 'The request could not be read', { cause });

/**
 * The body of a request as it comes, in memory of not much more than its bytes: each piece is some
 * 400 bytes to Node, however small, and a client may send every byte as a chunk of its own.
 */
export class BodyBytes {
  readonly #most: number;
  readonly #announced: number;
  /** Begins with what has come; the rest is room. */
  #room: Buffer = NOTHING;
  #length = 0;
  #failure: Problem | null = null;
  #isOver = false;
  #done: Done | null = null;

  /** @param most bytes that it may have; what comes beyond them is thrown away */
  constructor(request: IncomingMessage, most: number) {
    this.#most = most;
    this.#announced = Number(request.headers['content-length'] ?? Number.NaN);
    if (this.#announced > most) this.#end(tooLarge(most));
    request.on('data', (piece: Buffer) => this.#add(piece));
    request.on('end', () => this.#end(null));
    request.on('error', (cause) => this.#end(brokenOff(cause)));
    // Without it Node would keep what has come with the head, piece by piece, until a later turn.
    request.read(0);
  }

  /**
   * Calls once the body is there, at once where it is: with its bytes, or `body_too_large` as soon
   * as more are announced or have come, or `malformed_request` where the client broke it off.
   */
  whenOver(done: Done): void {
    this.#done = done;
    if (this.#isOver) this.#tell();
  }

  /** Whether all bytes that were announced have come; Node says so a moment later. */
  get isWhole(): boolean {
    return this.#length === this.#announced;
  }

  /** Forgets what came and what will come: the request has its answer. */
  drop(): void {
    this.#isOver = true;
    this.#room = NOTHING;
  }

  #add(piece: Buffer): void {
    if (this.#isOver) return;
    const length = this.#length + piece.length;
    if (length > this.#most) {
      this.#end(tooLarge(this.#most));
    } else {
      this.#keep(piece, length);
      this.#length = length;
    }
  }

  #keep(piece: Buffer, length: number): void {
    if (this.#length === 0) {
      this.#room = piece;
    } else {
      if (length > this.#room.length) this.#grow(length);
      this.#room.set(piece, this.#length);
    }
  }

  #grow(length: number): void {
    const wanted = Math.max(ROOM_BYTES, length, 2 * this.#room.length);
    const room = Buffer.allocUnsafeSlow(Math.min(wanted, this.#most));
    room.set(this.#room.subarray(0, this.#length));
    this.#room = room;
  }

  #end(failure: Problem | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#failure = failure;
    if (failure !== null) this.#room = NOTHING;
    this.#tell();
  }

  #tell(): void {
    const bytes = this.#failure === null ? this.#room.subarray(0, this.#length) : NOTHING;
    this.#done?.(this.#failure, bytes);
  }
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';

/**
 * Receives bodies from their first byte on, whoever sends them: left to Node, one that waits for
 * its sender to be checked may take a hundred times its bytes. An answer before the end of the body
 * drops what came, and closes the connection. Registered before what waits.
 */
export function receiveBodies(app: FastifyInstance, most: number): void {
  app.decorateRequest('bodyBytes', null);
  app.addHook('onRequest', (request, _reply, done) => {
    if (!hasBody(request.raw)) return done();
    request.bodyBytes = new BodyBytes(request.raw, most);
    // Once Node has parsed what came with the head: often that is the whole body.
    queueMicrotask(done);
  });
  app.addHook('onSend', (request, reply, payload, done) => {
    const { bodyBytes, raw } = request;
    if (bodyBytes !== null && raw.complete === false && !bodyBytes.isWhole) {
      bodyBytes.drop();
      reply.header('connection', 'close');
    }
    done(null, payload);
  });
}
