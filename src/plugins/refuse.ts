import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { v7 as uuidv7 } from 'uuid';
import { PROBLEM_TYPE, problemBody } from '../contract/problem.ts';
import { Problem, type ProblemCode } from '../errors.ts';

/** How long a refused client may go on sending, so that it reads its answer and not a reset. */
const LINGER_MS = 1_000;

/** What Node's HTTP parser refuses, before there is a request. */
const PARSER: Record<string, readonly [ProblemCode, string]> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'Send a shorter address and smaller headers'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'The request took too long to arrive'],
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

/**
 * Answers what never became a request; the connection is closed after it.
 * @returns the code of the refusal; null when there was nobody to refuse
 */
export function refuseConnection(
  error: Error & { code?: string },
  socket: Duplex,
): ProblemCode | null {
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
