import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  preValidationHookHandler,
} from 'fastify';
import { brokenBy, type SentBody } from '../contract/request/validate.ts';
import { Problem } from '../errors.ts';
import { turn } from '../std/turns.ts';

/** Room for the first pieces of a body that does not come as one. */
const ROOM_BYTES = 4_096;

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
  #isDropped = false;
  readonly #end = Promise.withResolvers<Buffer>();

  /** @param most bytes that it may have; what comes beyond them is thrown away */
  constructor(request: IncomingMessage, most: number) {
    this.#most = most;
    this.#announced = Number(request.headers['content-length'] ?? Number.NaN);
    // Nobody may ever ask for it.
    this.whole.catch(() => {});
    if (this.#announced > most) this.#fail(tooLarge(most));
    request.on('data', (piece: Buffer) => this.#add(piece));
    request.on('end', () => this.#end.resolve(this.#room.subarray(0, this.#length)));
    request.on('error', (cause) => this.#fail(brokenOff(cause)));
    // Without it Node would keep what has come with the head, piece by piece, until a later turn.
    request.read(0);
  }

  /**
   * The bytes once all are there. It fails with `body_too_large` as soon as more are announced or
   * have come, and with `malformed_request` where the client broke it off.
   */
  get whole(): Promise<Buffer> {
    return this.#end.promise;
  }

  /** True once all announced bytes have arrived; Node reports it a moment later. */
  get isWhole(): boolean {
    return this.#length === this.#announced;
  }

  /** Forgets what came and what will come: the request has its answer. */
  drop(): void {
    this.#isDropped = true;
    this.#room = NOTHING;
  }

  #add(piece: Buffer): void {
    if (this.#isDropped) return;
    const length = this.#length + piece.length;
    if (length > this.#most) {
      this.#fail(tooLarge(this.#most));
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

  #fail(problem: Problem): void {
    this.drop();
    this.#end.reject(problem);
  }
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';

/**
 * Receives bodies from their first byte on, whoever sends them: left to Node, one that waits for
 * its sender to be checked may take a hundred times its bytes.
 */
export const receiveBody =
  (most: number): onRequestHookHandler =>
  (request, _reply, done) => {
    if (!hasBody(request.raw)) return done();
    request.context.body = new BodyBytes(request.raw, most);
    // Once Node has parsed what came with the head: often that is the whole body.
    queueMicrotask(done);
  };

/** Drops the body of a request that is answered before its end, and closes the connection. */
export function dropRest({ context: { body }, raw }: FastifyRequest, reply: FastifyReply): void {
  // Injected requests do not say whether they are complete.
  if (body === null || raw.complete !== false || body.isWhole) return;
  body.drop();
  reply.header('connection', 'close');
}

const BOM = 0xfeff;

/** Counts of a body that is not parsed yet; strings are skipped. */
interface Outline {
  /** Names of members, repeated ones included. */
  readonly names: number;
  /** Deepest nesting of objects and lists. */
  readonly depth: number;
}

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

function outlineOf(bytes: Buffer): Outline {
  let [names, depth, open] = [0, 0, 0];
  let isText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) isText = !isText;
    else if (isText) at += byte === BACKSLASH ? 1 : 0;
    else if (byte === COLON) names += 1;
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      open += 1;
      depth = Math.max(depth, open);
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) open -= 1;
  }
  return { names, depth };
}

/** How many members a parsed value has, with all that is in it. */
function membersIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inner: unknown[] = Array.isArray(value) ? value : Object.values(value);
  return inner.reduce<number>(
    (sum, each) => sum + membersIn(each),
    Array.isArray(value) ? 0 : inner.length,
  );
}

/** Far more members than a legal body names. */
const NAMES_MAX = 1_000;

/** Refuses a body with too many members before it is parsed: each would cost time, and memory. */
function checkNames(names: number): void {
  if (names <= NAMES_MAX) return;
  const detail = `The body names more than ${NAMES_MAX} members; no request has so many`;
  throw brokenBy([{ pointer: '', code: 'unknown_field', detail }]);
}

const malformed = (detail: string): Problem => new Problem('malformed_json', detail);
const empty = (): Problem => malformed('The body is empty; send at least {}');

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw malformed('The body is not valid JSON');
  }
}

/**
 * Bytes → value.
 * @throws Problem `malformed_json` with what is wrong, `validation_failed` for too many members
 */
function parseJson(bytes: Buffer, depthMax: number): unknown {
  if (bytes.length === 0) throw empty();
  // Decoding would replace broken sequences in silence.
  if (!isUtf8(bytes)) throw malformed('The body is not valid UTF-8');
  const text = bytes.toString('utf8');
  if (text.charCodeAt(0) === BOM) {
    throw malformed('The body begins with a byte-order mark; leave it out');
  }
  const { names, depth } = outlineOf(bytes);
  if (depth > depthMax) throw malformed(`The body is nested deeper than ${depthMax} levels`);
  checkNames(names);
  const value = parsed(text);
  // JSON.parse keeps the last of members of one name, which would drop a filter in silence.
  if (membersIn(value) < names) throw malformed('The body names one member twice; name each once');
  return value;
}

/** Bodies beyond so many bytes are parsed in a turn of the event loop of their own. */
const LONG_BYTES = 16_384;

/** Refuses what would be read as something else than it says. */
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

/** Refuses a request without the body that its route needs: it reaches no parser. */
export const requireBody: preValidationHookHandler = ({ body, routeOptions }, _reply, done) => {
  if (body === undefined && routeOptions.schema?.body) throw empty();
  done();
};

/** The settings of the service that are needed here, named as in the environment. */
interface BodySettings {
  readonly JSON_DEPTH_MAX: number;
  readonly BODY_BYTES_MAX: number;
}

/**
 * Accepts `application/json` alone as a request body, which routes get as a `SentBody`: an answer
 * that is cached is found by its bytes.
 */
export function jsonBody(app: FastifyInstance, settings: BodySettings): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/json',
    async (request: FastifyRequest, payload: IncomingMessage): Promise<SentBody> => {
      const bytes = await (request.context.body ?? new BodyBytes(payload, settings.BODY_BYTES_MAX))
        .whole;
      // A long body takes milliseconds to parse and to check: one in each turn.
      if (bytes.length > LONG_BYTES) await turn();
      checkMediaType(request);
      return { bytes, parse: () => parseJson(bytes, settings.JSON_DEPTH_MAX) };
    },
  );
}
