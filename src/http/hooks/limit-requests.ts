import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { calendarTokenIn, principalName } from '../../auth/credentials.ts';
import { UnknownSigningKey } from '../../auth/refusals.ts';
import { Problem } from '../../errors.ts';
import { monotonicMs, type Rate, type RateDecision } from '../../limits/bucket.ts';
import { clientNetwork, type KnownPrincipal, type Limits } from '../../limits/limits.ts';
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

const tooMany = (requestsMax: number): Problem =>
  new Problem(
    'too_many_concurrent_requests',
    `At most ${requestsMax} requests at the same time; send the next when one is answered`,
    { headers: { 'retry-after': '1' } },
  );

/** Adds the headers of draft-ietf-httpapi-ratelimit-headers-10: the policy and the rest. */
function setRateHeaders(reply: FastifyReply, rate: Rate, verdict: RateDecision): void {
  reply.headers({
    'ratelimit-policy': `"default";q=${rate.perMinute};w=60`,
    ratelimit: `"default";r=${verdict.remaining};t=${verdict.resetSeconds}`,
  });
}

/** True if a request has a credential, which need not be valid. */
export const hasCredential = ({ headers, url }: FastifyRequest): boolean =>
  headers['x-api-key'] !== undefined ||
  headers.authorization !== undefined ||
  calendarTokenIn(url) !== null;

/** The network of a client, by which it is limited while its principal is unknown. */
export function networkOf(request: FastifyRequest): string {
  const { context } = request;
  // A disconnected socket has no address, although the types say otherwise.
  if (context.network === '') {
    context.network = clientNetwork((request.ip as string | undefined) ?? 'nowhere');
  }
  return context.network;
}

/** The principal or, while it is unknown, the network by which a request is limited. */
export const limitedBy = (request: FastifyRequest): string =>
  request.context.limitName || networkOf(request);

/** Hook: rejects a network with too many failed authentications, before the credential check. */
export const checkFailures =
  (limits: Limits): onRequestHookHandler =>
  (request, _reply, done) => {
    const network = networkOf(request);
    const seconds = isOpen(request) ? null : limits.failureWaitSeconds(network, monotonicMs());
    done(seconds === null ? undefined : tooManyFailures(seconds));
  };

/** Counts failed authentications, including those of disconnected clients. */
export const countFailures =
  (limits: Limits): OnCredentialCheck =>
  (request, { refusal }) => {
    // A request without a credential is not a guess, and an unknown signing key may be one.
    const isGuess = refusal?.statusCode === 401 || refusal instanceof UnknownSigningKey;
    if (!isGuess || !hasCredential(request)) return;
    limits.countFailure(request.context.network, monotonicMs());
    limits.known.delete(request.context.credential);
  };

/** The password of Basic, whose user name may be any; another credential as it is. */
function passwordOf(text: string): string {
  if (!/^basic /i.test(text)) return text;
  const pair = Buffer.from(text.slice(6), 'base64').toString('latin1');
  return pair.slice(pair.indexOf(':') + 1);
}

/** The principal that the credential of a request had at its last check; null if unknown. */
export function knownPrincipal(
  limits: Limits,
  { headers, context, url }: FastifyRequest,
): KnownPrincipal | null {
  const text = headers['x-api-key'] ?? headers.authorization ?? calendarTokenIn(url);
  if (typeof text !== 'string') return null;
  context.credential = hash('sha256', passwordOf(text), 'base64');
  return limits.known.get(context.credential) ?? null;
}

/**
 * Counts a request of a principal, and enforces its rate and concurrency limits.
 * @returns the rejection of a request beyond them
 */
export function beyondLimits(
  limits: Limits,
  request: FastifyRequest,
  reply: FastifyReply,
  { name, limits: own }: KnownPrincipal,
): Problem | null {
  const { context } = request;
  context.limitName = name;
  const verdict = limits.takeRequest(name, own, monotonicMs());
  if (verdict !== null) {
    setRateHeaders(reply, own, verdict);
    if (!verdict.isAllowed) return tooFast(own, verdict);
  }
  if (isWaiting(request)) return null;
  const release = limits.concurrency.acquire(name, own.concurrent);
  if (release === null) return tooMany(own.concurrent);
  context.work.onEnd(release);
  return null;
}

/**
 * Hook: enforces the rate and concurrency limits of a principal, unless that was done before its
 * credential check. Each verified request counts, also one that lacks the scope.
 */
export const limitPrincipal =
  (limits: Limits): onRequestHookHandler =>
  (request, reply, done) => {
    const { principal, credential, limitName } = request.context;
    if (principal === null) return done();
    const known = { name: principalName(principal), limits: limits.effective(principal.limits) };
    if (credential !== '') limits.known.set(credential, known);
    const problem = limitName === '' ? beyondLimits(limits, request, reply, known) : null;
    done(problem ?? undefined);
  };
