import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { v7 as uuidv7 } from 'uuid';
import { PROBLEM_TYPE, problemBody } from '../../contract/schemas/problem.ts';
import { Problem, type ProblemCode } from '../../errors.ts';
import { SECURITY_HEADERS } from '../request-head.ts';
import { type Connections, closeAfterWrite } from './connections.ts';

/** Problems by the error code of Node's HTTP parser. */
const PARSER: Record<string, readonly [ProblemCode, string]> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'Send a shorter address and smaller headers'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'The request took too long to arrive'],
};

/** Log fields of a connection that was rejected before a request was parsed. */
export interface RejectedConnection {
  readonly code: ProblemCode;
  readonly status: number;
  readonly reqId: string;
  readonly remoteAddress?: string | undefined;
}

/** Writes a problem to a connection without a request object, and closes it. */
export function answer(
  socket: Duplex & { readonly remoteAddress?: string | undefined },
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

const problemOf = ({ code }: ParserError): Problem =>
  new Problem(
    ...(PARSER[code ?? ''] ?? ['malformed_request', 'The request is not valid HTTP/1.1']),
  );

/**
 * Rejects what Node's parser rejects, with a problem, and closes the connection.
 * @param report called for each rejected connection
 */
export function refuse(
  error: ParserError,
  socket: Socket,
  connections: Connections,
  report: (rejected: RejectedConnection) => void,
): void {
  // Bytes that arrive after the rejection cause further parser errors.
  if (socket.writableEnded) return;
  const reply = connections.replies.get(socket);
  const isArriving = reply?.req.complete === false;
  if (!socket.writable || error.code === 'ECONNRESET') socket.destroy();
  // Only the rest of a rejected body, or a further request, is invalid or late.
  else if (reply && (reply.writableEnded || !isArriving)) connections.close(socket);
  else if (reply?.headersSent) socket.destroy();
  else {
    const rejected = answer(socket, problemOf(error));
    // A client that half-closed within a request may still read; its request logs the end.
    if (error.code !== 'HPE_INVALID_EOF_STATE' || !isArriving) report(rejected);
  }
}
