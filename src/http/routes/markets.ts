import type { FastifyInstance } from 'fastify';
import { allows } from '../../catalog/scopes.ts';
import { MarketList, ref } from '../../contract/schemas/components.ts';
import type { Sources } from '../../prices/answer.ts';
import { extentReader, marketList } from '../../prices/select/market-list.ts';
import { checkNoChoice } from '../reply/accept.ts';
import { sendTagged } from '../reply/send.ts';
import { listOperation, NOT_MODIFIED } from './operations.ts';

/** `GET /v3/prices`: all markets, with details of those that the credential can read. */
export function marketsRoute(app: FastifyInstance, sources: Sources): void {
  const extentsAt = extentReader(sources.db);
  app.get('/v3/prices', {
    config: { access: 'any' },
    preParsing: async (request) => checkNoChoice(request),
    schema: {
      ...listOperation,
      response: { 200: { description: 'The markets', ...ref(MarketList) }, ...NOT_MODIFIED },
    },
    handler: async (request, reply) => {
      const { principal, work } = request.context;
      const scopes = principal?.scopes ?? new Set<string>();
      const newest = await work.until(request.context.newest);
      const extents = await work.until(extentsAt(newest));
      const data = marketList(extents, (scope) => allows(scopes, scope));
      const type = 'application/json; charset=utf-8';
      return sendTagged(request, reply, type, JSON.stringify({ data }));
    },
  });
}
