import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { v7 as uuidv7 } from 'uuid';
import { PROBLEM_TYPE, problemBody } from '../../contract/schemas/problem.ts';
import { Problem, type ProblemCode } from '../../errors.ts';
import { SECURITY_HEADERS } from '../head.ts';

/** Time before a rejected connection is destroyed: an early reset would discard the response. */
const LINGER_MS = 1_000;

/** Timed-out connections that are rejected in one event-loop turn. */
const TIMEOUTS_PER_TURN = 4;

const TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT';

/** Problems by the error code of Node's HTTP parser. */
const PARSER: Record<string, readonly [ProblemCode, string]> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'Send a shorter address and smaller headers'],
  [TIMEOUT]: ['request_timeout', 'The request took too long to arrive'],
};

/** Undocumented fields of a Node socket: the arriving request, and the reply being written. */
interface SocketState extends Duplex {
  readonly parser?: { readonly incoming?: IncomingMessage | null } | null;
  readonly _httpMessage?: ServerResponse | null;
}

/** True while a request body is incomplete. */
export const isArriving = ({ parser }: SocketState): boolean =>
  parser?.incoming?.complete === false;

/** True once a reply has begun: nothing else may be written to the connection. */
const isAnswering = ({ _httpMessage }: SocketState): boolean => _httpMessage?.headersSent === true;

/** True once the reply is written completely. */
const isAnswered = ({ _httpMessage }: SocketState): boolean =>
  _httpMessage?.writableEnded !== false;

/** Log fields of a connection that was rejected before a request was parsed. */
export interface RejectedConnection {
  readonly code: ProblemCode;
  readonly status: number;
  readonly reqId: string;
  readonly remoteAddress?: string | undefined;
}

/** Closes a connection after its pending writes. */
export function closeAfterWrite(socket: Duplex): void {
  // Without a listener, a connection reset would crash the service.
  socket.on('error', () => socket.destroy());
  socket.end(() => setTimeout(() => socket.destroy(), LINGER_MS).unref());
}

/** Writes a problem to a connection without a request object, and closes it. */
function answer(
  socket: Duplex & { readonly remoteAddress?: string },
  problem: Problem,
): RejectedConnection {
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
    ...Object.entries({ ...SECURITY_HEADERS, ...problem.headers }).map(
      ([name, value]) => `${name}: ${value}`,
    ),
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  closeAfterWrite(socket);
  return { code: problem.code, status: problem.statusCode, reqId: requestId, remoteAddress };
}

/** An error of Node's HTTP parser. */
type ParserError = Error & { readonly code?: string };

/** True if the client half-closed the connection within a request. */
const isCutOff = ({ code }: ParserError): boolean => code === 'HPE_INVALID_EOF_STATE';

const problemOf = ({ code }: ParserError): Problem => {
  const known = PARSER[code ?? ''];
  if (known) return new Problem(...known);
  return new Problem('malformed_request', 'The request is not valid HTTP/1.1');
};

/** True if Node's timeout for a request, or for the next request, has elapsed. */
export const isTimeout = ({ code }: ParserError): boolean => code === TIMEOUT;

/**
 * Rejects connections before a request is parsed. Node reports all timeouts in one event-loop turn;
 * they are rejected over several turns, so that a thousand of them do not block other requests.
 */
export class Refusals {
  readonly #report: (refused: RejectedConnection) => void;
  /** Timed-out connections that are not rejected yet, oldest first. */
  readonly #timedOut = new Map<Duplex, ParserError>();

  /** @param report called for each rejected connection */
  constructor(report: (rejected: RejectedConnection) => void) {
    this.#report = report;
  }

  /** Rejects a connection: invalid HTTP at once, a timeout in one of the next turns. */
  refuse(error: ParserError, socket: Duplex): void {
    if (isTimeout(error)) {
      if (this.#timedOut.size === 0) setImmediate(() => this.#refuseSome());
      this.#timedOut.set(socket, error);
    } else {
      this.#refuseNow(error, socket);
    }
  }

  /** Writes a problem, and closes the connection. */
  refuseWith(problem: Problem, socket: Duplex): void {
    this.#report(answer(socket, problem));
  }

  /**
   * Cancels the pending rejection of a connection, because a reply is about to be sent. If it
   * returns true, the caller must close the connection after the reply.
   */
  cancel(socket: Duplex): boolean {
    return this.#timedOut.delete(socket);
  }

  #refuseSome(): void {
    let left = TIMEOUTS_PER_TURN;
    for (const [socket, error] of this.#timedOut) {
      this.#timedOut.delete(socket);
      this.#refuseNow(error, socket);
      left -= 1;
      if (left === 0) break;
    }
    if (this.#timedOut.size > 0) setImmediate(() => this.#refuseSome());
  }

  #refuseNow(error: ParserError, socket: Duplex): void {
    // Bytes that arrive after the rejection cause further parser errors.
    if (socket.writableEnded) return;
    const isGone = !socket.writable || error.code === 'ECONNRESET';
    // The reply is sent, and only the rest of the body is invalid.
    if (!isGone && isArriving(socket) && isAnswered(socket)) closeAfterWrite(socket);
    else if (isGone || isAnswering(socket)) socket.destroy();
    // A half-closed client may still read. Its request logs the end.
    else if (isCutOff(error) && isArriving(socket)) answer(socket, problemOf(error));
    else this.refuseWith(problemOf(error), socket);
  }
}
