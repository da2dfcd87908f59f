import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type t from 'tap';

/** Answers one request, or leaves it without an answer. */
export type Responder = (reply: ServerResponse, request: IncomingMessage) => void;

/** Answers with a body: a text as it is, everything else as JSON. */
export const json =
  (body: unknown, headers: Record<string, string> = {}, status = 200): Responder =>
  (reply) => {
    reply.writeHead(status, { 'content-type': 'application/json', ...headers });
    reply.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

/** Answers with a problem of this status and code. */
export const refused = (
  status: number,
  code: string,
  headers: Record<string, string> = {},
): Responder =>
  json(
    { status, code, detail: `refused as ${code}`, requestId: 'r-1' },
    { 'content-type': 'application/problem+json', ...headers },
    status,
  );

/** Closes the connection without an answer. */
export const closedConnection: Responder = (reply) => reply.destroy();

/** A server that clients of a test ask. */
export interface ScriptedServer {
  readonly url: string;
  /** The number of requests so far. */
  requests(): number;
}

/** A server that gives each request the next of some answers, the last one for ever. */
export async function scriptedServer(
  test: Pick<typeof t, 'teardown'>,
  answers: readonly Responder[],
): Promise<ScriptedServer> {
  let requests = 0;
  const server = createServer((request, reply) => {
    const answer = answers[Math.min(requests, answers.length - 1)];
    requests += 1;
    request.resume().on('end', () => answer?.(reply, request));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, requests: () => requests };
}
