import type pg from 'pg';
import { eachMinute } from './each-minute.ts';

/** Ids that are counted at a time, some 100 bytes each: whoever guesses draws any number. */
const IDS_MAX = 10_000;

const WRITE = 'select note_denied($1::text[], $2::integer[])';

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
      await pool.query(WRITE, [bursts.map(([id]) => id), bursts.map(([, count]) => count)]);
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
