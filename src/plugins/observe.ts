import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from '../auth/principal.ts';
import { Problem, type ProblemCode } from '../errors.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { shownPath } from './path.ts';
import { problemOf } from './problems.ts';
import type { Refused } from './refuse.ts';
import { ClientGone } from './work.ts';

const SECOND_MS = 1_000;

/** The common members of log lines that are counted together; there are few kinds. */
interface LineKind {
  readonly level: 'info' | 'error';
  /** Set for an answer without a problem. */
  readonly operation?: string;
  readonly status: number | 'broken';
  /** Code of the problem. */
  readonly code?: string;
}

interface Counted {
  readonly kind: LineKind;
  logged: number;
  omitted: number;
}

/**
 * Bounds the log lines that clients without a credential can cause: so many a second of each kind.
 * The others are counted, and each kind has one summary line a second.
 */
export class LogLimit {
  readonly #log: FastifyBaseLogger | undefined;
  readonly #perSecond: number;
  readonly #counted = new Map<string, Counted>();
  #timer: NodeJS.Timeout | null = null;

  /** @param perSecond 0 for no limit */
  constructor(log: FastifyBaseLogger | undefined, perSecond: number) {
    this.#log = log;
    this.#perSecond = perSecond;
  }

  /** True if the line is to be logged by itself; otherwise it is counted for the summary. */
  admits(kind: LineKind): boolean {
    if (this.#perSecond === 0) return true;
    this.#timer ??= setTimeout(() => this.summarise(), SECOND_MS).unref();
    const key = `${kind.status} ${kind.code ?? kind.operation}`;
    let counted = this.#counted.get(key);
    if (!counted) {
      counted = { kind, logged: 0, omitted: 0 };
      this.#counted.set(key, counted);
    }
    if (counted.logged < this.#perSecond) {
      counted.logged += 1;
      return true;
    }
    counted.omitted += 1;
    return false;
  }

  /** Logs the summaries, and begins another second. */
  summarise(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    for (const { kind, omitted } of this.#counted.values()) {
      const { level, ...shared } = kind;
      if (omitted > 0) this.#log?.[level]({ ...shared, count: omitted }, 'requests summarised');
    }
    this.#counted.clear();
  }
}

/** The codes of every refusal while the database or an issuer of tokens is away. */
const OUTAGE: ReadonlySet<ProblemCode> = new Set(['database_unavailable', 'auth_unavailable']);

const APART_MS = 1_000;

/** The most kinds of causes that are logged in that time: messages may differ without end. */
const KINDS_MAX = 8;

/** How far causes of causes are followed. */
const DEPTH_MAX = 5;

/** The kind of a refusal: the codes, or else the messages, of its chain of causes. */
function kindOf(problem: Problem): string {
  const parts: unknown[] = [];
  let error: unknown = problem;
  for (let depth = 0; depth < DEPTH_MAX && error instanceof Error; depth += 1) {
    parts.push((error as { code?: unknown }).code ?? error.message);
    error = error.cause;
  }
  return JSON.stringify(parts.map(String));
}

/** Logs each cause of an outage once a second, and not in the line of each request. */
export class Causes {
  readonly #now: () => number;
  readonly #told = new Set<string>();
  #since = Number.NEGATIVE_INFINITY;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** True if a refusal is logged with its cause; others of that cause are not, for a second. */
  mayTell(problem: Problem): boolean {
    if (!OUTAGE.has(problem.code)) return true;
    const now = this.#now();
    if (now - this.#since >= APART_MS) {
      this.#since = now;
      this.#told.clear();
    }
    const kind = kindOf(problem);
    if (this.#told.has(kind) || this.#told.size >= KINDS_MAX) return false;
    this.#told.add(kind);
    return true;
  }
}

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
