import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import { KeyUse } from '../../auth/keys/use.ts';
import type { OnCredentialCheck } from './auth.ts';

/**
 * Records the last use of keys. The database account of the pool may write nothing else. A failure
 * to record fails no request.
 * @returns the callback for credential checks
 */
export function recordUse(app: FastifyInstance, pool: pg.Pool): OnCredentialCheck {
  const keyUse = new KeyUse(pool, (error) => {
    app.log.warn({ err: error }, 'the last use of keys could not be written; it will be retried');
  });
  app.addHook('onClose', () => keyUse.close());
  return (_request, { principal }) => {
    if (principal?.kind === 'key') keyUse.recordUse(principal.id, Date.now());
  };
}
