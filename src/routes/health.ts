import type { FastifyInstance, FastifyReply } from 'fastify';
import { Health, Live, ref } from '../contract/components.ts';
import type { DatabaseHealth } from '../db/health.ts';
import { healthOperation, liveOperation, readyOperation } from './operations.ts';

const body = (version: string, seen: DatabaseHealth) => {
  const isWell = seen.database === 'ok' && seen.schema === 'ok';
  const { database, schema, rates, latestPublishedAt } = seen;
  // Without a published value, or without its source of rates, it answers less than it could.
  const isWhole = latestPublishedAt !== null && rates === 'ok';
  const status = !isWell ? 'unavailable' : isWhole ? 'ok' : 'degraded';
  const checks = { database, schema, rates, data: { latestPublishedAt } };
  return { status, version, time: new Date().toISOString(), checks };
};

/** The health addresses; none needs a credential. `/live` never touches the database. */
export function healthRoutes(
  app: FastifyInstance,
  version: string,
  probe: () => Promise<DatabaseHealth>,
): void {
  const answer = async (reply: FastifyReply) => {
    const seen = body(version, await probe());
    reply.header('cache-control', 'no-store');
    if (seen.status === 'unavailable') reply.code(503).header('retry-after', '2');
    return seen;
  };
  const response = (description: string) => ({
    200: { description, ...ref(Health) },
    503: { description: 'The service cannot answer at the moment', ...ref(Health) },
  });
  for (const [url, operation] of [
    ['/health', healthOperation('health', 'Health of the service')],
    ['/v3/prices/health', healthOperation('pricesHealth', 'Health of the price endpoints')],
    ['/ready', readyOperation],
  ] as const) {
    app.get(url, {
      config: { access: 'none' },
      schema: { ...operation, response: response('The service can answer') },
      handler: (_request, reply) => answer(reply),
    });
  }
  app.get('/live', {
    config: { access: 'none' },
    schema: { ...liveOperation, response: { 200: { description: 'It runs', ...ref(Live) } } },
    handler: async (_request, reply) => {
      reply.header('cache-control', 'no-store');
      return { status: 'ok' };
    },
  });
}
