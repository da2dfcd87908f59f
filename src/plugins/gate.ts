import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PROBLEM_TYPE, problemBody } from '../contract/problem.ts';
import { Problem } from '../errors.ts';
import { type Leave, type LineBounds, type Lines, Places } from '../std/places.ts';
import { CAREFUL_HEADERS } from './headers.ts';
import { shownPath } from './path.ts';
import type { Refusals } from './refuse.ts';
import { hasOneHost } from './transport.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Tells a request that waits for news: it takes no place among those that are worked on. */
    isWaiting?: (request: FastifyRequest) => boolean;
    /** A health address: it is answered however many requests there are. */
    isHealth?: boolean;
  }
  interface FastifyRequest {
    /** Whether the request still has to take a place before it may ask the database. */
    needsPlace: boolean;
    /** Releases the place that the request has; null without one. */
    leavePlace: Leave | null;
  }
}

const overloaded = (): Problem =>
  new Problem('overloaded', 'Too many requests are being answered; try again after Retry-After');

/** Whether a request is for nobody in particular: pages, health, and what is not there. */
export const isOpen = ({ is404, routeOptions }: FastifyRequest): boolean =>
  is404 || routeOptions.config.access === 'none';

/** Whether a request waits for news. */
export const isWaiting = (request: FastifyRequest): boolean =>
  request.routeOptions.config.isWaiting?.(request) === true;

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
 * too much, at the cost of what it still answers. Registered before all but what tells of requests.
 */
export function turnAway(app: FastifyInstance, gate: Places, refusals: Refusals): void {
  app.addHook('onRequest', (request, reply, done) => {
    // Who breaks a rule of HTTP is told that, and is let go.
    if (!gate.isFull || passes(request) || !hasOneHost(request.raw)) return done();
    const problem = overloaded();
    request.failure = problem;
    if (refusals.isAnswered(request.raw.socket)) reply.raw.shouldKeepAlive = false;
    answerAtOnce(request, reply, problem);
  });
}

/** The place is released once the answer is out, or its reader gone. */
function admit(request: FastifyRequest, leave: Leave | null): void {
  if (leave === null) throw overloaded();
  request.needsPlace = false;
  request.leavePlace = leave;
  request.work.atEnd(leave);
}

/**
 * Waits for a place, for a request that came while the database was away.
 * @throws Problem `overloaded`, and `database_unavailable` once the database was away for too long
 */
export const placeOf =
  (gate: Places) =>
  async (request: FastifyRequest): Promise<void> => {
    if (request.needsPlace) admit(request, await gate.enter({ signal: request.work.signal }));
  };

/**
 * The one gate of all requests: admits, at once or after a short wait. While the database is away
 * a request goes on without a place for as long as it needs no database, and waits only then: a
 * wrong credential is refused as at any time. Registered before `auth`.
 */
export function letIn(app: FastifyInstance, gate: Places, lines: Lines): void {
  app.decorateRequest('needsPlace', false);
  app.decorateRequest('leavePlace', null);
  // A client without a credential may leave its refusals unread, and must take no place with them.
  app.addHook('onSend', (request, { statusCode }, payload, done) => {
    if (statusCode >= 400) request.leavePlace?.();
    done(null, payload);
  });
  app.addHook('onRequest', (request, _reply, done) => {
    if (passes(request)) return done();
    const leave = gate.take();
    request.needsPlace = leave === null;
    if (leave !== null) admit(request, leave);
    if (leave !== null || lines.isAway) return done();
    placeOf(gate)(request).then(() => done(), done);
  });
}

/** Has each request wait for the place that it still needs. Registered after `auth`. */
export function letInLast(app: FastifyInstance, gate: Places): void {
  const enter = placeOf(gate);
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.needsPlace) enter(request).then(() => done(), done);
    else done();
  });
}

/**
 * The gate of open addresses: at most `perSecond` of their requests begin in a second, one by one
 * in the order of their arrival, so that strangers take little from clients with a credential.
 * Health addresses pass. The answers are in memory: a client that reads slowly takes no place.
 */
export function letOpenIn(app: FastifyInstance, line: LineBounds, perSecond: number): void {
  const gate = new Places(1, line);
  const apartMs = 1_000 / perSecond;
  app.addHook('onRequest', (request, _reply, done) => {
    if (!isOpen(request) || request.routeOptions.config.isHealth) return done();
    const begin = (leave: Leave | null) => {
      if (leave === null) return done(overloaded());
      setTimeout(leave, apartMs).unref();
      done();
    };
    const leave = gate.take();
    if (leave !== null) begin(leave);
    else gate.enter({ signal: request.work.signal }).then(begin, done);
  });
}
