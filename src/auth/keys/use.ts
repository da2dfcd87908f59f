import type pg from 'pg';

const MINUTE_MS = 60_000;

/** Times only ever grow, whichever instance reports its own first. */
const WRITE_USED = `
update api_key set last_used_at = used.at
  from unnest($1::text[], $2::timestamptz[]) as used (public_id, at)
  where api_key.public_id = used.public_id
    and (last_used_at is null or last_used_at < used.at)`;

const WRITE_DENIED = 'select note_denied($1::text[], $2::integer[])';

/** Ids that are counted at a time, some 100 bytes each: whoever guesses draws any number. */
const IDS_MAX = 10_000;

interface KeyUseOptions {
  /** How many refusals of one key in a minute are a burst; 0 for none. */
  readonly deniedBurst: number;
  /** Called for each failure to write the last use, and the bursts. */
  readonly onUsedFailure: (error: Error) => void;
  readonly onDeniedFailure: (error: Error) => void;
}

/**
 * Writes once a minute when keys were last used, to the minute, and which keys were refused in
 * bursts, with an account that may do only that. Nothing waits for it, and no request fails because
 * of it.
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

  /** Notes the use of a key. */
  noteUse(publicId: string, nowMs: number): void {
    this.#used.set(publicId, nowMs - (nowMs % MINUTE_MS));
  }

  /**
   * Counts a refused request; the public id of its key is well formed, and may be that of no key.
   * Short of memory, the ids that were refused longest ago are forgotten first.
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

  /** Writes what was noted, never twice at a time. Never fails. */
  write(): Promise<void> {
    this.#running = this.#running.then(async () => {
      await this.#writeUsed().catch(this.#options.onUsedFailure);
      await this.#writeDenied().catch(this.#options.onDeniedFailure);
    });
    return this.#running;
  }

  /** Writes what was noted, and stops. */
  close(): Promise<void> {
    clearInterval(this.#timer);
    return this.write();
  }

  /** Times that could not be written are kept and written later. */
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

  /** Has the audit tell of keys whose secret is guessed, or that are used where they may not be. */
  async #writeDenied(): Promise<void> {
    const { deniedBurst } = this.#options;
    const bursts = [...this.#denied].filter(([, count]) => count >= deniedBurst);
    this.#denied = new Map();
    if (bursts.length === 0) return;
    const [ids, counts] = [bursts.map(([id]) => id), bursts.map(([, count]) => count)];
    await this.#pool.query(WRITE_DENIED, [ids, counts]);
  }
}
