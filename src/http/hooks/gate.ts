import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { PROBLEM_TYPE, problemBody } from '../../contract/schemas/problem.ts';
import { Problem } from '../../errors.ts';
import { type QueueBounds, type QueueGroup, type Release, Semaphore } from '../../std/semaphore.ts';
import { isOpen, isWaiting } from '../context.ts';
import { corsHeaders } from '../cors.ts';
import type { Refusals } from '../edge/refuse.ts';
import { hasOneHost, SECURITY_HEADERS } from '../head.ts';
import { shownPath } from '../problems.ts';

const overloaded = (): Problem =>
  new Problem('overloaded', 'Too many requests are being answered; try again after Retry-After');

const bypassesGate = (request: FastifyRequest): boolean => isOpen(request) || isWaiting(request);

/** Sends a problem without the hooks of a reply. */
function sendAtOnce(
  request: FastifyRequest,
  reply: FastifyReply,
  problem: Problem,
  origins: ReadonlySet<string>,
): void {
  const body = problemBody(problem, shownPath(request.url), request.id);
  reply.hijack();
  reply.raw.writeHead(problem.statusCode, {
    ...SECURITY_HEADERS,
    ...corsHeaders(origins, request.headers),
    'x-request-id': request.id,
    ...problem.headers,
    'cache-control': 'no-store',
    'content-type': PROBLEM_TYPE,
    'content-length': Buffer.byteLength(body),
  });
  reply.raw.end(body);
}

/**
 * Hook: rejects a request at once if the gate and its queue are full. It runs before any other
 * work, because most requests are rejections under overload.
 * @param origins the allowed origins of pages, which must be able to read the rejection
 */
export const shedLoad =
  (gate: Semaphore, refusals: Refusals, origins: ReadonlySet<string>): onRequestHookHandler =>
  (request, reply, done) => {
    // Invalid HTTP is rejected by a later hook, which also closes the connection.
    if (!gate.isFull || bypassesGate(request) || !hasOneHost(request.raw)) return done();
    const problem = overloaded();
    request.context.failure = problem;
    if (refusals.cancel(request.raw.socket)) reply.raw.shouldKeepAlive = false;
    sendAtOnce(request, reply, problem, origins);
  };

/** Stores the slot of a request. It is released with the response or the disconnection. */
function setSlot({ context }: FastifyRequest, release: Release | null): void {
  if (release === null) throw overloaded();
  context.needsSlot = false;
  context.releaseSlot = release;
  context.work.onEnd(release);
}

/**
 * Waits for a slot, for a request that arrived while the database was unavailable.
 * @throws Problem `overloaded`; `database_unavailable` if the outage takes too long
 */
export const acquireSlot =
  (gate: Semaphore) =>
  async (request: FastifyRequest): Promise<void> => {
    const { needsSlot, work } = request.context;
    if (needsSlot) setSlot(request, await gate.acquire({ signal: work.signal }));
  };

/**
 * Hook: admits requests, at once or after a short wait in a queue. During a database outage a
 * request continues without a slot until it needs the database, so that an invalid credential is
 * still rejected. Runs before the credential check.
 */
export const waitForAdmission =
  (gate: Semaphore, queues: QueueGroup): onRequestHookHandler =>
  (request, _reply, done) => {
    if (bypassesGate(request)) return done();
    const release = gate.tryAcquire();
    request.context.needsSlot = release === null;
    if (release !== null) setSlot(request, release);
    if (release !== null || queues.isAway) return done();
    acquireSlot(gate)(request).then(() => done(), done);
  };

/** Hook: waits for the slot that a request still needs after its credential check. */
export const requireAdmission =
  (gate: Semaphore): onRequestHookHandler =>
  (request, _reply, done) => {
    if (request.context.needsSlot) acquireSlot(gate)(request).then(() => done(), done);
    else done();
  };

/**
 * Hook: rate limit of open addresses over all clients, FIFO, so that unauthenticated requests take
 * little time from others. Health routes and files of the explorer bypass it. A slot is taken for
 * the interval and not for the response, so slow clients occupy none.
 * @param perSecond requests that begin in a second
 */
export function admitOpen(queue: QueueBounds, perSecond: number): onRequestHookHandler {
  const gate = new Semaphore(1, queue);
  const apartMs = 1_000 / perSecond;
  return (request, _reply, done) => {
    const { isHealth, isPart } = request.routeOptions.config;
    if (!isOpen(request) || isHealth || isPart) return done();
    const begin = (release: Release | null) => {
      if (release === null) return done(overloaded());
      setTimeout(release, apartMs).unref();
      done();
    };
    const release = gate.tryAcquire();
    if (release !== null) begin(release);
    else gate.acquire({ signal: request.context.work.signal }).then(begin, done);
  };
}
