import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Health as HealthSchema, Live, ref } from '../../contract/schemas/components.ts';
import type { Client } from '../../db/client.ts';
import { type DatabaseHealth, NO_PRICES } from '../../db/health.ts';
import type { MinRevisionCheck } from '../../db/min-revision.ts';
import { retryAfter } from '../../errors.ts';
import { dayAfter } from '../../std/days.ts';
import { PROGRAM } from '../../std/program.ts';
import { healthOperation, liveOperation, readyOperation } from './operations.ts';

const newestOf = (all: Iterable<string>): string | null => {
  let newest: string | null = null;
  for (const each of all) if (newest === null || isLater(each, newest)) newest = each;
  return newest;
};

/** Compares instants without their `Z`, because their number of decimals varies. */
const isLater = (a: string, b: string): boolean => a.slice(0, -1) > b.slice(0, -1);

/** The version of the service, and the configured source of exchange rates. */
interface About {
  readonly version: string;
  readonly rateSource: string;
}

/** A conversion uses a rate of at most so many days before its point. */
const RATE_AGE_DAYS_MAX = 7;

/** True if no rate of the source is new enough for a price of today. A source may have none. */
function areRatesStale(
  { rateSource }: About,
  { rateDays }: DatabaseHealth,
  nowMs: number,
): boolean {
  const newest = rateDays.get(rateSource);
  if (newest === undefined) return false;
  return newest < dayAfter(new Date(nowMs).toISOString().slice(0, 10), -RATE_AGE_DAYS_MAX);
}

/** Why the database cannot be used, and what the operator has to do; null if it can. */
function databaseReason({ database, schema }: DatabaseHealth): string | null {
  if (database !== 'ok') return 'The database cannot be used; the log of the service says why';
  if (schema === 'ok') return null;
  return `The database lacks the schema of this version; run: ${PROGRAM} db migrate`;
}

/** The state of the exchange rates, with what the operator has to do if they are not usable. */
function ratesOf(about: About, seen: DatabaseHealth, nowMs: number) {
  const { rateSource } = about;
  if (seen.rateSources === null) return { rates: 'unknown', reason: null };
  if (!seen.rateSources.includes(rateSource)) {
    const reason = `FX_SOURCE: there is no source of exchange rates ${rateSource}; load its rates`;
    return { rates: 'unknown_source', reason };
  }
  if (!areRatesStale(about, seen, nowMs)) return { rates: 'ok', reason: null };
  const newest = seen.rateDays.get(rateSource);
  const reason =
    `The newest exchange rate of ${rateSource} is of ${newest}, too old for a price of ` +
    'today; load newer rates';
  return { rates: 'stale', reason };
}

const bodyOf = (about: About, seen: DatabaseHealth, behindMs: number | null, nowMs: number) => {
  const { version } = about;
  const { database, schema } = seen;
  const fault = databaseReason(seen);
  const latestPublishedAt = newestOf(seen.publishedAt.values());
  const { rates, reason } = ratesOf(about, seen, nowMs);
  const lacks = [latestPublishedAt === null ? NO_PRICES : null, reason];
  const reasons = fault === null ? lacks.filter((each) => each !== null) : [fault];
  const status = fault !== null ? 'unavailable' : reasons.length === 0 ? 'ok' : 'degraded';
  const behindSince = behindMs === null ? null : new Date(Date.now() - behindMs).toISOString();
  const checks = { database, schema, rates, behindSince, data: { latestPublishedAt } };
  return { status, reasons, version, time: new Date().toISOString(), checks };
};

type HealthBody = ReturnType<typeof bodyOf>;

/** Readiness during a stop: running requests finish, but no new ones should be sent. */
const stopping = (body: HealthBody) => ({
  ...body,
  status: 'unavailable',
  reasons: [...body.reasons, 'The service is stopping'],
  checks: { ...body.checks, service: 'shutting_down' },
});

/** Readiness of a node whose standby lacks commits. */
const behind = (body: HealthBody) => ({
  ...body,
  status: 'unavailable',
  reasons: [...body.reasons, 'The standby of this node is behind its primary'],
});

/** True if a balancer asks for nodes that are behind as well, because no other node is ready. */
const takesBehind = ({ url }: FastifyRequest): boolean => /[?&]behind=ok(&|$)/.test(url);

/**
 * True if a balancer needs 404, not 503, from a node that works but takes no new requests. HAProxy
 * lets its running requests end (`http-check disable-on-404`) and repeats those of a failed node.
 */
const drainsBy404 = ({ url }: FastifyRequest): boolean => /[?&]drain=404(&|$)/.test(url);

/**
 * Adds the health routes. They need no credential and run no query: they report the last background
 * check.
 */
export function healthRoutes(
  app: FastifyInstance,
  about: About,
  { health }: Pick<Client, 'health'>,
  minRevision: Pick<MinRevisionCheck, 'behindMs'>,
  clock: () => { readonly nowMs: number },
): void {
  const answer = async (request: FastifyRequest, reply: FastifyReply, isReadiness: boolean) => {
    const database = await health.current();
    const behindMs = minRevision.behindMs();
    const body = bodyOf(about, database, behindMs, clock().nowMs);
    const isBehind = behindMs !== null && !takesBehind(request);
    const seen = !isReadiness
      ? body
      : app.isStopping
        ? stopping(body)
        : isBehind
          ? behind(body)
          : body;
    reply.header('cache-control', 'no-store');
    if (seen.status !== 'unavailable') return seen;
    const isDraining = seen !== body && body.status !== 'unavailable' && drainsBy404(request);
    reply.code(isDraining ? 404 : 503).header('retry-after', retryAfter());
    return seen;
  };
  const response = (description: string) => ({
    200: { description, ...ref(HealthSchema) },
    503: { description: 'The service cannot answer at the moment', ...ref(HealthSchema) },
  });
  for (const [url, operation] of [
    ['/health', healthOperation('health', 'Health of the service')],
    ['/v3/prices/health', healthOperation('pricesHealth', 'Health of the price endpoints')],
    ['/ready', readyOperation],
  ] as const) {
    app.get(url, {
      config: { access: 'none', isHealth: true },
      schema: { ...operation, response: response('The service can answer') },
      handler: (request, reply) => answer(request, reply, url === '/ready'),
    });
  }
  app.get('/live', {
    config: { access: 'none', isHealth: true },
    schema: { ...liveOperation, response: { 200: { description: 'It runs', ...ref(Live) } } },
    handler: async (_request, reply) => {
      reply.header('cache-control', 'no-store');
      return { status: 'ok' };
    },
  });
}
