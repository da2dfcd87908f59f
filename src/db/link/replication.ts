import type pg from 'pg';

/** The lag of a server behind the primary. */
export interface ReplicationStatus {
  /** True for a standby, which is read-only. */
  readonly isStandby: boolean;
  /** A time of `performance.now()`: all data that the server knew of before it are replayed. */
  readonly currentAsOfMs: number;
}

/** The newest WAL position that a standby knew at an earlier check. */
interface Mark {
  /** Null if it knew none. */
  readonly newest: string | null;
  readonly atMs: number;
  /** `currentAsOfMs` at that check. */
  readonly asOfMs: number;
}

interface StatusRow {
  readonly isStandby: boolean;
  /** True if it receives WAL from another server. */
  readonly isStreaming: boolean;
  readonly newest: string | null;
  /** True if it has replayed everything up to the mark. */
  readonly hasReplayedMark: boolean | null;
  /** True if it has replayed everything up to `newest`. */
  readonly hasReplayedAll: boolean | null;
}

/**
 * Takes no lock on a table, so that every responding server answers. `latest_end_lsn` is the end of
 * the WAL that the last message of the sender named, `status` the state of the receiver. Both are
 * null without the right `pg_read_all_stats`; then only received WAL counts. A position that no
 * server has any more, as after a failover, is not waited for. The age of the last message is not
 * used: a quiet primary sends one only each `wal_receiver_timeout` / 2.
 */
const STATUS = `select "isStandby", "isStreaming", newest::text,
    replayed >= case when $1::pg_lsn > newest then newest else $1::pg_lsn end as "hasReplayedMark",
    replayed >= newest as "hasReplayedAll"
  from (select pg_is_in_recovery() as "isStandby", pg_last_wal_replay_lsn() as replayed,
    exists (select from pg_stat_wal_receiver where coalesce(status, 'streaming') = 'streaming')
      as "isStreaming",
    greatest((select latest_end_lsn from pg_stat_wal_receiver), pg_last_wal_receive_lsn()) as newest
  ) server`;

/**
 * Measures the lag of a server from one check to the next. The time of the last replayed
 * transaction is no measure: it ages while nothing is written, and during a long transaction.
 */
export class ReplicationMonitor {
  #mark: Mark | null = null;

  /** Checks the server. @throws the errors of the server */
  async check(client: pg.Client): Promise<ReplicationStatus> {
    const mark = this.#mark;
    const sentMs = performance.now();
    const { rows } = await client.query<StatusRow>(STATUS, [mark?.newest ?? null]);
    const [row] = rows;
    const nowMs = performance.now();
    if (!row?.isStandby) {
      this.#mark = null;
      return { isStandby: false, currentAsOfMs: sentMs };
    }
    const { isStreaming, hasReplayedMark, hasReplayedAll, newest } = row;
    if (mark !== null && !(isStreaming && hasReplayedMark !== false)) {
      return { isStandby: true, currentAsOfMs: mark.asOfMs };
    }
    // The first check has no earlier mark.
    const asOfMs = isStreaming && hasReplayedAll ? sentMs : (mark?.atMs ?? nowMs);
    this.#mark = { newest, atMs: nowMs, asOfMs };
    return { isStandby: true, currentAsOfMs: asOfMs };
  }
}
