import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { v7 as uuidv7 } from 'uuid';
import { PROBLEM_TYPE, problemBody } from '../contract/problem.ts';
import { Problem, type ProblemCode } from '../errors.ts';

/** How long a refused client may go on sending, so that it reads its answer and not a reset. */
const LINGER_MS = 1_000;

/** How many clients that took too long are refused in one turn of the event loop. */
const LATE_PER_TURN = 4;

const TOO_LATE = 'ERR_HTTP_REQUEST_TIMEOUT';

/** What Node's HTTP parser refuses, before there is a request. */
const PARSER: Record<string, readonly [ProblemCode, string]> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'Send a shorter address and smaller headers'],
  [TOO_LATE]: ['request_timeout', 'The request took too long to arrive'],
};

/** Whether an answer has begun on the connection: nothing else may be written into it. */
const isAnswering = (socket: Duplex & { readonly _httpMessage?: ServerResponse | null }): boolean =>
  socket._httpMessage?.headersSent === true;

/** Answers on a connection that has no request object with a problem, and closes it. */
export function refuse(socket: Duplex, problem: Problem): void {
  // A client that resets the connection now must not end the service.
  socket.on('error', () => socket.destroy());
  const requestId = uuidv7();
  const body = problemBody(problem, '', requestId);
  const head = [
    `HTTP/1.1 ${problem.statusCode} ${STATUS_CODES[problem.statusCode]}`,
    `content-type: ${PROBLEM_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    'cache-control: no-store',
    'connection: close',
    ...Object.entries(problem.headers).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/** An error of Node's HTTP parser, before there is a request. */
type ParserError = Error & { readonly code?: string };

/**
 * Answers what never became a request; the connection is closed after it.
 * @returns the code of the refusal; null when there was nobody to refuse
 */
function refuseConnection(error: ParserError, socket: Duplex): ProblemCode | null {
  // What goes on arriving after the refusal fails again.
  if (socket.writableEnded) return null;
  if (!socket.writable || error.code === 'ECONNRESET' || isAnswering(socket)) {
    socket.destroy();
    return null;
  }
  const [code, detail] = PARSER[error.code ?? ''] ?? [
    'malformed_request' as const,
    'The request is not valid HTTP/1.1',
  ];
  refuse(socket, new Problem(code, detail));
  return code;
}

/** Whether Node gave up a request, or the wait for one, that did not arrive in its time. */
export const isTooLate = ({ code }: ParserError): boolean => code === TOO_LATE;

/**
 * Refuses what never became a request. Node finds all that is too late in one turn of the event
 * loop; they are refused over several, so that a thousand of them keep nobody else waiting.
 */
export class Refusals {
  readonly #tell: (code: ProblemCode) => void;
  /** Those that are still to be refused, longest first. */
  readonly #late = new Map<Duplex, ParserError>();

  /** @param tell hears the code of each refusal */
  constructor(tell: (code: ProblemCode) => void) {
    this.#tell = tell;
  }

  refuse(error: ParserError, socket: Duplex): void {
    if (isTooLate(error)) {
      if (this.#late.size === 0) setImmediate(() => this.#refuseSome());
      this.#late.set(socket, error);
    } else {
      this.#refuseNow(error, socket);
    }
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
    const code = refuseConnection(error, socket);
    if (code !== null) this.#tell(code);
  }
}
