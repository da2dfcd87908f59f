import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify';
import type { Market } from '../../catalog/markets.ts';
import { allows, marketsOpenTo, scopeOf } from '../../catalog/scopes.ts';
import { parametersOf, queryReader, strayParameters } from '../../contract/request/query.ts';
import { type BodyCheck, bodyCheckOf, type SentBody } from '../../contract/request/validate.ts';
import { MarketList, ref } from '../../contract/schemas/components.ts';
import { FORMATS, pricesContent } from '../../contract/schemas/formats.ts';
import { filtersOf, type MarketSchemas } from '../../contract/schemas/market.ts';
import { dataRevisionAt } from '../../db/newest-revision.ts';
import { revisionText } from '../../db/revisions.ts';
import { Problem } from '../../errors.ts';
import type { Readers } from '../../prices/answer/answer.ts';
import { extentReader, marketList } from '../../prices/market/market-list.ts';
import { planOf, type RequestOrigin } from '../../prices/plan/plan.ts';
import { turn } from '../../std/turns.ts';
import { checkNoChoice, formatOf } from '../reply/accept.ts';
import { requestKey } from '../reply/answer-cache.ts';
import { type PriceQuery, type PriceStore, sendPrices } from '../reply/prices.ts';
import { codingOf, sendTagged } from '../reply/send.ts';
import {
  listOperation,
  NOT_MODIFIED,
  postOperation,
  readOperation,
  valuesOperation,
} from './operations.ts';

/*
 * The resources, one file for each. A route has an access rule and schemas; it validates, calls the
 * domain, and sends the answer.
 */

/** `GET /v3/prices`: all markets, with details of those that the credential can read. */
export function marketsRoute(app: FastifyInstance, readers: Readers): void {
  const extentsAt = extentReader(readers.db);
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
      return sendTagged(request, reply, FORMATS.json.type, JSON.stringify({ data }));
    },
  });
}

/** Rejects the body of a GET, whose filters would be ignored. */
function rejectBody(request: FastifyRequest): void {
  if (!hasBody(request)) return;
  const detail = 'GET takes filters and options in the address; send a body by POST';
  throw new Problem('malformed_request', detail);
}

const hasBody = ({ headers }: FastifyRequest): boolean =>
  (headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined;

const originOf = (
  { context: { principal } }: FastifyRequest,
  by: RequestOrigin['by'],
): RequestOrigin => ({
  by,
  readableMarkets: () => marketsOpenTo(principal?.scopes ?? new Set()),
});

/** The query of a GET, read from its address. */
function queryFromAddress(
  request: FastifyRequest,
  market: Market,
  check: BodyCheck,
  read: ReturnType<typeof queryReader>,
): PriceQuery {
  const origin = originOf(request, 'address');
  const key = hasBody(request) ? null : requestKey(request, '');
  const makePlan = () => {
    const { body, broken, format: named } = read(request.url);
    const format = named ?? formatOf(request);
    codingOf(request);
    rejectBody(request);
    return planOf(market, check, body, { ...origin, format }, broken);
  };
  return { origin, key, makePlan };
}

/** The query of a POST, read from its body. */
function queryFromBody(request: FastifyRequest, market: Market, check: BodyCheck): PriceQuery {
  const { bytes, parse } = request.body as SentBody;
  const origin = originOf(request, 'body');
  const makePlan = () => {
    const input = { ...origin, format: formatOf(request) };
    return planOf(market, check, parse(), input, strayParameters(request.url));
  };
  return { origin, key: requestKey(request, bytes.toString('latin1')), makePlan };
}

/** `POST`, `GET` and `HEAD /v3/prices/<slug>` of one market. */
export function priceRoutes(
  app: FastifyInstance,
  market: Market,
  schemas: MarketSchemas,
  store: PriceStore,
): void {
  const url = `/v3/prices/${market.slug}`;
  const config = { access: { scope: scopeOf(market.slug) } };
  const check = bodyCheckOf(market, schemas);
  const read = queryReader(schemas);
  const response = { 200: pricesContent(schemas) };

  const byQuery: Pick<RouteOptions, 'url' | 'config' | 'handler'> = {
    url,
    config,
    handler: async (request, reply) =>
      sendPrices(request, reply, store, queryFromAddress(request, market, check, read)),
  };
  app.route({
    ...byQuery,
    method: 'GET',
    // Fastify's own HEAD route would produce the whole response for its length.
    exposeHeadRoute: false,
    schema: {
      ...readOperation(market),
      querystring: parametersOf(schemas),
      response: { ...response, ...NOT_MODIFIED },
    },
  });
  app.route({ ...byQuery, method: 'HEAD', schema: { hide: true } });

  app.post(url, {
    config,
    preParsing: (request, _reply, payload, done) => {
      formatOf(request);
      codingOf(request);
      done(null, payload);
    },
    schema: { ...postOperation(market), body: ref(schemas.request), response },
    handler: async (request, reply) =>
      sendPrices(request, reply, store, queryFromBody(request, market, check)),
  });
}

/** Number of values from which a response is written in an event-loop turn of its own. */
const VALUES_AT_ONCE = 500;

/** `GET /v3/prices/<slug>/filters` of one market. */
export function valuesRoute(
  app: FastifyInstance,
  market: Market,
  schemas: MarketSchemas,
  readers: Readers,
): void {
  app.get(`/v3/prices/${market.slug}/filters`, {
    config: { access: { scope: scopeOf(market.slug) } },
    preParsing: async (request) => checkNoChoice(request),
    schema: {
      ...valuesOperation(market),
      response: {
        200: { description: 'The values', ...ref(schemas.filterValues) },
        ...NOT_MODIFIED,
      },
    },
    handler: async (request, reply) => {
      const { work } = request.context;
      const newest = await work.until(request.context.newest);
      const dataRevision = dataRevisionAt(newest, [market.slug]);
      const { used } = await work.until(readers.vocabularies(market, dataRevision));
      // Many values take milliseconds to write: at most one response per event-loop turn.
      if (used.length > VALUES_AT_ONCE) await turn();
      const data = Object.fromEntries(
        filtersOf(market).map((filter) => [
          filter,
          used
            .filter((each) => each.filter === filter)
            .map(({ id, name, prices }) => ({ id, name, prices })),
        ]),
      );
      const revision = revisionText(dataRevision);
      const $metadata = { market: market.slug, revision, asOf: dataRevision.committedAt };
      reply.header('x-data-revision', revision);
      return sendTagged(request, reply, FORMATS.json.type, JSON.stringify({ $metadata, data }));
    },
  });
}
