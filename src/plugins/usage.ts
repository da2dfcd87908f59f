import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import { lastUsedOf } from '../auth/last-used.ts';
import type { Limits } from '../limits/limits.ts';
import { Exchange } from '../limits/shared.ts';

/**
 * What the service writes about its own use, over connections of their own with an account that
 * may write nothing else: when keys were last used, and the counts that instances share so that
 * rate limits hold for all of them together. Its failure fails no request.
 * @returns the exchange of these counts, for the metrics
 */
export function usage(app: FastifyInstance, pool: pg.Pool, limits: Limits): Exchange {
  const lastUsed = lastUsedOf(pool, (error) => {
    app.log.warn(
      { err: error },
      'the last use of keys could not be written; it will be tried again',
    );
  });
  const exchange = new Exchange(pool, limits, (error) => {
    if (error) app.log.warn({ err: error }, 'rate limits hold for each instance by itself');
    else app.log.info('rate limits hold for all instances together again');
  });
  app.addHook('onResponse', async ({ principal }) => {
    if (principal?.kind === 'key') lastUsed.note(principal.id, Date.now());
  });
  app.addHook('onClose', async () => {
    await Promise.all([lastUsed.close(), exchange.close()]);
  });
  return exchange;
}
