import type { FastifyBaseLogger } from 'fastify';

const SECOND_MS = 1_000;

/** What log lines have in common that are counted together; there are few kinds. */
interface LineKind {
  readonly level: 'info' | 'error';
  /** Of an answer without a problem. */
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

  /** Whether a line is logged by itself; one that is not is counted for the summary. */
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

  /** Logs what was counted, and begins another second. */
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
