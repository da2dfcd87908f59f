import type pg from 'pg';
import { isServerError } from '../failures.ts';
import { commitIdOf, numberOf } from '../revisions.ts';

/** The state of a server in relation to the primary. */
export interface Standing {
  /** True for a standby, which only reads. */
  readonly isStandby: boolean;
  /** Age of the oldest missing data, in milliseconds; 0 if nothing is known to be missing. */
  readonly behindMs: number;
  /** All that it had received at this moment of `performance.now()` is shown, or more. */
  readonly asOfMs: number;
}

/** A place in the log that a standby had received at a moment, or none. */
interface Mark {
  readonly received: string | null;
  readonly atMs: number;
  /** The moment up to which it was known then to show everything. */
  readonly asOfMs: number;
}

interface Row {
  readonly isStandby: boolean;
  /** True if it receives the log from another server. */
  readonly isFed: boolean;
  readonly received: string | null;
  /** True if it shows everything it had received at the last mark. */
  readonly isThere: boolean | null;
  /** True if it shows all that it has received. */
  readonly isLevel: boolean | null;
}

/** It takes no lock on a table: a server that answers at all answers this. */
const QUESTION = `select pg_is_in_recovery() as "isStandby",
  exists (select from pg_stat_wal_receiver) as "isFed",
  pg_last_wal_receive_lsn()::text as "received",
  pg_last_wal_replay_lsn() >= $1::pg_lsn as "isThere",
  pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn() as "isLevel"`;

/**
 * The states of servers, from one check to the next. The time of the last transaction is no
 * measure: it grows old while nothing is written, and during a long transaction.
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

/** The epoch of a server, and a revision that it has. */
interface Extent {
  readonly epoch: string;
  readonly revision: string;
}

const LACKS = `select epoch = $1 and $2::bigint > 0
    and not exists (select from revision where number = $2 and commit_id = $3) as "isLacking"
  from service`;

/**
 * True if a server lacks the commit that another one has reported. A server without the tables
 * lacks it; a server of another epoch does not.
 */
export async function lacks(client: pg.ClientBase, told: Extent | null): Promise<boolean> {
  if (told === null) return false;
  const { epoch, revision } = told;
  const values = [epoch, numberOf(revision), commitIdOf(revision)];
  try {
    const { rows } = await client.query<{ isLacking: boolean }>(LACKS, values);
    return rows[0]?.isLacking ?? true;
  } catch (error) {
    if (isServerError(error)) return true;
    throw error;
  }
}
