import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type {
  FastifyBaseLogger,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
} from 'fastify';
import type { Principal } from '../../auth/principal.ts';
import { DatabaseFailure } from '../../db/failures.ts';
import { Problem, type ProblemCode } from '../../errors.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { Ended, Tracing } from '../../tracing/tracing.ts';
import type { RejectedConnection } from '../edge/refuse.ts';
import { problemOf, shownPath } from '../problems.ts';
import { ClientGone } from '../work.ts';
import { Causes, type LogLimit } from './log-lines.ts';

/** The status of a request whose client left, as nginx tells it. */
const GONE = 499;

/** Bytes that the connection of a request has sent so far. */
export const sentBy = ({ raw }: FastifyRequest): number => raw.socket?.bytesWritten ?? 0;

/** The operation of a request, as `openapi.yaml` names it. */
const operationOf = ({ is404, routeOptions }: FastifyRequest): string => {
  const { operationId } = (routeOptions.schema ?? {}) as { operationId?: string };
  return is404 ? 'unknown' : (operationId ?? 'page');
};

/** The status of the answer, or what became of it: a broken one has said 200 before. */
function statusOf({ context }: FastifyRequest, { statusCode, raw }: FastifyReply) {
  const { failure } = context;
  if (failure instanceof ClientGone) return GONE;
  if (raw.headersSent && failure != null && statusCode < 400) return 'broken';
  return raw.writableFinished || failure != null ? statusCode : GONE;
}

/** Whoever asked: the public id of a key, or a hash of a subject, which may be a person's name. */
function whoOf(principal: Principal | null): object {
  if (!principal) return {};
  const { kind, id } = principal;
  if (kind === 'key') return { key: id };
  return { subject: createHash('sha256').update(id).digest('hex').slice(0, 16) };
}

/** True if the service is to blame for the end of a request. */
const isOurs = (status: number | 'broken'): boolean => status === 'broken' || status >= 500;

/** One for the process: an outage hits all requests. */
const causes = new Causes();

/** A failure in its log line: a foreseen one has no stack, a refusal only its code. */
function told(failure: unknown, status: number | 'broken'): object {
  if (failure == null || failure instanceof ClientGone) return {};
  if (!(failure instanceof Problem)) return isOurs(status) ? { err: failure } : {};
  const { code, message, cause } = failure;
  if (!isOurs(status)) return { code };
  if (cause === undefined) return { code, detail: message };
  return causes.mayTell(failure) ? { code, err: cause } : { code };
}

/** The levels of a log that tells of what begins, and of one that tells of what went well. */
const DEBUG: ReadonlySet<string> = new Set(['trace', 'debug']);
const INFO: ReadonlySet<string> = new Set([...DEBUG, 'info']);

/** Refusals of a limit: a client with a credential can cause as many as one without. */
const OF_LIMITS: ReadonlySet<string> = new Set<ProblemCode>([
  'overloaded',
  'rate_limited',
  'too_many_concurrent_requests',
]);

/** Where requests are reported. */
export interface Observer {
  readonly metrics: Metrics | undefined;
  readonly lines: LogLimit;
}

/** Reports a request that is over: a line of the log, and the metrics. */
export function tellEnd(
  request: FastifyRequest,
  reply: FastifyReply,
  { metrics, lines }: Observer,
): void {
  const { context, method, url, ip, log } = request;
  const { failure, principal, sentBefore } = context;
  const status = statusOf(request, reply);
  const operation = operationOf(request);
  const bytes = Math.max(0, sentBy(request) - sentBefore);
  const ms = Math.round(reply.elapsedTime * 1000) / 1000;
  const code = failure == null || status === GONE ? undefined : problemOf(failure).code;
  metrics?.observe({ operation, status: String(status), seconds: ms / 1000, bytes });
  if (code !== undefined) metrics?.refused(code);
  if (!isOurs(status) && !INFO.has(log.level)) return;
  const level = isOurs(status) ? 'error' : 'info';
  const isBounded = !principal || OF_LIMITS.has(code ?? '');
  if (isBounded && !lines.admits({ level, status, ...(code ? { code } : { operation }) })) return;
  log[level](
    {
      ...{ operation, method, path: shownPath(url), status, ms, bytes, remoteAddress: ip },
      ...whoOf(principal),
      ...told(failure, status),
    },
    'request completed',
  );
}

/** Reports what was refused before it was a request: a line of the log, and the metrics. */
export const tellRefused =
  (log: FastifyBaseLogger | undefined, { metrics, lines }: Observer) =>
  (refused: RejectedConnection): void => {
    const { code, status } = refused;
    metrics?.refused(code);
    if (lines.admits({ level: 'info', status, code })) log?.info(refused, 'request refused');
  };

/** Logs a request that begins, where the log tells of that. */
export function tellBegin({ method, url, log }: FastifyRequest): void {
  if (DEBUG.has(log.level)) log.debug({ method, path: shownPath(url) }, 'incoming request');
}

/** Notes the failure of an answer that breaks off after its first byte. */
export function watchAnswer({ context }: FastifyRequest, payload: unknown): void {
  if (!(payload instanceof Readable)) return;
  payload.once('error', (error) => {
    context.failure = error instanceof DatabaseFailure ? problemOf(error) : error;
  });
}

/** The attributes of a request's trace: as in the log, no header, query or body. */
function endedOf(request: FastifyRequest, reply: FastifyReply): Ended {
  const { method, url, id, ip, is404, context, routeOptions } = request;
  const { failure, principal } = context;
  const status = statusOf(request, reply);
  const route = is404 ? undefined : routeOptions.url;
  const who = Object.entries(whoOf(principal));
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
    isFailed: isOurs(status),
  };
}

/**
 * Sends a trace of each request. Runs before all that asks the database: what is done after this
 * hook is done within the trace, also once a body was read.
 */
export const traced =
  (tracing: Tracing): onRequestHookHandler =>
  (request, reply, done) => {
    const span = tracing.begin(request.headers, request.method);
    request.context.work.atEnd(() => span.end(endedOf(request, reply)));
    span.within(done);
  };
