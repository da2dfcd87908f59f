import type { Problem, ProblemCode } from '../errors.ts';

/** What every request is refused with while the database or an issuer of tokens is away. */
const OUTAGE: ReadonlySet<ProblemCode> = new Set(['database_unavailable', 'auth_unavailable']);

const APART_MS = 1_000;

/** The most kinds of causes that are told in that time: messages may differ without end. */
const KINDS_MAX = 8;

/** How far causes of causes are followed. */
const DEPTH_MAX = 5;

/** What a refusal comes from: the codes, or else the messages, of all that led to it. */
function kindOf(problem: Problem): string {
  const parts: unknown[] = [];
  let error: unknown = problem;
  for (let depth = 0; depth < DEPTH_MAX && error instanceof Error; depth += 1) {
    parts.push((error as { code?: unknown }).code ?? error.message);
    error = error.cause;
  }
  return JSON.stringify(parts.map(String));
}

/** Tells each cause of an outage once a second, and not in the line of each request. */
export class Causes {
  readonly #now: () => number;
  readonly #told = new Set<string>();
  #since = Number.NEGATIVE_INFINITY;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Whether a refusal is told with its cause; then no other of that cause is, for a second. */
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
