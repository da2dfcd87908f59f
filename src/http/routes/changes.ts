import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from '../../auth/credentials.ts';
import { insufficientScope } from '../../auth/refusals.ts';
import { marketOf } from '../../catalog/markets.ts';
import { allows, marketsOpenTo, scopeOf } from '../../catalog/scopes.ts';
import { type FlatQuery, flatReader, queryOf } from '../../contract/request/query.ts';
import { type ChangeLimits, changeQuery, changesContent } from '../../contract/schemas/changes.ts';
import { FORMATS } from '../../contract/schemas/formats.ts';
import { brokenRules, Problem } from '../../errors.ts';
import type { Feed } from '../../prices/changes/follow.ts';
import type { ChangesPage, ChangesRequest } from '../../prices/changes/page.ts';
import { turn } from '../../std/turns.ts';
import type { CredentialChecks } from '../hooks/auth.ts';
import { listFormatOf } from '../reply/accept.ts';
import { codingOf, holdBody, sendCoded, VARY } from '../reply/send.ts';
import { changesOperation } from './operations.ts';

/** A slot in use, and its latest end in `performance.now` time. */
interface WaitSlot {
  readonly untilMs: number;
}

/** Acquires a slot for a maximum time. Returns the function that releases it. */
type AcquireWaitSlot = (principal: Principal, forMs: number) => () => void;

/**
 * Concurrency limit of long polls, `most` for each principal.
 * @returns a function that throws Problem `too_many_concurrent_requests` at the limit; Retry-After
 *   is the time until the first slot is certainly free
 */
function waitSlots(slotsMax: number): AcquireWaitSlot {
  const taken = new Map<string, Set<WaitSlot>>();
  return ({ kind, id }, forMs) => {
    const name = `${kind} ${id}`;
    const slots = taken.get(name) ?? new Set();
    const nowMs = performance.now();
    if (slots.size >= slotsMax) {
      const freeMs = Math.min(...[...slots].map((each) => each.untilMs)) - nowMs;
      const seconds = Math.max(1, Math.ceil(freeMs / 1000));
      const detail = `${slotsMax} requests of this credential wait already; wait for one of them`;
      throw new Problem('too_many_concurrent_requests', detail, {
        headers: { 'retry-after': String(seconds) },
      });
    }
    const slot: WaitSlot = { untilMs: nowMs + forMs };
    slots.add(slot);
    taken.set(name, slots);
    return () => {
      slots.delete(slot);
      if (slots.size === 0 && taken.get(name) === slots) taken.delete(name);
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
  if (errors.length > 0) throw brokenRules(errors);
  return values as ChangesQuery;
}

/** Number of changes from which a page is written in an event-loop turn of its own. */
const CHANGES_AT_ONCE = 500;

const principalOf = ({ context: { principal } }: FastifyRequest): Principal => {
  if (principal === null) throw new Error('the request has no principal');
  return principal;
};

/** Values of a parameter, decoded as in the handler. */
const sentAs = (url: string, name: string): readonly string[] =>
  queryOf(url).parameters.get(name) ?? [];

/** True for a long poll, which has its own concurrency limit. */
const hasWait = ({ url }: FastifyRequest): boolean => Number(sentAs(url, 'wait')[0]) > 0;

/** Rejects an existing market without its scope. @throws Problem `insufficient_scope` */
function checkMarkets(request: FastifyRequest, credentials: CredentialChecks): void {
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
  const headers = {
    'cache-control': 'no-store',
    vary: VARY,
    'x-next-seq': nextSeq,
    'x-data-revision': page.revision,
  };
  if (hasWaited && page.changes.length === 0) return reply.code(204).headers(headers).send();
  // A page may have several megabytes.
  if (page.changes.length > CHANGES_AT_ONCE) await turn();
  const text =
    format === 'ndjson'
      ? page.changes.map((each) => `${each}\n`).join('')
      : `{"$metadata":${JSON.stringify({ nextSeq })},"data":[${page.changes.join(',')}]}`;
  const bytes = Buffer.from(text);
  // Without these headers a refusal moves no reader of the feed forward.
  holdBody(request, bytes.length);
  reply.headers(headers).type(FORMATS[format].type);
  return sendCoded(request, reply, bytes);
}

/** Disables the socket timeout during a long poll. Returns a function that restores it. */
function disableSocketTimeout({ raw }: FastifyRequest, stallMs: number): () => void {
  const { socket } = raw;
  // Injected requests have no socket.
  if (typeof socket.setTimeout !== 'function') return () => {};
  socket.setTimeout(0);
  return () => socket.setTimeout(stallMs);
}

/**
 * Checks the credential and the scopes again after a wait.
 * @throws Problem of the credential, or `insufficient_scope` for a market whose scope was removed
 */
async function recheckAccess(
  request: FastifyRequest,
  { markets }: ChangesRequest,
  credentials: CredentialChecks,
): Promise<void> {
  const open: readonly string[] = marketsOpenTo((await credentials.verifyAgain(request)).scopes);
  const lost = marketOf(markets.find((slug) => !open.includes(slug)) ?? '');
  if (lost) throw credentials.reportMissingScope(request, insufficientScope(scopeOf(lost.slug)));
}

/** Responses of the feed in the OpenAPI document. */
const ANSWERS = {
  200: changesContent,
  204: { description: 'No change within the wait time', type: 'null' },
};

/** `GET /v3/changes`: the change feed, for credentials with the scope of any market. */
export function changeRoutes(
  app: FastifyInstance,
  feed: Feed,
  credentials: CredentialChecks,
  options: ChangeOptions,
): void {
  const schema = changeQuery(options);
  const read = flatReader(schema);
  const acquireWaitSlot = waitSlots(options.waitingMax);
  let isStopping = false;
  app.decorate('feed', feed);
  // Ends the long polls before the server waits for running requests.
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
    const release = acquireWaitSlot(principal, waitMs);
    const restoreTimeout = disableSocketTimeout(request, app.server.timeout);
    try {
      const page = await feed.follow(asked, waitMs, work.signal);
      // The connection closes after this response: the client must not reuse it.
      if (isStopping) reply.header('connection', 'close');
      if (page.changes.length > 0 || !isStopping) await recheckAccess(request, asked, credentials);
      return await send(request, reply, format, page, true);
    } finally {
      restoreTimeout();
      release();
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
