import type { FastifyInstance, FastifyRequest } from 'fastify';
import type pg from 'pg';
import { publicIdOf } from '../../auth/keys/format.ts';
import { KeyUse } from '../../auth/keys/use.ts';
import type { Principal } from '../../auth/principal.ts';
import { Exchange } from '../../limits/exchange.ts';
import type { Limits } from '../../limits/limits.ts';
import type { HearVerdict } from './auth.ts';

/**
 * The public id of the key that a request was refused with: unchecked where its secret is wrong,
 * and null without a key.
 */
function deniedWith({ headers }: FastifyRequest, principal: Principal | null): string | null {
  if (principal) return principal.kind === 'key' ? principal.id : null;
  const text = headers['x-api-key'];
  return typeof text === 'string' ? publicIdOf(text) : null;
}

/**
 * Writes the service's notes on its own use, over connections of their own with an account that
 * may write nothing else: when keys were last used, which are refused in bursts, and the counts
 * that instances share so that rate limits hold for all of them together. Its failure fails no
 * request.
 * @param deniedBurst how many refusals of one key in a minute are noted; 0 for none
 * @returns the exchange of these counts, for the metrics, and what `auth` tells its verdicts to
 */
export function usage(
  app: FastifyInstance,
  pool: pg.Pool,
  { limits, deniedBurst }: { readonly limits: Limits; readonly deniedBurst: number },
): { readonly exchange: Exchange; readonly heard: HearVerdict } {
  const keyUse = new KeyUse(pool, {
    deniedBurst,
    onUsedFailure(error) {
      app.log.warn(
        { err: error },
        'the last use of keys could not be written; it will be tried again',
      );
    },
    onDeniedFailure(error) {
      app.log.warn({ err: error }, 'keys that are refused in bursts could not be noted');
    },
  });
  const exchange = new Exchange(pool, limits, (error) => {
    if (error) app.log.warn({ err: error }, 'rate limits hold for each instance by itself');
    else app.log.info('rate limits hold for all instances together again');
  });
  const heard: HearVerdict = (request, { principal, refusal }) => {
    if (principal?.kind === 'key') keyUse.recordUse(principal.id, Date.now());
    if (refusal?.statusCode !== 401 && refusal?.statusCode !== 403) return;
    const id = deniedWith(request, principal);
    if (id !== null) keyUse.countDenied(id);
  };
  app.addHook('onClose', async () => {
    await Promise.all([keyUse.close(), exchange.close()]);
  });
  return { exchange, heard };
}
