import type pg from 'pg';

const MINUTE_MS = 60_000;

const WRITE_USED = 'select note_used($1::text[], $2::timestamptz[])';
const WRITE_DENIED = 'select note_denied($1::text[], $2::integer[])';

/** Maximum number of counted ids, about 100 bytes each: guessed ids are unlimited. */
const IDS_MAX = 10_000;

interface KeyUseOptions {
  /** Rejections of one key in a minute that count as a burst; 0 disables bursts. */
  readonly deniedBurst: number;
  readonly onUsedFailure: (error: Error) => void;
  readonly onDeniedFailure: (error: Error) => void;
}

/**
 * Writes the last use of each key (to the minute) and bursts of rejected keys, once a minute, with
 * a database account that may do only that. No request waits for it or fails with it.
 */
export class KeyUse {
  readonly #pool: pg.Pool;
  readonly #options: KeyUseOptions;
  readonly #timer: NodeJS.Timeout;
  #used = new Map<string, number>();
  #denied = new Map<string, number>();
  #running = Promise.resolve();

  constructor(pool: pg.Pool, options: KeyUseOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#timer = setInterval(() => this.write(), MINUTE_MS);
    this.#timer.unref();
  }

  recordUse(publicId: string, nowMs: number): void {
    this.#used.set(publicId, nowMs - (nowMs % MINUTE_MS));
  }

  /**
   * Counts a rejected request. The public id is well formed, but the key may not exist. Beyond
   * `IDS_MAX`, the least recently counted id is evicted.
   */
  countDenied(publicId: string): void {
    if (this.#options.deniedBurst === 0) return;
    const count = (this.#denied.get(publicId) ?? 0) + 1;
    this.#denied.delete(publicId);
    this.#denied.set(publicId, count);
    if (this.#denied.size <= IDS_MAX) return;
    const [oldest = ''] = this.#denied.keys();
    this.#denied.delete(oldest);
  }

  /** Writes the collected data. Calls run one after another; failures go to the callbacks. */
  write(): Promise<void> {
    this.#running = this.#running.then(async () => {
      await this.#writeUsed().catch(this.#options.onUsedFailure);
      await this.#writeDenied().catch(this.#options.onDeniedFailure);
    });
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

  /** Records bursts in the audit: guessed secrets, and keys used without the required scope. */
  async #writeDenied(): Promise<void> {
    const { deniedBurst } = this.#options;
    const bursts = [...this.#denied].filter(([, count]) => count >= deniedBurst);
    this.#denied = new Map();
    if (bursts.length === 0) return;
    const [ids, counts] = [bursts.map(([id]) => id), bursts.map(([, count]) => count)];
    await this.#pool.query(WRITE_DENIED, [ids, counts]);
  }
}
