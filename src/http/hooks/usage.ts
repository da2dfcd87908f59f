import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import { KeyUse } from '../../auth/keys/use.ts';
import { Exchange } from '../../limits/exchange.ts';
import type { Limits } from '../../limits/limits.ts';
import type { OnCredentialCheck } from './auth.ts';

/**
 * Records the last use of keys, and the counts that instances share for their rate limits. The
 * database account of the pool may write nothing else. A failure to record fails no request.
 * @returns the exchange of counts, and the callback for credential checks
 */
export function usage(
  app: FastifyInstance,
  pool: pg.Pool,
  limits: Limits,
): { readonly exchange: Exchange; readonly onChecked: OnCredentialCheck } {
  const keyUse = new KeyUse(pool, (error) => {
    app.log.warn({ err: error }, 'the last use of keys could not be written; it will be retried');
  });
  const exchange = new Exchange(pool, limits, (error) => {
    if (error) app.log.warn({ err: error }, 'rate limits are enforced by each instance alone');
    else app.log.info('rate limits are enforced for all instances together again');
  });
  const onChecked: OnCredentialCheck = (_request, { principal }) => {
    if (principal?.kind === 'key') keyUse.recordUse(principal.id, Date.now());
  };
  app.addHook('onClose', async () => {
    await Promise.all([keyUse.close(), exchange.close()]);
  });
  return { exchange, onChecked };
}
