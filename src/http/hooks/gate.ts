import type { OutgoingHttpHeaders } from 'node:http';
import type {
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  preValidationHookHandler,
} from 'fastify';
import { PROBLEM_TYPE, problemBody } from '../../contract/schemas/problem.ts';
import { Problem } from '../../errors.ts';
import { type Gate, strangersOf } from '../../limits/gate.ts';
import type { Limits } from '../../limits/limits.ts';
import { type QueueBounds, type Release, Semaphore } from '../../std/semaphore.ts';
import { isOpen, isWaiting } from '../context.ts';
import { corsHeaders } from '../cors.ts';
import { shownPath } from '../problems.ts';
import { hasOneHost, SECURITY_HEADERS } from '../request-head.ts';
import { beyondLimits, knownPrincipal, networkOf } from './limit-requests.ts';

/*
 * The hooks of every request, one file for each concern. `pipeline.ts` adds them in their order.
 * The gate of this file admits requests, or rejects them before any other work.
 */

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
    ...(reply.getHeaders() as OutgoingHttpHeaders),
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
 * Hook: rejects a request at once if the gate and its queue are full, or if its principal is known
 * to be beyond its limits. It runs before any other work, because most requests are rejections
 * under overload. An admitted request has a reservation during its checks.
 * @param origins the allowed origins of pages, which must be able to read the rejection
 */
export function shedLoad(limits: Limits, origins: ReadonlySet<string>): onRequestHookHandler {
  const { gate } = limits;
  /** The rejection of a request; null for one that has a reservation now, or needs none. */
  const rejection = (request: FastifyRequest, reply: FastifyReply): Problem | null => {
    const known = knownPrincipal(limits, request);
    if (!isWaiting(request)) {
      const reserved = gate.reserve(known?.name ?? strangersOf(networkOf(request)));
      if (reserved === null) return overloaded();
      request.context.holdPlace(reserved);
    }
    return known && beyondLimits(limits, request, reply, known);
  };
  return (request, reply, done) => {
    // Invalid HTTP is rejected by a later hook, which also closes the connection.
    if (isOpen(request) || !hasOneHost(request.raw)) return done();
    const settle = (problem: Problem | null): void => {
      if (problem === null) {
        done();
        return;
      }
      request.context.failure = problem;
      request.context.releasePlace();
      sendAtOnce(request, reply, problem, origins);
    };
    const problem = rejection(request, reply);
    const verified = problem?.code === 'overloaded' ? gate.verify() : null;
    if (verified === null) return settle(problem);
    void verified.then(() => settle(rejection(request, reply)));
  };
}

/** Hook: releases the reservation of a request whose body has not arrived. */
export const waitForBody = (request: FastifyRequest): void => {
  const { context } = request;
  if (context.body?.isWhole === false) context.releasePlace();
};

/**
 * Hook: admits requests to a place of the gate, at once or after a short wait in its queue. It runs
 * when the body has arrived, because a place is for computing.
 */
export const takePlace =
  (gate: Gate): preValidationHookHandler =>
  (request, _reply, done) => {
    if (bypassesGate(request)) return done();
    const { context } = request;
    const { limitName, work } = context;
    // In the same turn, so that no other request takes what it had reserved.
    context.releasePlace();
    const begin = (place: Release | null): void => {
      if (place !== null) context.holdPlace(place);
      done(place === null ? overloaded() : undefined);
    };
    const place = gate.tryAcquire(limitName);
    if (place !== null) begin(place);
    else gate.acquire(limitName, { signal: work.signal }).then(begin, done);
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
