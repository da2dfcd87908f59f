import type { FastifyInstance } from 'fastify';
import { MARKETS } from '../../catalog/markets.ts';
import { ALL_MARKETS, allows, scopeOf } from '../../catalog/scopes.ts';
import { Me, ref } from '../../contract/schemas/components.ts';
import { Problem } from '../../errors.ts';
import type { Limits } from '../../limits/limits.ts';
import { checkNoChoice } from '../reply/accept.ts';
import { meOperation } from './operations.ts';

const orNull = (limit: number): number | null => (limit === 0 ? null : limit);

/** `GET /v3/me`: the scopes, markets, expiry and limits of the credential. */
export function meRoute(app: FastifyInstance, limits: Limits): void {
  app.get('/v3/me', {
    config: { access: 'any' },
    preParsing: async (request) => checkNoChoice(request),
    schema: { ...meOperation, response: { 200: { description: 'The credential', ...ref(Me) } } },
    handler: async (request, reply) => {
      const { principal } = request.context;
      if (principal === null) throw new Problem('missing_credentials', 'Send a credential');
      const { kind, id, scopes, expiresAt } = principal;
      const { perMinute, burst, concurrent } = limits.effective(principal.limits);
      const known = [ALL_MARKETS, ...MARKETS.map(({ slug }) => scopeOf(slug))];
      reply.header('cache-control', 'no-store').type('application/json; charset=utf-8');
      return JSON.stringify({
        kind,
        id,
        scopes: known.filter((scope) => scopes.has(scope)),
        markets: MARKETS.map(({ slug }) => slug).filter((slug) => allows(scopes, scopeOf(slug))),
        expiresAt,
        limits: {
          requestsPerMinute: orNull(perMinute),
          burst: perMinute === 0 ? null : burst,
          concurrent: orNull(concurrent),
        },
      });
    },
  });
}
