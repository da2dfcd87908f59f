import type pg from 'pg';

const MINUTE_MS = 60_000;

const WRITE_USED = 'select note_used($1::text[], $2::timestamptz[])';

/**
 * Writes the last use of each key (to the minute), once a minute, with a database account that may
 * do only that. No request waits for it or fails with it.
 */
export class KeyUse {
  readonly #pool: pg.Pool;
  readonly #onFailure: (error: Error) => void;
  readonly #timer: NodeJS.Timeout;
  #used = new Map<string, number>();
  #running = Promise.resolve();

  constructor(pool: pg.Pool, onFailure: (error: Error) => void) {
    this.#pool = pool;
    this.#onFailure = onFailure;
    this.#timer = setInterval(() => this.write(), MINUTE_MS);
    this.#timer.unref();
  }

  recordUse(publicId: string, nowMs: number): void {
    this.#used.set(publicId, nowMs - (nowMs % MINUTE_MS));
  }

  /** Writes the collected data. Calls run one after another; failures go to the callback. */
  write(): Promise<void> {
    this.#running = this.#running.then(() => this.#writeUsed().catch(this.#onFailure));
    return this.#running;
  }

  /** Stops the timer, and writes the rest. */
  close(): Promise<void> {
    clearInterval(this.#timer);
    return this.write();
  }

  /** After a failure, the times are merged back for the next attempt. */
  async #writeUsed(): Promise<void> {
    if (this.#used.size === 0) return;
    const batch = this.#used;
    this.#used = new Map();
    const instants = [...batch.values()].map((ms) => new Date(ms).toISOString());
    try {
      await this.#pool.query(WRITE_USED, [[...batch.keys()], instants]);
    } catch (error) {
      for (const [id, ms] of batch) this.#used.set(id, Math.max(ms, this.#used.get(id) ?? 0));
      throw error;
    }
  }
}
