import type { FastifyInstance } from 'fastify';

const WARNING_MS = 30 * 86_400_000;

/** Tells the keeper of a key in its last 30 days when it ends, as an HTTP date. */
export function expiryWarning(app: FastifyInstance): void {
  app.addHook('onRequest', ({ principal }, reply, done) => {
    if (principal?.kind === 'key' && principal.expiresAt !== null) {
      const end = Date.parse(principal.expiresAt);
      if (end - Date.now() < WARNING_MS) {
        reply.header('x-api-key-expires', new Date(end).toUTCString());
      }
    }
    done();
  });
}
