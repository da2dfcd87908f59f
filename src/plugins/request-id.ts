import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { v7 as uuidv7 } from 'uuid';
import { holdsSecret } from './path.ts';

const ACCEPTED = /^[\w-]{8,64}$/;

/** The client's own request id when it is plain, else a new UUIDv7. */
export function requestIdOf(request: IncomingMessage): string {
  const sent = request.headers['x-request-id'];
  const isPlain = typeof sent === 'string' && ACCEPTED.test(sent) && !holdsSecret(sent);
  return isPlain ? sent : uuidv7();
}

/** Puts `x-request-id` on every answer. */
export function requestId(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
  });
}
