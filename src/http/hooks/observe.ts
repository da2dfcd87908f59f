import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type {
  FastifyBaseLogger,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
} from 'fastify';
import type { Principal } from '../../auth/credentials.ts';
import { DatabaseFailure } from '../../db/failures.ts';
import { Problem, type ProblemCode } from '../../errors.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import { masked } from '../../std/secrets.ts';
import type { SpanEnd, Tracing } from '../../tracing/tracing.ts';
import type { RejectedConnection } from '../edge/refuse.ts';
import { problemOf, shownPath } from '../problems.ts';
import { ClientDisconnected } from '../work.ts';
import { CauseLimit, type LogLimit } from './log-lines.ts';

/** Logged status of a request whose client disconnected, as in nginx. */
const CLIENT_CLOSED_REQUEST = 499;

/** Bytes written to the connection of a request so far. */
export const bytesSent = ({ raw }: FastifyRequest): number => raw.socket?.bytesWritten ?? 0;

/** The operationId of a request in `openapi.yaml`. */
const operationOf = ({ is404, routeOptions }: FastifyRequest): string => {
  const { operationId } = (routeOptions.schema ?? {}) as { operationId?: string };
  return is404 ? 'unknown' : (operationId ?? 'page');
};

/** The logged status: `broken` for a response that failed after its 200 was sent. */
function statusOf({ context }: FastifyRequest, { statusCode, raw }: FastifyReply) {
  const { failure } = context;
  if (failure instanceof ClientDisconnected) return CLIENT_CLOSED_REQUEST;
  if (raw.headersSent && failure != null && statusCode < 400) return 'broken';
  return raw.writableFinished || failure != null ? statusCode : CLIENT_CLOSED_REQUEST;
}

/** The public id of a key, or a hash of a subject, which may be a person's name. */
function principalFields(principal: Principal | null): object {
  if (!principal) return {};
  const { kind, id } = principal;
  if (kind === 'key') return { key: id };
  return { subject: createHash('sha256').update(id).digest('hex').slice(0, 16) };
}

/** True if a request failed by a fault of the service. */
const isServerError = (status: number | 'broken'): boolean => status === 'broken' || status >= 500;

/** One for the process, because an outage affects all requests. */
const outageCauses = new CauseLimit();

/** Maximum length of the logged reason of a refused token, in characters. */
const REASON_MAX = 128;

/**
 * Log fields of a failure: the code of a refusal, the reason why a token is invalid, the cause of a
 * server error.
 */
function failureFields(failure: unknown, status: number | 'broken'): object {
  if (failure == null || failure instanceof ClientDisconnected) return {};
  if (!(failure instanceof Problem)) return isServerError(status) ? { err: failure } : {};
  const { code, message, cause } = failure;
  if (code === 'invalid_token' && cause instanceof Error) {
    return { code, reason: masked(cause.message).slice(0, REASON_MAX) };
  }
  if (!isServerError(status)) return { code };
  if (cause === undefined) return { code, detail: message };
  return outageCauses.shouldLog(failure) ? { code, err: cause } : { code };
}

/** Log levels that include `debug`, and those that include `info`. */
const DEBUG: ReadonlySet<string> = new Set(['trace', 'debug']);
const INFO: ReadonlySet<string> = new Set([...DEBUG, 'info']);

/** Codes of limits, whose log lines are bounded for authenticated clients too. */
const LIMIT_CODES: ReadonlySet<string> = new Set<ProblemCode>([
  'overloaded',
  'rate_limited',
  'too_many_concurrent_requests',
]);

/** Outputs of request logs and metrics. */
export interface Observer {
  readonly metrics: Metrics | undefined;
  readonly lines: LogLimit;
}

/** Logs a completed request, and counts its metrics. */
export function logEnd(
  request: FastifyRequest,
  reply: FastifyReply,
  { metrics, lines }: Observer,
): void {
  const { context, method, url, ip, log } = request;
  const { failure, principal, bytesBefore } = context;
  const status = statusOf(request, reply);
  const operation = operationOf(request);
  const bytes = Math.max(0, bytesSent(request) - bytesBefore);
  const ms = Math.round(reply.elapsedTime * 1000) / 1000;
  const code =
    failure == null || status === CLIENT_CLOSED_REQUEST ? undefined : problemOf(failure).code;
  metrics?.observe({ operation, status: String(status), seconds: ms / 1000, bytes });
  if (code !== undefined) metrics?.refused(code);
  if (!isServerError(status) && !INFO.has(log.level)) return;
  const level = isServerError(status) ? 'error' : 'info';
  const isBounded = !principal || LIMIT_CODES.has(code ?? '');
  if (isBounded && !lines.admits({ level, status, ...(code ? { code } : { operation }) })) return;
  log[level](
    {
      ...{ operation, method, path: shownPath(url), status, ms, bytes, remoteAddress: ip },
      ...principalFields(principal),
      ...failureFields(failure, status),
    },
    'request completed',
  );
}

/** Logs a connection that was rejected before a request was parsed, and counts its metrics. */
export const logRejected =
  (log: FastifyBaseLogger | undefined, { metrics, lines }: Observer) =>
  (refused: RejectedConnection): void => {
    const { code, status } = refused;
    metrics?.refused(code);
    if (lines.admits({ level: 'info', status, code })) log?.info(refused, 'request refused');
  };

/** Logs an incoming request at level debug. */
export function logBegin({ method, url, log }: FastifyRequest): void {
  if (DEBUG.has(log.level)) log.debug({ method, path: shownPath(url) }, 'incoming request');
}

/** Records an error that aborts a response after its first byte. */
export function recordStreamError({ context }: FastifyRequest, payload: unknown): void {
  if (!(payload instanceof Readable)) return;
  payload.once('error', (error) => {
    context.failure = error instanceof DatabaseFailure ? problemOf(error) : error;
  });
}

/** The span attributes of a request; like the log, without headers, query and body. */
function spanEndOf(request: FastifyRequest, reply: FastifyReply): SpanEnd {
  const { method, url, id, ip, is404, context, routeOptions } = request;
  const { failure, principal } = context;
  const status = statusOf(request, reply);
  const route = is404 ? undefined : routeOptions.url;
  const who = Object.entries(principalFields(principal));
  return {
    name: route === undefined ? method : `${method} ${route}`,
    attributes: {
      'http.request.method': method,
      'http.route': route,
      'http.response.status_code': status === 'broken' ? reply.statusCode : status,
      'url.path': shownPath(url),
      'client.address': ip,
      'error.type': failure instanceof Problem ? failure.code : undefined,
      'prices.operation': operationOf(request),
      'prices.request_id': id,
      'prices.revision': reply.getHeader('x-data-revision')?.toString(),
      ...Object.fromEntries(who.map(([kind, shown]) => [`prices.${kind}`, shown])),
    },
    isFailed: isServerError(status),
  };
}

/**
 * Hook: traces the request. It runs before any database query, because later hooks and the handler
 * run within its span.
 */
export const trace =
  (tracing: Tracing): onRequestHookHandler =>
  (request, reply, done) => {
    const span = tracing.begin(request.headers, request.method);
    request.context.work.onEnd(() => span.end(spanEndOf(request, reply)));
    span.within(done);
  };
