import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { principalName } from '../../auth/credentials.ts';
import { Problem } from '../../errors.ts';
import { monotonicMs, type Rate, type RateDecision } from '../../limits/bucket.ts';
import { clientNetwork, type Limits } from '../../limits/limits.ts';
import { isOpen, isWaiting } from '../context.ts';
import type { OnCredentialCheck } from './auth.ts';

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

/** Adds the headers of draft-ietf-httpapi-ratelimit-headers-10: the policy and the rest. */
function setRateHeaders(reply: FastifyReply, rate: Rate, verdict: RateDecision): void {
  reply.headers({
    'ratelimit-policy': `"default";q=${rate.perMinute};w=60`,
    ratelimit: `"default";r=${verdict.remaining};t=${verdict.resetSeconds}`,
  });
}

/** True if a header has a credential, which need not be valid. */
export const hasCredential = ({ headers }: FastifyRequest): boolean =>
  headers['x-api-key'] !== undefined || headers.authorization !== undefined;

/** Hook: rejects a network with too many failed authentications, before the credential check. */
export const checkFailures =
  (limits: Limits): onRequestHookHandler =>
  (request, _reply, done) => {
    // A disconnected socket has no address, although the types say otherwise.
    const network = clientNetwork((request.ip as string | undefined) ?? 'nowhere');
    request.context.network = network;
    const seconds = isOpen(request) ? null : limits.failureWaitSeconds(network, monotonicMs());
    done(seconds === null ? undefined : tooManyFailures(seconds));
  };

/** Counts failed authentications, including those of disconnected clients. */
export const countFailures =
  (limits: Limits): OnCredentialCheck =>
  (request, { refusal }) => {
    // A request without a credential is not a guess.
    const isGuess = refusal?.statusCode === 401 && hasCredential(request);
    if (isGuess) limits.countFailure(request.context.network, monotonicMs());
  };

/** Hook: enforces the rate and concurrency limits of the principal, after the credential check. */
export const limitPrincipal =
  (limits: Limits): onRequestHookHandler =>
  (request, reply, done) => {
    const { principal, work } = request.context;
    if (principal === null) return done();
    const name = principalName(principal);
    const own = limits.effective(principal.limits);
    const verdict = limits.takeRequest(name, own, monotonicMs());
    if (verdict !== null) {
      setRateHeaders(reply, own, verdict);
      if (!verdict.isAllowed) throw tooFast(own, verdict);
    }
    if (isWaiting(request)) return done();
    const release = limits.concurrency.acquire(name, own.concurrent);
    if (release === null) throw tooMany(own.concurrent);
    work.onEnd(release);
    done();
  };
