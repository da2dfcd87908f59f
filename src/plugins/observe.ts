import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from '../auth/principal.ts';
import { Problem, type ProblemCode } from '../errors.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { Causes, type LogLimit } from './log-lines.ts';
import { shownPath } from './path.ts';
import { problemOf } from './problems.ts';
import type { Refused } from './refuse.ts';
import { ClientGone } from './work.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What the request failed with; null where it was answered. */
    failure: unknown;
    /** Bytes that its connection had sent before it. */
    sentBefore: number;
  }
}

/** The status of a request whose client left, as nginx tells it. */
const GONE = 499;

const sentBy = ({ raw }: FastifyRequest): number => raw.socket?.bytesWritten ?? 0;

/** The operation of a request, as `openapi.yaml` names it. */
export const operationOf = ({ is404, routeOptions }: FastifyRequest): string => {
  const { operationId } = (routeOptions.schema ?? {}) as { operationId?: string };
  return is404 ? 'unknown' : (operationId ?? 'page');
};

/** The status of the answer, or what became of it: a broken one has said 200 before. */
export function statusOf({ failure }: FastifyRequest, { statusCode, raw }: FastifyReply) {
  if (failure instanceof ClientGone) return GONE;
  if (raw.headersSent && failure != null && statusCode < 400) return 'broken';
  return raw.writableFinished || failure != null ? statusCode : GONE;
}

/** Whoever asked: the public id of a key, or a hash of a subject, which may be a person's name. */
export function whoOf(principal: Principal | null): object {
  if (!principal) return {};
  const { kind, id } = principal;
  if (kind === 'key') return { key: id };
  return { subject: createHash('sha256').update(id).digest('hex').slice(0, 16) };
}

/** Whether the service is to blame for how a request ended. */
export const isOurs = (status: number | 'broken'): boolean => status === 'broken' || status >= 500;

/** Of this process: an outage is that of all requests. */
const causes = new Causes();

/** What is told of a failure: of one that was foreseen no stack, of a refusal only its code. */
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
function tell(request: FastifyRequest, reply: FastifyReply, { metrics, lines }: Observer): void {
  const { failure, principal, method, url, ip, log } = request;
  const status = statusOf(request, reply);
  const operation = operationOf(request);
  const bytes = Math.max(0, sentBy(request) - request.sentBefore);
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
      ...whoOf(principal ?? null),
      ...told(failure, status),
    },
    'request completed',
  );
}

/** Reports a request when it is over; the hook for that is not called when a client leaves. */
export function tellAtEnd(request: FastifyRequest, reply: FastifyReply, observer: Observer): void {
  request.sentBefore = sentBy(request);
  reply.raw.once('close', () => tell(request, reply, observer));
}

/** Reports what was refused before it was a request: a line of the log, and the metrics. */
export const tellRefused =
  (log: FastifyBaseLogger | undefined, { metrics, lines }: Observer) =>
  (refused: Refused): void => {
    const { code, status } = refused;
    metrics?.refused(code);
    if (lines.admits({ level: 'info', status, code })) log?.info(refused, 'request refused');
  };

/** Reports each request when it is over. Registered before all that may refuse. */
export function observe(app: FastifyInstance, observer: Observer): void {
  app.decorateRequest('failure', null);
  app.decorateRequest('sentBefore', 0);
  app.addHook('onRequest', (request, reply, done) => {
    tellAtEnd(request, reply, observer);
    const { method, url, log } = request;
    if (DEBUG.has(log.level)) log.debug({ method, path: shownPath(url) }, 'incoming request');
    done();
  });
  app.addHook('onClose', async () => observer.lines.summarise());
  app.addHook('onSend', (request, _reply, payload, done) => {
    if (payload instanceof Readable) {
      payload.once('error', (error) => {
        request.failure = error;
      });
    }
    done(null, payload);
  });
}
