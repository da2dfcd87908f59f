import type { IncomingMessage } from 'node:http';
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  preValidationHookHandler,
} from 'fastify';
import type { SentBody } from '../contract/request/validate.ts';
import { brokenRules, Problem } from '../errors.ts';
import { ByteBudget } from '../std/held-bytes.ts';
import { JsonError, parseJson } from '../std/json.ts';
import { turn } from '../std/turns.ts';

/** Initial buffer for a body of several chunks. */
const BUFFER_BYTES_MIN = 4_096;

const EMPTY = Buffer.alloc(0);

/** Bytes of all bodies that arrive or wait: 512 of the longest by default. */
const BODIES_BYTES_MAX = 67_108_864;

const tooManyBodies = (): Problem =>
  new Problem('overloaded', 'Too many bodies are being received; try again after Retry-After');

const tooLarge = (bytesMax: number): Problem =>
  new Problem('body_too_large', `Send at most ${bytesMax} bytes, in several requests if need be`);

const unreadable = (cause: Error): Problem =>
  new Problem('malformed_request', 'The request could not be read', { cause });

/** Buffers of at least this size are freed at once; smaller ones may share their memory. */
const FREED_BYTES_MIN = 4_096;

/**
 * Frees a buffer that nothing else uses. V8 would collect it only after tens of MB of such garbage,
 * and every sender makes some, even if its body is rejected.
 */
function free({ buffer, length }: Buffer): void {
  if (length < FREED_BYTES_MIN || length < buffer.byteLength) return;
  (buffer as ArrayBuffer).transfer(0);
}

/**
 * Receives a request body into one buffer. Node needs about 400 bytes for each queued chunk, and a
 * client may send every byte as a chunk of its own.
 */
export class BodyBytes {
  readonly #bytesMax: number;
  readonly #budget: ByteBudget;
  readonly #holder: string;
  readonly #contentLength: number;
  /** The received bytes, followed by free space. */
  #buffer: Buffer = EMPTY;
  #length = 0;
  #isDropped = false;
  readonly #end = Promise.withResolvers<Buffer>();

  /** @param bytesMax maximum size; the bytes of a larger body are discarded */
  constructor(
    request: IncomingMessage,
    bytesMax: number,
    budget = new ByteBudget(BODIES_BYTES_MAX),
    holder = '',
  ) {
    this.#bytesMax = bytesMax;
    this.#budget = budget;
    this.#holder = holder;
    this.#contentLength = Number(request.headers['content-length'] ?? Number.NaN);
    // Avoids an unhandled rejection if the body is never read.
    this.whole.catch(() => {});
    if (this.#contentLength > bytesMax) this.#fail(tooLarge(bytesMax));
    request.on('data', (piece: Buffer) => this.#add(piece));
    request.on('end', () => {
      this.#end.resolve(this.#buffer.subarray(0, this.#length));
      this.#buffer = EMPTY;
    });
    request.on('error', (cause) => this.#fail(unreadable(cause)));
    // Otherwise Node would queue the chunks that came with the head until a later turn.
    request.read(0);
  }

  /**
   * Resolves with the complete body. Rejects with `body_too_large` as soon as the announced or
   * received size is too large, and with `malformed_request` if the client aborts the body.
   */
  get whole(): Promise<Buffer> {
    return this.#end.promise;
  }

  /** True once all announced bytes have arrived, before Node emits `end`. */
  get isWhole(): boolean {
    return this.#length === this.#contentLength;
  }

  /** Discards the received and all further bytes, because the response is sent. */
  drop(): void {
    this.#isDropped = true;
    free(this.#buffer);
    this.#buffer = EMPTY;
    this.#budget.giveBack(this.#holder, this.#length);
    this.#length = 0;
  }

  #add(piece: Buffer): void {
    if (!this.#isDropped) this.#keep(piece);
    if (this.#isDropped) free(piece);
  }

  #keep(piece: Buffer): void {
    const length = this.#length + piece.length;
    if (length > this.#bytesMax) {
      this.#fail(tooLarge(this.#bytesMax));
    } else if (!this.#budget.take(this.#holder, piece.length)) {
      this.#fail(tooManyBodies());
    } else {
      this.#append(piece, length);
      this.#length = length;
    }
  }

  #append(piece: Buffer, length: number): void {
    if (this.#length === 0) {
      this.#buffer = piece;
    } else {
      if (length > this.#buffer.length) this.#grow(length);
      this.#buffer.set(piece, this.#length);
      free(piece);
    }
  }

  #grow(length: number): void {
    const wanted = Math.max(BUFFER_BYTES_MIN, length, 2 * this.#buffer.length);
    const room = Buffer.allocUnsafeSlow(Math.min(wanted, this.#bytesMax));
    room.set(this.#buffer.subarray(0, this.#length));
    free(this.#buffer);
    this.#buffer = room;
  }

  #fail(problem: Problem): void {
    this.drop();
    this.#end.reject(problem);
  }
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';

/**
 * Hook: receives the body from its first byte. During the checks of the request, Node's own queue
 * could take a hundred times the size of the body.
 */
export function receiveBody(
  bytesMax: number,
  holderOf: (request: FastifyRequest) => string,
): onRequestHookHandler {
  const budget = new ByteBudget(BODIES_BYTES_MAX);
  return (request, _reply, done) => {
    if (!hasBody(request.raw)) return done();
    const body = new BodyBytes(request.raw, bytesMax, budget, holderOf(request));
    request.context.body = body;
    request.context.work.onEnd(() => body.drop());
    // Node first parses the bytes that came with the head, often the complete body.
    queueMicrotask(done);
  };
}

/** Discards an incomplete body when the response is sent, and closes the connection. */
export function dropUnreadBody(
  { context: { body }, raw }: FastifyRequest,
  reply: FastifyReply,
): void {
  // Injected requests have no `complete`.
  if (body === null || raw.complete !== false || body.isWhole) return;
  body.drop();
  reply.header('connection', 'close');
}

/** Maximum number of member names; a valid body has far fewer. */
const NAMES_MAX = 1_000;

/** Rejects a body with too many members before parsing, to bound its time and memory. */
function checkNames(names: number): void {
  if (names <= NAMES_MAX) return;
  const detail = `The body names more than ${NAMES_MAX} members; no request has so many`;
  throw brokenRules([{ pointer: '', code: 'unknown_field', detail }]);
}

const malformed = (detail: string): Problem => new Problem('malformed_json', detail);
const empty = (): Problem => malformed('The body is empty; send at least {}');

/**
 * Parses a JSON body strictly.
 * @throws Problem `malformed_json` with the reason, `validation_failed` for too many members
 */
function parseBody(bytes: Buffer, depthMax: number): unknown {
  if (bytes.length === 0) throw empty();
  try {
    return parseJson(bytes, depthMax, checkNames);
  } catch (error) {
    throw error instanceof JsonError ? malformed(`The body ${error.message}`) : error;
  }
}

/** Size from which a body is parsed in an event-loop turn of its own. */
const LONG_BYTES = 16_384;

/** Rejects other charsets and content codings, which would be misread. */
function checkMediaType(request: FastifyRequest): void {
  const type = request.headers['content-type'] ?? '';
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(type)?.[1];
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    throw new Problem('unsupported_media_type', 'Send the body as application/json in UTF-8');
  }
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Problem('unsupported_media_type', 'Send the body uncompressed');
  }
}

/** Hook: rejects a missing body, which Fastify does not pass to a parser. */
export const requireBody: preValidationHookHandler = ({ body, routeOptions }, _reply, done) => {
  if (body === undefined && routeOptions.schema?.body) throw empty();
  done();
};

/** Limits of request bodies. */
interface BodyLimits {
  readonly depthMax: number;
  readonly bytesMax: number;
}

/**
 * Accepts only `application/json` as request body. Routes get a `SentBody`, because its bytes are
 * the cache key of an answer.
 */
export function jsonBody(app: FastifyInstance, { depthMax, bytesMax }: BodyLimits): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/json',
    async (request: FastifyRequest, payload: IncomingMessage): Promise<SentBody> => {
      const bytes = await (request.context.body ?? new BodyBytes(payload, bytesMax)).whole;
      // A long body takes milliseconds to parse and validate: at most one per event-loop turn.
      if (bytes.length > LONG_BYTES) await turn();
      checkMediaType(request);
      return { bytes, parse: () => parseBody(bytes, depthMax) };
    },
  );
}
