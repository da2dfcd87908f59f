import type pg from 'pg';
import { isServerError } from '../failures.ts';
import { commitIdOf, numberOf } from '../revisions.ts';

/** The lag of a server behind the primary. */
export interface ReplicationStatus {
  /** True for a standby, which is read-only. */
  readonly isStandby: boolean;
  /** Age of the oldest data that is not replayed, in milliseconds; 0 if none is known. */
  readonly behindMs: number;
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
 * Measures the lag of servers from one check to the next. The time of the last replayed transaction
 * is no measure: it ages while nothing is written, and during a long transaction.
 */
export class ReplicationMonitor {
  readonly #marks = new Map<string, Mark>();

  /**
   * Restarts the lag of a server that is used from now on. It was not checked before, and a standby
   * whose primary has just failed had probably replayed everything.
   */
  reset(url: string): void {
    const mark = this.#marks.get(url);
    if (mark) this.#marks.set(url, { ...mark, asOfMs: performance.now() });
  }

  /** Checks a server. @throws the errors of the server */
  async check(url: string, client: pg.Client): Promise<ReplicationStatus> {
    const mark = this.#marks.get(url);
    const sentMs = performance.now();
    const { rows } = await client.query<StatusRow>(STATUS, [mark?.newest ?? null]);
    const [row] = rows;
    const nowMs = performance.now();
    if (!row?.isStandby) {
      this.#marks.delete(url);
      return { isStandby: false, behindMs: 0, currentAsOfMs: sentMs };
    }
    const { isStreaming, hasReplayedMark, hasReplayedAll, newest } = row;
    if (mark !== undefined && !(isStreaming && hasReplayedMark !== false)) {
      return { isStandby: true, behindMs: nowMs - mark.atMs, currentAsOfMs: mark.asOfMs };
    }
    // The first check has no earlier mark.
    const asOfMs = isStreaming && hasReplayedAll ? sentMs : (mark?.atMs ?? nowMs);
    this.#marks.set(url, { newest, atMs: nowMs, asOfMs });
    return { isStandby: true, behindMs: 0, currentAsOfMs: asOfMs };
  }
}

/** The identifier that a server shares with its standbys and with no other server. */
export async function systemIdentifierOf(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query<{ identifier: string }>(
    'select system_identifier::text as identifier from pg_control_system()',
  );
  return rows[0]?.identifier ?? '';
}

/** The server is neither the configured one nor a standby of it. */
class OtherSystemError extends Error {
  readonly code = '57P03';
}

/**
 * Checks the system identifier of a server.
 * @param expected undefined accepts any
 * @throws OtherSystemError, and the errors of the server
 */
export async function checkSystem(
  client: pg.ClientBase,
  expected: string | undefined,
): Promise<void> {
  if (expected === undefined) return;
  const found = await systemIdentifierOf(client);
  if (found === expected) return;
  throw new OtherSystemError(
    `the server has the system identifier ${found}, not ${expected} (DATABASE_SYSTEM_IDENTIFIER)`,
  );
}

/**
 * Asks a server over another connection whether a session has no statement to run: it has answered
 * all that it received. False if the server does not know the session, as behind a pooler.
 */
export async function sessionIsIdle(
  other: pg.ClientBase,
  session: pg.ClientBase,
): Promise<boolean> {
  const { processID } = session as unknown as { readonly processID: number | null };
  const { rowCount } = await other.query(
    `select from pg_stat_activity where pid = $1 and state = 'idle'`,
    [processID],
  );
  return rowCount === 1;
}

/** A revision, and its epoch, that another server has reported. */
interface KnownCommit {
  readonly epoch: string;
  readonly revision: string;
}

const LACKS = `select epoch = $1 and $2::bigint > 0
    and not exists (select from revision where number = $2 and commit_id = $3) as "isLacking"
  from service`;

/**
 * True if a server lacks a commit that another server has reported. A server without the tables
 * lacks it; a server of another epoch does not.
 */
export async function lacksCommit(
  client: pg.ClientBase,
  commit: KnownCommit | null,
): Promise<boolean> {
  if (commit === null) return false;
  const { epoch, revision } = commit;
  const values = [epoch, numberOf(revision), commitIdOf(revision)];
  try {
    const { rows } = await client.query<{ isLacking: boolean }>(LACKS, values);
    return rows[0]?.isLacking ?? true;
  } catch (error) {
    if (isServerError(error)) return true;
    throw error;
  }
}
