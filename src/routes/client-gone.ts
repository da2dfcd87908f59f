import type { FastifyReply } from 'fastify';

/** A signal that aborts when the client goes away before it has the whole answer. */
export function clientGone(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort(new Error('the client is gone'));
  });
  return controller.signal;
}
