import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify';
import type { Market } from '../catalog/markets.ts';
import { marketsOpenTo, scopeOf } from '../catalog/scopes.ts';
import { ref } from '../contract/components.ts';
import { FORMATS, pricesContent } from '../contract/formats.ts';
import { filtersOf, type MarketSchemas } from '../contract/market.ts';
import { parametersOf } from '../contract/parameters.ts';
import { queryReader, strayParameters } from '../contract/query.ts';
import { type BodyCheck, bodyCheckOf } from '../contract/validate.ts';
import { revisionText } from '../db/revisions.ts';
import { Problem, type Violation } from '../errors.ts';
import type { Sources } from '../prices/answer.ts';
import { type Asker, type Plan, planOf } from '../prices/plan.ts';
import { valuesReader } from '../prices/vocabulary.ts';
import { turn } from '../turns.ts';
import { checkAsksForAll, formatOf } from './accept.ts';
import { codingOf } from './coded.ts';
import { sendTagged } from './etag.ts';
import { NOT_MODIFIED, postOperation, readOperation, valuesOperation } from './operations.ts';
import { type Shown, sendPrices } from './send-prices.ts';

/** Filters in a body that nobody reads would be filters lost. */
function refuseBody({ headers }: FastifyRequest): void {
  const length = headers['content-length'] ?? '0';
  if (length === '0' && headers['transfer-encoding'] === undefined) return;
  const detail = 'GET takes filters and options in the address; send a body by POST';
  throw new Problem('malformed_request', detail);
}

const areSame = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((each, index) => each === other[index]);

const askerOf = ({ principal }: FastifyRequest, by: Asker['by']): Asker => ({
  by,
  openMarkets: () => marketsOpenTo(principal?.scopes ?? new Set()),
});

/** Makes plans of the bodies of one market; the very same body of a like sender has the same. */
function plannerOf(market: Market, check: BodyCheck) {
  const known = new WeakMap<object, Plan>();
  return (body: unknown, broken: readonly Violation[], asker: Asker): Plan => {
    if (typeof body !== 'object' || body === null || broken.length > 0) {
      return planOf(market, check, body, asker, broken);
    }
    const before = known.get(body);
    const isKnown =
      before && (before.codes === null || areSame(before.openMarkets, asker.openMarkets()));
    if (isKnown) return before;
    const plan = planOf(market, check, body, asker);
    known.set(body, plan);
    return plan;
  };
}

/** `POST`, `GET` and `HEAD /v3/prices/<slug>` of one market: the same read, by body or query. */
export function priceRoutes(
  app: FastifyInstance,
  market: Market,
  schemas: MarketSchemas,
  shown: Shown,
): void {
  const url = `/v3/prices/${market.slug}`;
  const config = { access: { scope: scopeOf(market.slug) } };
  const planned = plannerOf(market, bodyCheckOf(market, schemas));
  const read = queryReader(schemas);
  const response = { 200: pricesContent(schemas) };

  const byQuery: Pick<RouteOptions, 'url' | 'config' | 'handler'> = {
    url,
    config,
    handler: async (request, reply) => {
      const { body, broken, format } = read(request.url);
      const chosen = format ?? formatOf(request);
      codingOf(request);
      refuseBody(request);
      const plan = planned(body, broken, askerOf(request, 'address'));
      return sendPrices(request, reply, shown, plan, chosen);
    },
  };
  app.route({
    ...byQuery,
    method: 'GET',
    // The one that Fastify would make reads the whole answer to tell its length.
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
    handler: async (request, reply) => {
      const asker = askerOf(request, 'body');
      const plan = planned(request.body, strayParameters(request.url), asker);
      return sendPrices(request, reply, shown, plan, formatOf(request));
    },
  });
}

/** Values beyond which an answer is written in a turn of the event loop of its own. */
const VALUES_AT_ONCE = 500;

/** `GET /v3/prices/<slug>/filters` of one market. */
export function valuesRoute(
  app: FastifyInstance,
  market: Market,
  schemas: MarketSchemas,
  sources: Sources,
): void {
  const valuesAt = valuesReader(sources.db, market);
  app.get(`/v3/prices/${market.slug}/filters`, {
    config: { access: { scope: scopeOf(market.slug) } },
    preParsing: async (request) => checkAsksForAll(request),
    schema: {
      ...valuesOperation(market),
      response: {
        200: { description: 'The values', ...ref(schemas.filterValues) },
        ...NOT_MODIFIED,
      },
    },
    handler: async (request, reply) => {
      const { work } = request;
      const newest = request.newest && (await work.until(request.newest));
      const { head, used } = await work.until(
        valuesAt(() => sources.reads.db(work.signal), newest),
      );
      // Many values take milliseconds to write: one answer in each turn.
      if (used.length > VALUES_AT_ONCE) await turn();
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
