import type { Problem, ProblemCode } from '../errors.ts';

/** What every request is refused with while the database is away: all for the same cause. */
const OUTAGE: ReadonlySet<ProblemCode> = new Set(['database_unavailable', 'auth_unavailable']);

const APART_MS = 1_000;

/** Tells the cause of an outage once a second, and not in the line of each request. */
export class Causes {
  #toldAt = Number.NEGATIVE_INFINITY;

  /** Whether a refusal is told with its cause; then no other of an outage is, for a second. */
  mayTell({ code }: Problem): boolean {
    if (!OUTAGE.has(code)) return true;
    const now = performance.now();
    if (now - this.#toldAt < APART_MS) return false;
    this.#toldAt = now;
    return true;
  }
}
