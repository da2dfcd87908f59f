import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Market } from '../catalog/markets.ts';
import { scopeOf } from '../catalog/scopes.ts';
import { ref } from '../contract/components.ts';
import { filtersOf, type MarketSchemas } from '../contract/market.ts';
import { bodyCheckOf } from '../contract/validate.ts';
import { headOf, revisionText } from '../db/revisions.ts';
import { type Answer, answer, type Sources } from '../prices/answer.ts';
import { usedValues } from '../prices/filter-values.ts';
import { planOf } from '../prices/plan.ts';
import { checkAccept } from './accept.ts';
import { sendTagged } from './etag.ts';
import { marketOperation, NOT_MODIFIED, valuesOperation } from './operations.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

/** A signal that aborts when the client goes away before it has the whole answer. */
function clientGone(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort(new Error('the client is gone'));
  });
  return controller.signal;
}

/**
 * The body with its first slices read already, so that what fails before the first byte is still
 * a problem, and what fails later breaks the connection.
 */
async function started(body: AsyncGenerator<Buffer>, slices: number) {
  const first: Buffer[] = [];
  for (let count = 0; count < slices; count += 1) {
    const { value, done } = await body.next();
    if (done) return { first, rest: null };
    first.push(value);
  }
  return { first, rest: body };
}

/** Slices joined to writes of this size: a write for each slice would cost more than its bytes. */
const WRITE_BYTES = 65_536;

async function* joined(first: readonly Buffer[], rest: AsyncGenerator<Buffer>) {
  let held: Buffer[] = [...first];
  let bytes = held.reduce((sum, each) => sum + each.length, 0);
  for await (const slice of rest) {
    held.push(slice);
    bytes += slice.length;
    if (bytes >= WRITE_BYTES) {
      yield Buffer.concat(held, bytes);
      held = [];
      bytes = 0;
    }
  }
  if (bytes > 0) yield Buffer.concat(held, bytes);
}

/** Slices that are awaited before the answer begins: the head, a record, and its points. */
const SLICES_AHEAD = 3;

async function send(reply: FastifyReply, { revision, body }: Answer): Promise<FastifyReply> {
  reply.type(JSON_TYPE).headers({ 'cache-control': 'no-store', 'x-data-revision': revision });
  const { first, rest } = await started(body, SLICES_AHEAD);
  if (rest === null) return reply.send(Buffer.concat(first));
  return reply.send(Readable.from(joined(first, rest), { objectMode: false }));
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
  const acceptsJson = async (request: FastifyRequest) => checkAccept(request, ['application/json']);

  app.post(`/v3/prices/${market.slug}`, {
    config: { access: { scope } },
    preParsing: acceptsJson,
    schema: {
      ...marketOperation(market),
      body: ref(schemas.request),
      response: { 200: { description: 'The prices', ...ref(schemas.response) } },
    },
    handler: async (request, reply) => {
      const plan = planOf(market, check, request.body);
      return send(reply, await answer(sources, plan, clientGone(reply)));
    },
  });

  app.get(`/v3/prices/${market.slug}/filters`, {
    config: { access: { scope } },
    preParsing: acceptsJson,
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
      return sendTagged(request, reply, JSON_TYPE, JSON.stringify({ $metadata, data }));
    },
  });
}
