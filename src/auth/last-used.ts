import type pg from 'pg';
import { eachMinute, MINUTE_MS } from './each-minute.ts';

/** Times only ever grow, whichever instance tells its own first. */
const WRITE = `
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
      await pool.query(WRITE, [[...batch.keys()], instants]);
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
