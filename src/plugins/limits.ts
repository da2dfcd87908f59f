import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../errors.ts';
import { clientNetwork } from '../limits/address.ts';
import type { Rate, Verdict } from '../limits/bucket.ts';
import type { Leave } from '../limits/gate.ts';
import type { Limits } from '../limits/limits.ts';

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

const tooManyFailures = (seconds: number): Problem =>
  new Problem(
    'rate_limited',
    'Too many credentials from your network were refused; mend the credential, and wait',
    { headers: { 'retry-after': String(seconds) } },
  );

const tooFast = ({ perMinute }: Rate, { resetSeconds }: Verdict): Problem =>
  new Problem('rate_limited', `At most ${perMinute} requests a minute; wait for Retry-After`, {
    headers: { 'retry-after': String(resetSeconds) },
  });

const tooMany = (most: number): Problem =>
  new Problem(
    'too_many_concurrent_requests',
    `At most ${most} requests at the same time; send the next when one is answered`,
    { headers: { 'retry-after': '1' } },
  );

/** Gives a place back once the answer is out, or its reader gone. */
function leaveAtEnd(reply: FastifyReply, leave: Leave): void {
  if (reply.raw.closed) leave();
  else reply.raw.once('close', leave);
}

/** The fields of draft-ietf-httpapi-ratelimit-headers-10: the policy, and what is left of it. */
function tellLimit(reply: FastifyReply, rate: Rate, verdict: Verdict): void {
  reply.headers({
    'ratelimit-policy': `"default";q=${rate.perMinute};w=60`,
    ratelimit: `"default";r=${verdict.remaining};t=${verdict.resetSeconds}`,
  });
}

const hasCredential = ({ headers }: FastifyRequest): boolean =>
  headers['x-api-key'] !== undefined || headers.authorization !== undefined;

const isOpen = ({ is404, routeOptions }: FastifyRequest): boolean =>
  is404 || routeOptions.config.access === 'none';

const isWaiting = (request: FastifyRequest): boolean =>
  request.routeOptions.config.isWaiting?.(request) === true;

/**
 * What comes before the credential is looked at: the one gate of all requests, and the limit on
 * failed authentications of a network. Registered before `auth`.
 */
export function limitsBeforeAuth(app: FastifyInstance, limits: Limits): void {
  app.addHook('onRequest', async (request, reply) => {
    if (isOpen(request)) return;
    if (!isWaiting(request)) {
      const leave = await limits.gate.enter();
      if (leave === null) throw overloaded();
      leaveAtEnd(reply, leave);
    }
    const seconds = limits.failedTooOften(clientNetwork(request.ip), Date.now());
    if (seconds !== null) throw tooManyFailures(seconds);
  });
  app.addHook('onResponse', async (request, reply) => {
    // Whoever sends nothing at all has guessed nothing.
    const isGuess = reply.statusCode === 401 && hasCredential(request);
    if (isGuess) limits.countFailure(clientNetwork(request.ip), Date.now());
  });
}

/** What one principal may do. Registered after `auth`. */
export function limitsAfterAuth(app: FastifyInstance, limits: Limits): void {
  app.addHook('onRequest', async (request, reply) => {
    const { principal } = request;
    if (principal === null) return;
    const name = `${principal.kind}:${principal.id}`;
    const own = limits.of(principal.limits);
    const verdict = limits.takeRequest(name, own, Date.now());
    if (verdict !== null) {
      tellLimit(reply, own, verdict);
      if (!verdict.isAllowed) throw tooFast(own, verdict);
    }
    if (isWaiting(request)) return;
    const leave = limits.concurrency.enter(name, own.concurrent);
    if (leave === null) throw tooMany(own.concurrent);
    leaveAtEnd(reply, leave);
  });
}
