import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import type { Principal } from '../../auth/credentials.ts';
import { insufficientScope } from '../../auth/refusals.ts';
import { marketOf } from '../../catalog/markets.ts';
import { allows, marketsOpenTo, scopeOf } from '../../catalog/scopes.ts';
import { type FlatQuery, flatReader, queryOf } from '../../contract/request/query.ts';
import {
  CHANGE_COLUMNS,
  type ChangeLimits,
  type ChangeOperation,
  changeQuery,
  changesContent,
  OPERATIONS,
} from '../../contract/schemas/changes.ts';
import { FORMATS } from '../../contract/schemas/formats.ts';
import { firstMicrosecondFrom } from '../../db/instant.ts';
import { brokenRules, Problem } from '../../errors.ts';
import type { Feed } from '../../prices/changes/follow.ts';
import type { ChangesPage, ChangesRequest } from '../../prices/changes/page.ts';
import type { ChangesStart } from '../../prices/changes/segments.ts';
import { turn } from '../../std/turns.ts';
import type { CredentialChecks } from '../hooks/auth.ts';
import { type ListFormat, listFormatOf } from '../reply/accept.ts';
import { warningsHeaders } from '../reply/price-headers.ts';
import { codingOf, holdBody, sendCoded, VARY } from '../reply/send.ts';
import { changesOperation } from './operations.ts';

/** A slot of a long poll. */
interface WaitSlot {
  /** Time that the request may wait, at most what it asked for. */
  readonly forMs: number;
  readonly release: () => void;
}

/** The slots and the refused requests of a principal, in `performance.now` time. */
interface Waiting {
  /** Latest ends of the slots in use. */
  readonly ends: Map<WaitSlot, number>;
  /** Times at which refused requests may come back. */
  turns: readonly number[];
}

/** In this time before the turn of a refused request, one slot is kept free for it. */
const TURN_MS = 1_000;

/** Principals whose slots and turns are kept. Fewer connections are open at a time. */
const PRINCIPALS_MAX = 10_000;

/**
 * Concurrency limit of long polls, `slotsMax` for each principal. A reader repeats its request as
 * soon as it is answered, so that without turns a refused one would always find the slots in use.
 * Each refused request is told the end of another slot, up to `slotsMax` of them. Until then a slot
 * that became free early is given for the time up to that turn only.
 * @returns a function that acquires a slot. It throws Problem `too_many_concurrent_requests` at the
 *   limit; Retry-After is the time until the turn of the request
 */
function waitSlots(slotsMax: number): (principal: Principal, forMs: number) => WaitSlot {
  const all = new LRUCache<string, Waiting>({ max: PRINCIPALS_MAX });

  function refuse(waiting: Waiting, nowMs: number): never {
    const ends = [...waiting.ends.values()].sort((a, b) => a - b);
    const place = Math.min(waiting.turns.length, ends.length - 1);
    const freeMs = (ends[place] ?? Math.max(...waiting.turns)) - nowMs;
    const seconds = Math.max(1, Math.ceil(freeMs / 1_000));
    if (waiting.turns.length < slotsMax)
      waiting.turns = [...waiting.turns, nowMs + seconds * 1_000];
    const detail =
      `${slotsMax} requests of this credential wait already; come back after Retry-After, or use ` +
      'another credential for each reader';
    throw new Problem('too_many_concurrent_requests', detail, {
      headers: { 'retry-after': String(seconds) },
    });
  }

  return ({ kind, id }, askedMs) => {
    const name = `${kind} ${id}`;
    const waiting = all.get(name) ?? { ends: new Map(), turns: [] };
    const nowMs = performance.now();
    waiting.turns = waiting.turns.filter((turnMs) => turnMs > nowMs - TURN_MS);
    const due = waiting.turns.find((turnMs) => turnMs <= nowMs);
    waiting.turns = waiting.turns.filter((turnMs) => turnMs !== due);
    const near = waiting.turns.filter((turnMs) => turnMs - nowMs <= TURN_MS);
    const kept = due === undefined ? near.length : 0;
    if (waiting.ends.size + kept >= slotsMax) refuse(waiting, nowMs);
    const laterMs = waiting.turns.map((turnMs) => turnMs - nowMs).filter((ms) => ms > TURN_MS);
    const forMs = Math.min(askedMs, ...laterMs.map((ms) => ms - TURN_MS / 2));
    const slot: WaitSlot = { forMs, release: () => waiting.ends.delete(slot) };
    waiting.ends.set(slot, nowMs + forMs);
    all.set(name, waiting);
    return slot;
  };
}

interface ChangeOptions extends ChangeLimits {
  /** Requests of one principal that may wait at once. */
  readonly waitingMax: number;
}

interface ChangesQuery {
  readonly after?: string;
  readonly since?: string;
  readonly market?: readonly string[];
  readonly codes?: readonly string[];
  readonly operations?: readonly ChangeOperation[];
  readonly limit?: number;
  readonly wait?: number;
}

/** The validated query. @throws Problem `validation_failed` with every violation */
function validQuery({ values, errors }: FlatQuery): ChangesQuery {
  const query = values as ChangesQuery;
  const broken = [...errors];
  if (query.since !== undefined && query.after !== undefined) {
    const detail = 'since and after both name where to start; omit one of them';
    broken.push({ pointer: '/since', code: 'unknown_field', detail });
  }
  if (broken.length > 0) throw brokenRules(broken);
  return query;
}

function startOf({ after, since }: ChangesQuery): ChangesStart {
  if (since !== undefined) return { since: firstMicrosecondFrom(since) };
  return after === undefined ? null : { after };
}

/** The form of the changes in a format. */
const formOf = (format: ListFormat) => (format === 'csv' ? 'csv' : 'json');

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

/** True for operations that exclude some changes. */
const isSubset = (sent: readonly ChangeOperation[] | undefined): sent is ChangeOperation[] =>
  sent !== undefined && OPERATIONS.some((each) => !sent.includes(each));

function changesRequest(
  query: ChangesQuery,
  principal: Principal,
  options: ChangeOptions,
  format: ListFormat,
): ChangesRequest {
  const open = marketsOpenTo(principal.scopes);
  const wanted = query.market && new Set(query.market);
  return {
    markets: wanted ? open.filter((slug) => wanted.has(slug)) : open,
    readableMarkets: open,
    start: startOf(query),
    codes: query.codes ?? null,
    operations: isSubset(query.operations) ? query.operations : null,
    limit: query.limit ?? options.limit,
    form: formOf(format),
  };
}

/** The body of a page in a format. */
function bodyOf({ changes, next, hasMore, warnings }: ChangesPage, format: ListFormat): string {
  if (format === 'ndjson') return changes.map((each) => `${each}\n`).join('');
  if (format === 'csv') return `${CHANGE_COLUMNS.join(',')}\r\n${changes.join('')}`;
  const metadata = { nextSeq: next, hasMore, warnings };
  return `{"$metadata":${JSON.stringify(metadata)},"data":[${changes.join(',')}]}`;
}

async function send(
  request: FastifyRequest,
  reply: FastifyReply,
  format: ListFormat,
  page: ChangesPage,
  hasWaited: boolean,
): Promise<FastifyReply> {
  const nextSeq = page.next;
  const headers = {
    'cache-control': 'no-store',
    vary: VARY,
    'x-next-seq': nextSeq,
    'x-has-more': String(page.hasMore),
    'x-data-revision': page.revision,
    ...(format === 'json' ? {} : warningsHeaders(page.warnings)),
  };
  if (hasWaited && page.changes.length === 0) return reply.code(204).headers(headers).send();
  // A page may have several megabytes.
  if (page.changes.length > CHANGES_AT_ONCE) await turn();
  const bytes = Buffer.from(bodyOf(page, format));
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
    const format = listFormatOf(request);
    const asked = changesRequest(query, principal, options, format);
    const waitMs = (query.wait ?? 0) * 1000;
    if (waitMs === 0)
      return send(request, reply, format, await feed.read(asked, work.signal), false);
    const slot = acquireWaitSlot(principal, waitMs);
    const restoreTimeout = disableSocketTimeout(request, app.server.timeout);
    try {
      const page = await feed.follow(asked, slot.forMs, work.signal);
      // The connection closes after this response: the client must not reuse it.
      if (isStopping) reply.header('connection', 'close');
      if (page.changes.length > 0 || !isStopping) await recheckAccess(request, asked, credentials);
      return await send(request, reply, format, page, true);
    } finally {
      restoreTimeout();
      slot.release();
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
