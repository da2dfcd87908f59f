import type { FastifyBaseLogger } from 'fastify';
import type { Problem, ProblemCode } from '../../errors.ts';

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

/** Maximum depth of a chain of causes. */
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
