import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from '../../auth/credentials.ts';
import { UnknownSigningKey } from '../../auth/refusals.ts';
import { DatabaseFailure } from '../../db/failures.ts';
import { Problem } from '../../errors.ts';
import { clientNetwork } from '../../limits/limits.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import { masked } from '../../std/secrets.ts';
import type { RejectedConnection } from '../edge/refuse.ts';
import { problemOf, shownPath } from '../problems.ts';
import { ClientDisconnected } from '../work.ts';
import { networkOf } from './limit-requests.ts';
import { CauseLimit, type RefusalLines } from './log-lines.ts';

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
function principalFields(principal: Principal | null): Record<string, string> | null {
  if (!principal) return null;
  const { kind, id } = principal;
  if (kind === 'key') return { key: id };
  return { subject: createHash('sha256').update(id).digest('hex').slice(0, 16) };
}

/** The fields of the principal; of one that was known before its check, for a rejection by then. */
function whoOf({ context: { principal, limitName } }: FastifyRequest) {
  if (principal !== null || limitName === '') return principalFields(principal);
  const [kind, id = ''] = limitName.split(':');
  if (kind === 'key') return { key: id };
  return { subject: Buffer.from(id, 'base64url').toString('hex').slice(0, 16) };
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
  const isToken = code === 'invalid_token' || failure instanceof UnknownSigningKey;
  if (isToken && cause instanceof Error) {
    return { code, reason: masked(cause.message).slice(0, REASON_MAX) };
  }
  if (!isServerError(status)) return { code };
  if (cause === undefined) return { code, detail: message };
  return outageCauses.shouldLog(failure) ? { code, err: cause } : { code };
}

/** Log levels that include `debug`, and those that include `info`. */
const DEBUG: ReadonlySet<string> = new Set(['trace', 'debug']);
const INFO: ReadonlySet<string> = new Set([...DEBUG, 'info']);

/** Statuses of refusals that a client can cause at any rate, whoever it is. */
const REFUSED: ReadonlySet<number | 'broken'> = new Set([401, 403, 429, 503]);

/** Outputs of request logs and metrics. */
export interface Observer {
  readonly metrics: Metrics | undefined;
  readonly refusals: RefusalLines;
}

/**
 * The log level of a completed request. At level `info` a client can cause few lines: requests
 * without a credential have none, and refusals have one a minute.
 */
function levelOf(
  request: FastifyRequest,
  status: number | 'broken',
  code: string | undefined,
  { refusals }: Observer,
): 'debug' | 'info' | 'error' {
  const { principal, failure } = request.context;
  const isFault = isServerError(status) && !(failure instanceof UnknownSigningKey);
  const level = isFault ? 'error' : 'info';
  const isRefused = REFUSED.has(status) || (principal === null && level === 'info');
  if (!isRefused) return level;
  if (code === undefined) return 'debug';
  const who = whoOf(request) ?? { network: networkOf(request) };
  return refusals.admits({ level, status, code, who }) ? level : 'debug';
}

/** Logs a completed request, and counts its metrics. */
export function logEnd(request: FastifyRequest, reply: FastifyReply, observer: Observer): void {
  const { context, method, url, ip, log } = request;
  const { failure, bytesBefore } = context;
  const { metrics } = observer;
  const status = statusOf(request, reply);
  const operation = operationOf(request);
  const bytes = Math.max(0, bytesSent(request) - bytesBefore);
  const ms = Math.round(reply.elapsedTime * 1000) / 1000;
  const code =
    failure == null || status === CLIENT_CLOSED_REQUEST ? undefined : problemOf(failure).code;
  metrics?.observe({ operation, status: String(status), seconds: ms / 1000, bytes });
  if (code !== undefined) metrics?.refused(code);
  const level = levelOf(request, status, code, observer);
  if (level !== 'error' && !(level === 'info' ? INFO : DEBUG).has(log.level)) return;
  log[level](
    {
      ...{ operation, method, path: shownPath(url), status, ms, bytes, remoteAddress: ip },
      ...whoOf(request),
      ...failureFields(failure, status),
    },
    'request completed',
  );
}

/** Logs a connection that was rejected before a request was parsed, and counts its metrics. */
export const logRejected =
  (log: FastifyBaseLogger | undefined, { metrics, refusals }: Observer) =>
  (refused: RejectedConnection): void => {
    const { code, status, remoteAddress = 'nowhere' } = refused;
    metrics?.refused(code);
    const who = { network: clientNetwork(remoteAddress) };
    const level = refusals.admits({ level: 'info', status, code, who }) ? 'info' : 'debug';
    log?.[level](refused, 'request refused');
  };

/** Logs a connection that was closed because its network has too many, and counts it. */
export const logRefusedConnection =
  (log: FastifyBaseLogger | undefined, { metrics, refusals }: Observer) =>
  (network: string): void => {
    metrics?.connectionRefused();
    const kind = { level: 'info', code: 'too_many_connections', who: { network } } as const;
    if (refusals.admits(kind)) log?.info({ code: kind.code, network }, 'connection refused');
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
