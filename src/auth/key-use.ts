import type pg from 'pg';

const MINUTE_MS = 60_000;

/**
 * Does something once a minute, never twice at a time.
 * @param work never fails
 * @returns what stops it, after it was done once more
 */
function eachMinute(work: () => Promise<void>): () => Promise<void> {
  let running = Promise.resolve();
  const timer = setInterval(() => {
    running = running.then(work);
  }, MINUTE_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
    await work();
  };
}

/** Times only ever grow, whichever instance tells its own first. */
const WRITE_USED = `
update api_key set last_used_at = used.at
  from unnest($1::text[], $2::timestamptz[]) as used (public_id, at)
  where api_key.public_id = used.public_id
    and (last_used_at is null or last_used_at < used.at)`;

/** Notes when keys were used. Nothing waits for it, and no request fails because of it. */
interface LastUsed {
  note(publicId: string, nowMs: number): void;
  /** Writes what was noted, and stops. */
  close(): Promise<void>;
}

/**
 * Writes the last use of each key once a minute, to the minute, with an account that may do only
 * that. What could not be written is kept and written later.
 * @param onFailure told of each failure to write
 */
export function lastUsedOf(pool: pg.Pool, onFailure: (error: Error) => void): LastUsed {
  let noted = new Map<string, number>();
  const write = async (): Promise<void> => {
    if (noted.size === 0) return;
    const batch = noted;
    noted = new Map();
    const instants = [...batch.values()].map((ms) => new Date(ms).toISOString());
    try {
      await pool.query(WRITE_USED, [[...batch.keys()], instants]);
    } catch (error) {
      for (const [id, ms] of batch) noted.set(id, Math.max(ms, noted.get(id) ?? 0));
      onFailure(error as Error);
    }
  };
  return {
    note: (publicId, nowMs) => {
      noted.set(publicId, nowMs - (nowMs % MINUTE_MS));
    },
    close: eachMinute(write),
  };
}

/** Ids that are counted at a time, some 100 bytes each: whoever guesses draws any number. */
const IDS_MAX = 10_000;

const WRITE_DENIED = 'select note_denied($1::text[], $2::integer[])';

/** Counts with which keys requests are refused. Nothing waits for it. */
interface DeniedKeys {
  /** A request was refused: the public id of its key is well formed, and may be that of none. */
  note(publicId: string): void;
  /** Writes what was counted, and stops. */
  close(): Promise<void>;
}

/**
 * Has the audit tell of each key with which many requests were refused within a minute: somebody
 * guesses its secret, or uses it where it is of no use. Short of memory, the ids that were refused
 * longest ago are forgotten first. What could not be written is told, and counted anew.
 * @param least how many refusals in a minute are a burst; 0 for none
 * @param onFailure told of each failure to write
 */
export function deniedKeysOf(
  pool: pg.Pool,
  least: number,
  onFailure: (error: Error) => void,
): DeniedKeys {
  let counts = new Map<string, number>();
  const write = async (): Promise<void> => {
    const bursts = [...counts].filter(([, count]) => count >= least);
    counts = new Map();
    if (bursts.length === 0) return;
    try {
      await pool.query(WRITE_DENIED, [bursts.map(([id]) => id), bursts.map(([, count]) => count)]);
    } catch (error) {
      onFailure(error as Error);
    }
  };
  return {
    note: (publicId) => {
      if (least === 0) return;
      const count = (counts.get(publicId) ?? 0) + 1;
      counts.delete(publicId);
      counts.set(publicId, count);
      if (counts.size <= IDS_MAX) return;
      for (const oldest of counts.keys()) {
        counts.delete(oldest);
        break;
      }
    },
    close: eachMinute(write),
  };
}
