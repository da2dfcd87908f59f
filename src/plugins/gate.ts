import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PROBLEM_TYPE, problemBody } from '../contract/problem.ts';
import { Problem } from '../errors.ts';
import type { Gate, Leave } from '../limits/gate.ts';
import { CAREFUL_HEADERS } from './headers.ts';
import { shownPath } from './path.ts';
import type { Refusals } from './refuse.ts';
import { hasOneHost } from './transport.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Tells a request that waits for news: it takes no place among those that are worked on. */
    isWaiting?: (request: FastifyRequest) => boolean;
  }
}

/** Seconds that a client is asked to wait, spread so that they do not all come back at once. */
const patience = (): string => String(1 + Math.floor(Math.random() * 5));

const overloaded = (): Problem =>
  new Problem('overloaded', 'Too many requests are being answered; try again after Retry-After', {
    headers: { 'retry-after': patience() },
  });

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
export function turnAway(app: FastifyInstance, gate: Gate, refusals: Refusals): void {
  app.addHook('onRequest', (request, reply, done) => {
    // Who breaks a rule of HTTP is told that, and is let go.
    if (!gate.isFull || passes(request) || !hasOneHost(request.raw)) return done();
    const problem = overloaded();
    request.failure = problem;
    if (refusals.isAnswered(request.raw.socket)) reply.raw.shouldKeepAlive = false;
    answerAtOnce(request, reply, problem);
  });
}

/** The one gate of all requests: lets in, now or after a short wait. Registered before `auth`. */
export function letIn(app: FastifyInstance, gate: Gate): void {
  app.addHook('onRequest', (request, _reply, done) => {
    if (passes(request)) return done();
    // A place is given back once the answer is out, or its reader gone.
    const admit = (leave: Leave | null) => {
      if (leave === null) return done(overloaded());
      request.work.atEnd(leave);
      done();
    };
    const place = gate.enter();
    if (place instanceof Promise) place.then(admit);
    else admit(place);
  });
}
