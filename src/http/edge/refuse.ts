import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { v7 as uuidv7 } from 'uuid';
import { PROBLEM_TYPE, problemBody } from '../../contract/schemas/problem.ts';
import { Problem, type ProblemCode } from '../../errors.ts';
import { CAREFUL_HEADERS } from '../head.ts';

/** How long a refused client may go on sending, so that it reads its answer and not a reset. */
const LINGER_MS = 1_000;

/** How many clients that took too long are refused in one turn of the event loop. */
const LATE_PER_TURN = 4;

const TOO_LATE = 'ERR_HTTP_REQUEST_TIMEOUT';

/** Errors of Node's HTTP parser, before there is a request. */
const PARSER: Record<string, readonly [ProblemCode, string]> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'Send a shorter address and smaller headers'],
  [TOO_LATE]: ['request_timeout', 'The request took too long to arrive'],
};

/** Fields that Node keeps of a connection: the arriving request, and the answer being written. */
interface Connection extends Duplex {
  readonly parser?: { readonly incoming?: IncomingMessage | null } | null;
  readonly _httpMessage?: ServerResponse | null;
}

/** True while a part of a request body has not arrived on the connection. */
export const isArriving = ({ parser }: Connection): boolean => parser?.incoming?.complete === false;

/** True once an answer has begun on the connection: nothing else may be written into it. */
const isAnswering = ({ _httpMessage }: Connection): boolean => _httpMessage?.headersSent === true;

/** True once the answer is written to its end. */
const isAnswered = ({ _httpMessage }: Connection): boolean => _httpMessage?.writableEnded !== false;

/** A refusal of what never became a request. */
export interface Refused {
  readonly code: ProblemCode;
  readonly status: number;
  readonly reqId: string;
  readonly remoteAddress?: string | undefined;
}

/** Closes a connection once what was written is out. */
export function hangUp(socket: Duplex): void {
  // A client that resets the connection now must not end the service.
  socket.on('error', () => socket.destroy());
  socket.end(() => setTimeout(() => socket.destroy(), LINGER_MS).unref());
}

/** Answers on a connection that has no request object with a problem, and closes it. */
function answer(socket: Duplex & { readonly remoteAddress?: string }, problem: Problem): Refused {
  const { remoteAddress } = socket;
  const requestId = uuidv7();
  const body = problemBody(problem, '', requestId);
  const head = [
    `HTTP/1.1 ${problem.statusCode} ${STATUS_CODES[problem.statusCode]}`,
    `content-type: ${PROBLEM_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    'cache-control: no-store',
    'connection: close',
    ...Object.entries({ ...CAREFUL_HEADERS, ...problem.headers }).map(
      ([name, value]) => `${name}: ${value}`,
    ),
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  hangUp(socket);
  return { code: problem.code, status: problem.statusCode, reqId: requestId, remoteAddress };
}

/** An error of Node's HTTP parser, before there is a request. */
type ParserError = Error & { readonly code?: string };

/** True if the client ended its half of the connection in the middle of a request. */
const isCutOff = ({ code }: ParserError): boolean => code === 'HPE_INVALID_EOF_STATE';

const problemOf = ({ code }: ParserError): Problem => {
  const known = PARSER[code ?? ''];
  if (known) return new Problem(...known);
  return new Problem('malformed_request', 'The request is not valid HTTP/1.1');
};

/** True if Node's time limit for a request, or for the wait for one, has ended. */
export const isTooLate = ({ code }: ParserError): boolean => code === TOO_LATE;

/**
 * Refuses what never became a request. Node finds all that is too late in one turn of the event
 * loop; they are refused over several, so that a thousand of them keep nobody else waiting.
 */
export class Refusals {
  readonly #tell: (refused: Refused) => void;
  /** Those that are still to be refused, longest first. */
  readonly #late = new Map<Duplex, ParserError>();

  /** @param tell hears of each refusal */
  constructor(tell: (refused: Refused) => void) {
    this.#tell = tell;
  }

  /** Refuses what broke a rule of HTTP at once, and what was too late soon. */
  refuse(error: ParserError, socket: Duplex): void {
    if (isTooLate(error)) {
      if (this.#late.size === 0) setImmediate(() => this.#refuseSome());
      this.#late.set(socket, error);
    } else {
      this.#refuseNow(error, socket);
    }
  }

  /** Refuses a connection with a problem, and closes it. */
  refuseWith(problem: Problem, socket: Duplex): void {
    this.#tell(answer(socket, problem));
  }

  /**
   * To be asked before an answer goes out: whether its connection was still to be refused. Then it
   * no longer is, and has to be closed after the answer, which is the only one.
   */
  isAnswered(socket: Duplex): boolean {
    return this.#late.delete(socket);
  }

  #refuseSome(): void {
    let left = LATE_PER_TURN;
    for (const [socket, error] of this.#late) {
      this.#late.delete(socket);
      this.#refuseNow(error, socket);
      left -= 1;
      if (left === 0) break;
    }
    if (this.#late.size > 0) setImmediate(() => this.#refuseSome());
  }

  #refuseNow(error: ParserError, socket: Duplex): void {
    // Bytes that arrive after the refusal fail again.
    if (socket.writableEnded) return;
    const isGone = !socket.writable || error.code === 'ECONNRESET';
    // The rest of the body of a request that has its answer is wrong.
    if (!isGone && isArriving(socket) && isAnswered(socket)) hangUp(socket);
    else if (isGone || isAnswering(socket)) socket.destroy();
    // A client that closed only its half may still read; its request reports that it left.
    else if (isCutOff(error) && isArriving(socket)) answer(socket, problemOf(error));
    else this.refuseWith(problemOf(error), socket);
  }
}
