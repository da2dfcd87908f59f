import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from '../../auth/principal.ts';
import { insufficientScope } from '../../auth/refusals.ts';
import { marketOf } from '../../catalog/markets.ts';
import { allows, marketsOpenTo, scopeOf } from '../../catalog/scopes.ts';
import { type FlatQuery, flatReader, queryOf } from '../../contract/request/query.ts';
import { brokenBy } from '../../contract/request/validate.ts';
import { type ChangeLimits, changeQuery, changesContent } from '../../contract/schemas/changes.ts';
import { FORMATS } from '../../contract/schemas/formats.ts';
import { Problem } from '../../errors.ts';
import type { Feed } from '../../prices/changes/follow.ts';
import type { ChangesPage, ChangesRequest } from '../../prices/changes/page.ts';
import { turn } from '../../std/turns.ts';
import type { Credentials } from '../hooks/auth.ts';
import { listFormatOf } from '../reply/accept.ts';
import { codingOf, sendCoded, VARY } from '../reply/send.ts';
import { changesOperation } from './operations.ts';

/** A taken place, and when it ends by the clock of `performance.now`. */
interface WaitSlot {
  readonly untilMs: number;
}

/** Takes a place for a time at most; returns the function that releases it. */
type AcquireWaitSlot = (principal: Principal, forMs: number) => () => void;

/**
 * Places for requests that wait for changes, `most` for each principal.
 * @returns a function that throws Problem `too_many_concurrent_requests` when all are taken; its
 *   Retry-After is when the first of them is free for certain
 */
function waitSlots(most: number): AcquireWaitSlot {
  const taken = new Map<string, Set<WaitSlot>>();
  return ({ kind, id }, forMs) => {
    const name = `${kind} ${id}`;
    const places = taken.get(name) ?? new Set();
    const nowMs = performance.now();
    if (places.size >= most) {
      const freeMs = Math.min(...[...places].map((each) => each.untilMs)) - nowMs;
      const seconds = Math.max(1, Math.ceil(freeMs / 1000));
      const detail = `${most} requests of this credential wait already; wait for one of them`;
      throw new Problem('too_many_concurrent_requests', detail, {
        headers: { 'retry-after': String(seconds) },
      });
    }
    const place: WaitSlot = { untilMs: nowMs + forMs };
    places.add(place);
    taken.set(name, places);
    return () => {
      places.delete(place);
      if (places.size === 0 && taken.get(name) === places) taken.delete(name);
    };
  };
}

interface ChangeOptions extends ChangeLimits {
  /** Requests of one principal that may wait at once. */
  readonly waitingMax: number;
}

interface ChangesQuery {
  readonly after?: string;
  readonly market?: readonly string[];
  readonly limit?: number;
  readonly wait?: number;
}

/** The validated query. @throws Problem `validation_failed` with every violation */
function validQuery({ values, errors }: FlatQuery): ChangesQuery {
  if (errors.length > 0) throw brokenBy(errors);
  return values as ChangesQuery;
}

/** Changes beyond which a page is put together in a turn of the event loop of its own. */
const CHANGES_AT_ONCE = 500;

const principalOf = ({ context: { principal } }: FastifyRequest): Principal => {
  if (principal === null) throw new Error('the route let nobody in');
  return principal;
};

/** What an address has for a parameter, as the handler reads it too. */
const sentAs = (url: string, name: string): readonly string[] =>
  queryOf(url).parameters.get(name) ?? [];

/** True if a request is one that waits; it has a place of its own kind. */
const hasWait = ({ url }: FastifyRequest): boolean => Number(sentAs(url, 'wait')[0]) > 0;

/** Refuses a market that there is and that is not open to the caller. */
function checkMarkets(request: FastifyRequest, credentials: Credentials): void {
  const { scopes } = principalOf(request);
  for (const sent of sentAs(request.url, 'market')) {
    const market = marketOf(sent);
    if (market && !allows(scopes, scopeOf(market.slug))) {
      throw credentials.reportMissingScope(request, insufficientScope(scopeOf(market.slug)));
    }
  }
}

function changesRequest(
  query: ChangesQuery,
  principal: Principal,
  options: ChangeOptions,
): ChangesRequest {
  const open = marketsOpenTo(principal.scopes);
  const wanted = query.market && new Set(query.market);
  return {
    markets: wanted ? open.filter((slug) => wanted.has(slug)) : open,
    after: query.after ?? null,
    limit: query.limit ?? options.limit,
  };
}

async function send(
  request: FastifyRequest,
  reply: FastifyReply,
  format: ReturnType<typeof listFormatOf>,
  page: ChangesPage,
  hasWaited: boolean,
): Promise<FastifyReply> {
  const nextSeq = page.next;
  reply.headers({
    'cache-control': 'no-store',
    vary: VARY,
    'x-next-seq': nextSeq,
    'x-data-revision': page.revision,
  });
  if (hasWaited && page.changes.length === 0) return reply.code(204).send();
  reply.type(FORMATS[format].type);
  // A page may be some megabytes of text.
  if (page.changes.length > CHANGES_AT_ONCE) await turn();
  const text =
    format === 'ndjson'
      ? page.changes.map((each) => `${each}\n`).join('')
      : `{"$metadata":${JSON.stringify({ nextSeq })},"data":[${page.changes.join(',')}]}`;
  return sendCoded(reply, { bytes: Buffer.from(text), coding: null }, codingOf(request));
}

/** Lets a connection be silent, as it is while its request waits; returns how to end that. */
function disableSocketTimeout({ raw }: FastifyRequest, stallMs: number): () => void {
  const { socket } = raw;
  // Requests that were injected have no connection.
  if (typeof socket.setTimeout !== 'function') return () => {};
  socket.setTimeout(0);
  return () => socket.setTimeout(stallMs);
}

/**
 * A credential that ended while its request waited does not get the answer any more.
 * @throws Problem of the credential, or `insufficient_scope` for a market that it lost
 */
async function recheckAccess(
  request: FastifyRequest,
  { markets }: ChangesRequest,
  credentials: Credentials,
): Promise<void> {
  const open: readonly string[] = marketsOpenTo((await credentials.verifyAgain(request)).scopes);
  const lost = marketOf(markets.find((slug) => !open.includes(slug)) ?? '');
  if (lost) throw credentials.reportMissingScope(request, insufficientScope(scopeOf(lost.slug)));
}

/** The answers of the feed, in the OpenAPI document. */
const ANSWERS = {
  200: changesContent,
  204: { description: 'None came within the time of wait', type: 'null' },
};

/** `GET /v3/changes`: the feed of changes, for callers with the scope of a market. */
export function changeRoutes(
  app: FastifyInstance,
  feed: Feed,
  credentials: Credentials,
  options: ChangeOptions,
): void {
  const schema = changeQuery(options);
  const read = flatReader(schema);
  const acquireWaitSlot = waitSlots(options.waitingMax);
  let isStopping = false;
  app.decorate('feed', feed);
  // Before the server waits for its answers to end.
  app.addHook('preClose', async () => {
    isStopping = true;
    feed.stop();
  });

  async function handler(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const query = validQuery(read(request.url));
    const principal = principalOf(request);
    const { work } = request.context;
    const asked = changesRequest(query, principal, options);
    const format = listFormatOf(request);
    const waitMs = (query.wait ?? 0) * 1000;
    if (waitMs === 0)
      return send(request, reply, format, await feed.read(asked, work.signal), false);
    const leave = acquireWaitSlot(principal, waitMs);
    const restoreTimeout = disableSocketTimeout(request, app.server.timeout);
    try {
      const page = await feed.follow(asked, waitMs, work.signal);
      // The connection ends with this answer; the next request must not be sent into it.
      if (isStopping) reply.header('connection', 'close');
      if (page.changes.length > 0 || !isStopping) await recheckAccess(request, asked, credentials);
      return await send(request, reply, format, page, true);
    } finally {
      restoreTimeout();
      leave();
    }
  }

  app.get('/v3/changes', {
    config: { access: 'some-market', isWaiting: hasWait },
    onRequest: async (request) => checkMarkets(request, credentials),
    preParsing: async (request) => {
      listFormatOf(request);
      codingOf(request);
    },
    schema: {
      ...changesOperation,
      querystring: schema,
      response: ANSWERS,
    },
    handler,
  });
}
