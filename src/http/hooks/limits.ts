import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { Principal } from '../../auth/principal.ts';
import { Problem } from '../../errors.ts';
import { monotonicMs, type Rate, type RateDecision } from '../../limits/bucket.ts';
import { clientNetwork, type Limits } from '../../limits/limits.ts';
import { isOpen, isWaiting } from '../context.ts';
import type { HearVerdict } from './auth.ts';

const tooManyFailures = (seconds: number): Problem =>
  new Problem(
    'rate_limited',
    'Too many credentials from your network were refused; wait, and find the client with a bad one',
    { headers: { 'retry-after': String(seconds) } },
  );

const tooFast = ({ perMinute }: Rate, { resetSeconds }: RateDecision): Problem =>
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
function tellLimit(reply: FastifyReply, rate: Rate, verdict: RateDecision): void {
  reply.headers({
    'ratelimit-policy': `"default";q=${rate.perMinute};w=60`,
    ratelimit: `"default";r=${verdict.remaining};t=${verdict.resetSeconds}`,
  });
}

const hasCredential = ({ headers }: FastifyRequest): boolean =>
  headers['x-api-key'] !== undefined || headers.authorization !== undefined;

/** Refuses a network with too many failed authentications. Runs before a credential is checked. */
export const checkFailures =
  (limits: Limits): onRequestHookHandler =>
  (request, _reply, done) => {
    // The types do not say that one who is gone has no address any more.
    const network = clientNetwork((request.ip as string | undefined) ?? 'nowhere');
    request.context.network = network;
    const seconds = isOpen(request) ? null : limits.failureWaitSeconds(network, monotonicMs());
    done(seconds === null ? undefined : tooManyFailures(seconds));
  };

/** Counts failed authentications, also those of clients who have left. */
export const countFailures =
  (limits: Limits): HearVerdict =>
  (request, { refusal }) => {
    // Whoever sends nothing at all has guessed nothing.
    const isGuess = refusal?.statusCode === 401 && hasCredential(request);
    if (isGuess) limits.countFailure(request.context.network, monotonicMs());
  };

/**
 * The name of a principal where requests are counted, also in the table that instances share: a
 * subject is a text of any length and may be a person's name.
 */
const nameOf = ({ kind, id }: Principal): string =>
  `${kind}:${kind === 'key' ? id : createHash('sha256').update(id).digest('base64url')}`;

/** Limits what one principal may do. Runs after its credential is checked. */
export const limitPrincipal =
  (limits: Limits): onRequestHookHandler =>
  (request, reply, done) => {
    const { principal, work } = request.context;
    if (principal === null) return done();
    const name = nameOf(principal);
    const own = limits.effective(principal.limits);
    const verdict = limits.takeRequest(name, own, monotonicMs());
    if (verdict !== null) {
      tellLimit(reply, own, verdict);
      if (!verdict.isAllowed) throw tooFast(own, verdict);
    }
    if (isWaiting(request)) return done();
    const leave = limits.concurrency.enter(name, own.concurrent);
    if (leave === null) throw tooMany(own.concurrent);
    work.atEnd(leave);
    done();
  };
