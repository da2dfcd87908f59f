import type pg from 'pg';

/** How a server stands to the one that is written to. */
export interface Standing {
  /** Whether it is a standby, which only reads. */
  readonly isStandby: boolean;
  /** How long it has lacked what is known to be missing, in milliseconds; 0 where nothing is. */
  readonly behindMs: number;
  /** All that it had received at this moment of `performance.now()` is shown, or more. */
  readonly asOfMs: number;
}

/** A place in the log that a standby had received at a moment, or none. */
interface Mark {
  readonly received: string | null;
  readonly atMs: number;
  /** As of when it was known then to show everything. */
  readonly asOfMs: number;
}

interface Row {
  readonly isStandby: boolean;
  /** Whether it receives the log from another server. */
  readonly isFed: boolean;
  readonly received: string | null;
  /** Whether it shows what it had received at the last mark. */
  readonly isThere: boolean | null;
  /** Whether it shows all that it has received. */
  readonly isLevel: boolean | null;
}

const QUESTION = `select pg_is_in_recovery() as "isStandby",
  exists (select from pg_stat_wal_receiver) as "isFed",
  pg_last_wal_receive_lsn()::text as "received",
  pg_last_wal_replay_lsn() >= $1::pg_lsn as "isThere",
  pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn() as "isLevel"`;

/**
 * How servers stand, as it is seen from look to look. The time of the last transaction would not
 * tell: it grows old where nothing is written, and during a long one.
 */
export class Standings {
  readonly #marks = new Map<string, Mark>();

  /**
   * A server is used from now on: what it lacks counts from here. Nobody looked at it meanwhile,
   * and one whose primary has just ended was level until then, for all that is known.
   */
  begin(url: string): void {
    const mark = this.#marks.get(url);
    if (mark) this.#marks.set(url, { ...mark, asOfMs: performance.now() });
  }

  /** Asks a server. Throws what it throws. */
  async of(url: string, client: pg.Client): Promise<Standing> {
    const mark = this.#marks.get(url);
    const askedMs = performance.now();
    const { rows } = await client.query<Row>(QUESTION, [mark?.received ?? null]);
    const [row] = rows;
    const nowMs = performance.now();
    if (!row?.isStandby) {
      this.#marks.delete(url);
      return { isStandby: false, behindMs: 0, asOfMs: askedMs };
    }
    const { isFed, isThere, isLevel, received } = row;
    if (mark !== undefined && !(isFed && isThere !== false)) {
      return { isStandby: true, behindMs: nowMs - mark.atMs, asOfMs: mark.asOfMs };
    }
    // A first look knows of nothing before.
    const asOfMs = isFed && isLevel ? askedMs : (mark?.atMs ?? nowMs);
    this.#marks.set(url, { received, atMs: nowMs, asOfMs });
    return { isStandby: true, behindMs: 0, asOfMs };
  }
}
