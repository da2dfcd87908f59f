import type { FastifyBaseLogger } from 'fastify';
import type { Problem, ProblemCode } from '../../errors.ts';

const MINUTE_MS = 60_000;

/** Maximum number of kinds with a count of their own. Clients choose networks, so it is bounded. */
const REFUSALS_MAX = 1_000;

/** Members by which refusals are grouped. */
interface RefusalKind {
  readonly level: 'info' | 'error';
  /** None for a connection that was closed before a request. */
  readonly status?: number | 'broken';
  /** Code of the problem. */
  readonly code: string;
  /** Log fields of the principal, or of the network of a client without one. */
  readonly who: Readonly<Record<string, string>>;
}

interface RefusalCount {
  readonly kind: RefusalKind;
  readonly dueMs: number;
  omitted: number;
}

/**
 * Limits the log lines of refusals to one a minute for each principal or network and code: the
 * first refusal has its own line, and further ones are counted in one line a minute later.
 */
export class RefusalLines {
  readonly #log: FastifyBaseLogger | undefined;
  readonly #now: () => number;
  /** In the order of `dueMs`, since all windows have the same length. */
  readonly #counts = new Map<string, RefusalCount>();
  #timer: NodeJS.Timeout | null = null;

  constructor(log: FastifyBaseLogger | undefined, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  /** True if the refusal may have its own line; otherwise it is counted. */
  admits(kind: RefusalKind): boolean {
    const known = this.#counts.get(keyOf(kind)) ?? this.#counts.get(keyOf(withoutWho(kind)));
    if (known) {
      known.omitted += 1;
      return false;
    }
    this.#begin(this.#counts.size < REFUSALS_MAX ? kind : withoutWho(kind));
    return true;
  }

  /** Logs the counts whose minute is over. A timer calls it. */
  writeDue(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const nowMs = this.#now();
    for (const [key, count] of this.#counts) {
      if (count.dueMs > nowMs) {
        this.#timer ??= setTimeout(() => this.writeDue(), count.dueMs - nowMs).unref();
        break;
      }
      this.#counts.delete(key);
      // The next minute has its line already.
      if (this.#write(count)) this.#begin(count.kind);
    }
  }

  /** Logs all counts, at a stop. */
  close(): void {
    if (this.#timer) clearTimeout(this.#timer);
    for (const count of this.#counts.values()) this.#write(count);
    this.#counts.clear();
  }

  #begin(kind: RefusalKind): void {
    this.#counts.set(keyOf(kind), { kind, omitted: 0, dueMs: this.#now() + MINUTE_MS });
    this.#timer ??= setTimeout(() => this.writeDue(), MINUTE_MS).unref();
  }

  #write({ kind: { level, who, ...shared }, omitted }: RefusalCount): boolean {
    if (omitted > 0) this.#log?.[level]({ ...shared, ...who, count: omitted }, 'requests refused');
    return omitted > 0;
  }
}

const keyOf = ({ status, code, who }: RefusalKind): string =>
  `${status ?? ''} ${code} ${Object.values(who).join()}`;

const withoutWho = (kind: RefusalKind): RefusalKind => ({ ...kind, who: {} });

/** Codes of refusals during an outage of the database or of a token issuer. */
const OUTAGE: ReadonlySet<ProblemCode> = new Set(['database_unavailable', 'auth_unavailable']);

const WINDOW_MS = 1_000;

/** Maximum number of causes logged per window, because messages may vary without limit. */
const KINDS_MAX = 8;

/** Maximum length of a chain of causes. */
const DEPTH_MAX = 5;

/** Identifies the cause of a refusal by the codes or messages in its chain of causes. */
function kindOf(problem: Problem): string {
  const parts: unknown[] = [];
  let error: unknown = problem;
  for (let depth = 0; depth < DEPTH_MAX && error instanceof Error; depth += 1) {
    parts.push((error as { code?: unknown }).code ?? error.message);
    error = error.cause;
  }
  return JSON.stringify(parts.map(String));
}

/** Limits logged outage causes to one a second each, because an outage affects all requests. */
export class CauseLimit {
  readonly #now: () => number;
  readonly #logged = new Set<string>();
  #since = Number.NEGATIVE_INFINITY;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** True if a refusal is to be logged with its cause. */
  shouldLog(problem: Problem): boolean {
    if (!OUTAGE.has(problem.code)) return true;
    const now = this.#now();
    if (now - this.#since >= WINDOW_MS) {
      this.#since = now;
      this.#logged.clear();
    }
    const kind = kindOf(problem);
    if (this.#logged.has(kind) || this.#logged.size >= KINDS_MAX) return false;
    this.#logged.add(kind);
    return true;
  }
}
