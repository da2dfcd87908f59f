import type { FastifyBaseLogger } from 'fastify';
import type { Problem, ProblemCode } from '../../errors.ts';

const SECOND_MS = 1_000;

/** Members by which log lines are grouped; there are few kinds. */
interface LineKind {
  readonly level: 'info' | 'error';
  /** Set for a response without a problem. */
  readonly operation?: string;
  readonly status: number | 'broken';
  /** Code of the problem. */
  readonly code?: string;
}

interface KindCount {
  readonly kind: LineKind;
  logged: number;
  omitted: number;
}

/**
 * Limits the log lines that unauthenticated clients can cause, per second and kind. Further lines
 * are counted, and logged as one summary line per second and kind.
 */
export class LogLimit {
  readonly #log: FastifyBaseLogger | undefined;
  readonly #perSecond: number;
  readonly #counted = new Map<string, KindCount>();
  #timer: NodeJS.Timeout | null = null;

  /** @param perSecond 0 for no limit */
  constructor(log: FastifyBaseLogger | undefined, perSecond: number) {
    this.#log = log;
    this.#perSecond = perSecond;
  }

  /** True if the line may be logged; otherwise it is counted for the summary. */
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

  /** Logs the summaries, and starts a new second. */
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
