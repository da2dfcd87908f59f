import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from '../auth/principal.ts';
import { Problem } from '../errors.ts';
import { momentMs, type Rate, type Verdict } from '../limits/bucket.ts';
import { clientNetwork, type Limits } from '../limits/limits.ts';
import type { HearVerdict } from './auth.ts';
import { isOpen, isWaiting } from './gate.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The network that it came from, as far as failed authentications are counted. */
    network: string;
  }
}

const tooManyFailures = (seconds: number): Problem =>
  new Problem(
    'rate_limited',
    'Too many credentials from your network were refused; wait, and find the client with a bad one',
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

/** The fields of draft-ietf-httpapi-ratelimit-headers-10: the policy, and what is left of it. */
function tellLimit(reply: FastifyReply, rate: Rate, verdict: Verdict): void {
  reply.headers({
    'ratelimit-policy': `"default";q=${rate.perMinute};w=60`,
    ratelimit: `"default";r=${verdict.remaining};t=${verdict.resetSeconds}`,
  });
}

const hasCredential = ({ headers }: FastifyRequest): boolean =>
  headers['x-api-key'] !== undefined || headers.authorization !== undefined;

/**
 * The limit on failed authentications of a network. Registered before `auth`.
 * @returns what `auth` tells its verdicts to: those on clients who have left count as well
 */
export function limitsBeforeAuth(app: FastifyInstance, limits: Limits): HearVerdict {
  app.decorateRequest('network', '');
  app.addHook('onRequest', (request, _reply, done) => {
    // The types do not say that one who is gone has no address any more.
    request.network = clientNetwork((request.ip as string | undefined) ?? 'nowhere');
    const seconds = isOpen(request) ? null : limits.failedTooOften(request.network, momentMs());
    done(seconds === null ? undefined : tooManyFailures(seconds));
  });
  return (request, { refusal }) => {
    // Whoever sends nothing at all has guessed nothing.
    const isGuess = refusal?.statusCode === 401 && hasCredential(request);
    if (isGuess) limits.countFailure(request.network, momentMs());
  };
}

/**
 * What stands for a principal where requests are counted, also in the table that instances share: a
 * subject is a text of any length and may be a person's name.
 */
const nameOf = ({ kind, id }: Principal): string =>
  `${kind}:${kind === 'key' ? id : createHash('sha256').update(id).digest('base64url')}`;

/** What one principal may do. Registered after `auth`. */
export function limitsAfterAuth(app: FastifyInstance, limits: Limits): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { principal } = request;
    if (principal === null) return done();
    const name = nameOf(principal);
    const own = limits.of(principal.limits);
    const verdict = limits.takeRequest(name, own, momentMs());
    if (verdict !== null) {
      tellLimit(reply, own, verdict);
      if (!verdict.isAllowed) throw tooFast(own, verdict);
    }
    if (isWaiting(request)) return done();
    const leave = limits.concurrency.enter(name, own.concurrent);
    if (leave === null) throw tooMany(own.concurrent);
    request.work.atEnd(leave);
    done();
  });
}
