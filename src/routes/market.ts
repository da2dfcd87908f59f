import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Market } from '../catalog/markets.ts';
import { scopeOf } from '../catalog/scopes.ts';
import { pricesContent } from '../contract/answers.ts';
import { ref } from '../contract/components.ts';
import { FORMATS } from '../contract/formats.ts';
import { filtersOf, type MarketSchemas } from '../contract/market.ts';
import { bodyCheckOf } from '../contract/validate.ts';
import { headOf, revisionText } from '../db/revisions.ts';
import { answerAt, type Sources } from '../prices/answer.ts';
import { usedValues } from '../prices/filter-values.ts';
import { slicesOf } from '../prices/formats.ts';
import { type Plan, planOf } from '../prices/plan.ts';
import { headersAbout } from './about.ts';
import { checkAcceptsJson, formatOf } from './accept.ts';
import { clientGone } from './client-gone.ts';
import { sendTagged } from './etag.ts';
import { marketOperation, NOT_MODIFIED, valuesOperation } from './operations.ts';
import { startedBody } from './start.ts';

/** Answers a plan as its prices are now, or were at its moment. */
async function sendPrices(
  request: FastifyRequest,
  reply: FastifyReply,
  sources: Sources,
  plan: Plan,
): Promise<FastifyReply> {
  const format = formatOf(request);
  const signal = clientGone(reply);
  const state = await sources.state(sources.db, plan, await request.newest);
  const answer = await answerAt(sources, plan, state, signal);
  const payload = await startedBody(slicesOf(answer, format));
  reply.type(FORMATS[format].type).headers(headersAbout(answer, format));
  reply.header('cache-control', 'no-store');
  return reply.send(payload);
}

/** `POST /v3/prices/<slug>` and `GET /v3/prices/<slug>/filters` of one market. */
export function marketRoutes(
  app: FastifyInstance,
  market: Market,
  schemas: MarketSchemas,
  sources: Sources,
): void {
  const scope = scopeOf(market.slug);
  const check = bodyCheckOf(market, schemas);

  app.post(`/v3/prices/${market.slug}`, {
    config: { access: { scope } },
    preParsing: async (request) => {
      formatOf(request);
    },
    schema: {
      ...marketOperation(market),
      body: ref(schemas.request),
      response: { 200: pricesContent(schemas) },
    },
    handler: async (request, reply) => {
      const plan = planOf(market, check, request.body);
      return sendPrices(request, reply, sources, plan);
    },
  });

  app.get(`/v3/prices/${market.slug}/filters`, {
    config: { access: { scope } },
    preParsing: async (request) => checkAcceptsJson(request),
    schema: {
      ...valuesOperation(market),
      response: {
        200: { description: 'The values', ...ref(schemas.filterValues) },
        ...NOT_MODIFIED,
      },
    },
    handler: async (request, reply) => {
      const head = await headOf(sources.db, [market.slug]);
      const used = await usedValues(sources.db, market, head.revision);
      const data = Object.fromEntries(
        filtersOf(market).map((filter) => [
          filter,
          used
            .filter((each) => each.filter === filter)
            .map(({ id, name, prices }) => ({ id, name, prices })),
        ]),
      );
      const revision = revisionText(head);
      const $metadata = { market: market.slug, revision, asOf: head.committedAt };
      reply.header('x-data-revision', revision);
      return sendTagged(request, reply, FORMATS.json.type, JSON.stringify({ $metadata, data }));
    },
  });
}
