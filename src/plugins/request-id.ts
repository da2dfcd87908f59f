import { randomFillSync } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { v7 as uuidv7 } from 'uuid';
import { holdsSecret } from '../secrets.ts';

const ACCEPTED = /^[\w-]{8,64}$/;

const ID_BYTES = 16;
/** Random bytes for the next ids: drawing many at once costs little more than drawing a few. */
const pool = new Uint8Array(256 * ID_BYTES);
let drawn = pool.length;

function randomBytes(): Uint8Array {
  if (drawn === pool.length) {
    randomFillSync(pool);
    drawn = 0;
  }
  drawn += ID_BYTES;
  return pool.subarray(drawn - ID_BYTES, drawn);
}

/** The client's own request id when it is plain, else a new UUIDv7. */
export function requestIdOf(request: IncomingMessage): string {
  const sent = request.headers['x-request-id'];
  const isPlain = typeof sent === 'string' && ACCEPTED.test(sent) && !holdsSecret(sent);
  return isPlain ? sent : uuidv7({ rng: randomBytes });
}

/** Puts `x-request-id` on every answer. */
export function requestId(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    done();
  });
}
