import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { PROBLEM_TYPE, problemBody } from '../../contract/schemas/problem.ts';
import { Problem } from '../../errors.ts';
import { type QueueBounds, type QueueGroup, type Release, Semaphore } from '../../std/semaphore.ts';
import { isOpen, isWaiting } from '../context.ts';
import type { Refusals } from '../edge/refuse.ts';
import { CAREFUL_HEADERS, hasOneHost } from '../head.ts';
import { shownPath } from '../problems.ts';

const overloaded = (): Problem =>
  new Problem('overloaded', 'Too many requests are being answered; try again after Retry-After');

const passes = (request: FastifyRequest): boolean => isOpen(request) || isWaiting(request);

/** Answers without all that is done for an answer that has to be found. */
function answerAtOnce(request: FastifyRequest, reply: FastifyReply, problem: Problem): void {
  const body = problemBody(problem, shownPath(request.url), request.id);
  reply.hijack();
  reply.raw.writeHead(problem.statusCode, {
    ...CAREFUL_HEADERS,
    'x-request-id': request.id,
    ...problem.headers,
    'cache-control': 'no-store',
    'content-type': PROBLEM_TYPE,
    'content-length': Buffer.byteLength(body),
  });
  reply.raw.end(body);
}

/**
 * Turns away at once what the gate has no place for: most of what a service does that is asked far
 * too much, at the cost of what it still answers. Runs before all but what tells of requests.
 */
export const turnAway =
  (gate: Semaphore, refusals: Refusals): onRequestHookHandler =>
  (request, reply, done) => {
    // A request that breaks a rule of HTTP is refused for that, and closes its connection.
    if (!gate.isFull || passes(request) || !hasOneHost(request.raw)) return done();
    const problem = overloaded();
    request.context.failure = problem;
    if (refusals.cancel(request.raw.socket)) reply.raw.shouldKeepAlive = false;
    answerAtOnce(request, reply, problem);
  };

/** The place is released once the answer is out, or its reader gone. */
function admit({ context }: FastifyRequest, leave: Release | null): void {
  if (leave === null) throw overloaded();
  context.needsPlace = false;
  context.leavePlace = leave;
  context.work.atEnd(leave);
}

/**
 * Waits for a place, for a request that came while the database was away.
 * @throws Problem `overloaded`, and `database_unavailable` once the database was away for too long
 */
export const placeOf =
  (gate: Semaphore) =>
  async (request: FastifyRequest): Promise<void> => {
    const { needsPlace, work } = request.context;
    if (needsPlace) admit(request, await gate.acquire({ signal: work.signal }));
  };

/**
 * The one gate of all requests: admits, at once or after a short wait. While the database is away
 * a request goes on without a place for as long as it needs no database, and waits only then: a
 * wrong credential is refused as at any time. Runs before the credential is checked.
 */
export const letIn =
  (gate: Semaphore, lines: QueueGroup): onRequestHookHandler =>
  (request, _reply, done) => {
    if (passes(request)) return done();
    const leave = gate.tryAcquire();
    request.context.needsPlace = leave === null;
    if (leave !== null) admit(request, leave);
    if (leave !== null || lines.isAway) return done();
    placeOf(gate)(request).then(() => done(), done);
  };

/** Has each request wait for the place that it still needs, once its credential is checked. */
export const letInLast =
  (gate: Semaphore): onRequestHookHandler =>
  (request, _reply, done) => {
    if (request.context.needsPlace) placeOf(gate)(request).then(() => done(), done);
    else done();
  };

/**
 * The gate of open addresses: at most `perSecond` of their requests begin in a second, one by one
 * in the order of their arrival, so that strangers take little from clients with a credential.
 * Health addresses and parts of the explorer pass. The answers are in memory: a client that reads
 * slowly takes no place.
 */
export function letOpenIn(line: QueueBounds, perSecond: number): onRequestHookHandler {
  const gate = new Semaphore(1, line);
  const apartMs = 1_000 / perSecond;
  return (request, _reply, done) => {
    const { isHealth, isPart } = request.routeOptions.config;
    if (!isOpen(request) || isHealth || isPart) return done();
    const begin = (leave: Release | null) => {
      if (leave === null) return done(overloaded());
      setTimeout(leave, apartMs).unref();
      done();
    };
    const leave = gate.tryAcquire();
    if (leave !== null) begin(leave);
    else gate.acquire({ signal: request.context.work.signal }).then(begin, done);
  };
}
