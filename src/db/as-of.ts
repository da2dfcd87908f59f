import { setTimeout as pause } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import type pg from 'pg';
import { DatabaseFailure } from './failures.ts';
import { withTimeout } from './link/timeout.ts';
import { commitIdOf, numberIn } from './revisions.ts';
import type { Database } from './schema.ts';
import { sharedNextRun } from './shared-work.ts';

/** A time on the clock of the primary, and the last revision committed at or before it. */
interface SettledTime {
  /** RFC 3339 in UTC with microseconds. */
  readonly until: string;
  readonly revision: string;
  /** The newest revision, in the wire format. */
  readonly newest: string;
}

/** If the clock of the primary was set back, its last revisions are later than the clock. */
const SETTLED = `
  with clock as materialized (
    select greatest(clock_timestamp() - interval '1 microsecond',
      (select max(committed_at) from revision)) as until
  ), found as materialized (
    select until, revision_as_of(until) as number from clock where not pg_is_in_recovery()
  )
  select to_char(until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as until,
    concat_ws('.', number, commit_id_of(number)) as revision,
    revision_text(coalesce((select max(r.number) from revision r), 0)) as newest from found`;

/** Age up to which a result is reused: a lost primary takes its last revision with it. */
const FRESH_MS = 1_000;

interface PrimaryOptions {
  /** Timeout of an answer, in milliseconds. */
  readonly silenceMs: number;
  /** Called at the first failure after an answer. */
  readonly onFailure: (error: Error) => void;
}

/** Queries the primary for settled times, which a standby cannot know. */
export class Primary {
  readonly #pool: pg.Pool | undefined;
  readonly #options: PrimaryOptions;
  readonly #queryNext = sharedNextRun(() => this.#query());
  #settled: SettledTime | null = null;
  #readMs = 0;
  #hasFailed = false;

  /** @param pool connections to the primary; without it no primary answers */
  constructor(pool: pg.Pool | undefined, options: PrimaryOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  /**
   * Finds a settled time at or after an instant (UTC with microseconds). Concurrent calls share one
   * query that begins after them.
   * @returns `future` if the clock of the primary has not reached the instant, null if no primary
   *   answers
   */
  async settledAt(instant: string): Promise<SettledTime | 'future' | null> {
    const known = performance.now() - this.#readMs < FRESH_MS ? this.#settled : null;
    if (known !== null && known.until >= instant) return known;
    // A running query may have read the clock before this call.
    const settled = await this.#queryNext();
    return settled === null || settled.until >= instant ? settled : 'future';
  }

  /**
   * The newest revision of the primary in the wire format, read after this call; null if no primary
   * answers.
   */
  async newest(): Promise<string | null> {
    return (await this.#queryNext())?.newest ?? null;
  }

  /** Reads a settled time; null if the server does not answer, or is a standby. */
  async #query(): Promise<SettledTime | null> {
    if (this.#pool === undefined) return null;
    const connecting = this.#pool.connect();
    const read = connecting.then((client) => client.query<SettledTime>(SETTLED));
    const answer = await withTimeout(read, this.#options.silenceMs).catch((error: Error) => {
      if (!this.#hasFailed) this.#options.onFailure(error);
      return null;
    });
    this.#hasFailed = answer === null;
    // A connection that does not answer is closed.
    connecting.then(
      (client) => client.release(answer === null),
      () => {},
    );
    this.#settled = answer?.rows[0] ?? null;
    this.#readMs = performance.now();
    return this.#settled;
  }
}

/**
 * Finds the last revision committed at or before an instant (UTC with microseconds): "0" before the
 * first, null for an instant in the future. The result for an instant never changes.
 * @throws DatabaseFailure `not_replayed` if a standby cannot know this yet
 */
export type AsOfReader = (db: Kysely<Database>, instant: string) => Promise<string | null>;

interface AsOfOptions {
  readonly primary: Pick<Primary, 'settledAt'>;
  /** Longest wait of a request until a standby has replayed an instant, in milliseconds. */
  readonly waitMs: number;
  /** Most waiting requests. */
  readonly waitingMax: number;
}

const POLL_MS = 100;

const notReplayed = (): DatabaseFailure =>
  new DatabaseFailure(
    'not_replayed',
    'The standby in use has not replayed this instant yet; try again shortly',
  );

interface FoundAsOf {
  readonly isProven: boolean;
  readonly revision: string | null;
}

/**
 * The revision of an instant on the server in use. It is proven on a primary, and on a standby that
 * has a later revision, because revisions are replayed in the order of their times.
 */
async function localAsOf(db: Kysely<Database>, instant: string): Promise<FoundAsOf> {
  // The function may have waited for a commit that its statement does not see.
  const { rows } = await sql<FoundAsOf>`
    with known as materialized (
      select not pg_is_in_recovery()
        or exists (select from revision where committed_at >= ${instant}::timestamptz) as proven
    )
    select proven as "isProven",
      case when number is not null then concat_ws('.', number, commit_id_of(number)) end as revision
    from known left join lateral (
      select revision_as_of(${instant}::timestamptz) as number where proven) as found on true
  `.execute(db);
  return rows[0] ?? { isProven: false, revision: null };
}

/** The revision of an instant on a standby, proven if it has the settled revision. */
async function standbyAsOf(
  db: Kysely<Database>,
  instant: string,
  settled: SettledTime | null,
): Promise<FoundAsOf & { readonly isFuture: boolean }> {
  const has =
    settled === null
      ? sql`false`
      : sql`${numberIn(settled.revision)} = 0 or exists (select from revision
          where number = ${numberIn(settled.revision)}
            and commit_id = ${commitIdOf(settled.revision)})`;
  const { rows } = await sql<FoundAsOf & { isFuture: boolean }>`
    select exists (select from revision where committed_at >= ${instant}::timestamptz)
        or ${has} as "isProven",
      ${instant}::timestamptz > clock_timestamp() as "isFuture",
      coalesce((select concat_ws('.', number, commit_id) from revision
        where committed_at <= ${instant}::timestamptz
        order by committed_at desc limit 1), '0') as revision`.execute(db);
  return rows[0] ?? { isProven: false, isFuture: false, revision: null };
}

/**
 * A reader for a server that may be a standby. If the standby has not provably replayed an instant,
 * the reader queries the primary, if `USAGE_DATABASE_URL` names it, and waits for the replay.
 */
export function asOfReader({ primary, waitMs, waitingMax }: AsOfOptions): AsOfReader {
  let waiting = 0;
  const waitForReplay = async (db: Kysely<Database>, instant: string): Promise<string | null> => {
    const begun = performance.now();
    for (;;) {
      const settled = await primary.settledAt(instant);
      if (settled === 'future') return null;
      const found = await standbyAsOf(db, instant, settled);
      if (found.isProven) return found.revision;
      if (performance.now() - begun >= waitMs) {
        // Without a primary, the clock of the standby decides.
        if (settled === null && found.isFuture) return null;
        throw notReplayed();
      }
      await pause(POLL_MS);
    }
  };
  return async (db, instant) => {
    const local = await localAsOf(db, instant);
    if (local.isProven) return local.revision;
    if (waiting >= waitingMax) throw notReplayed();
    waiting += 1;
    try {
      return await waitForReplay(db, instant);
    } finally {
      waiting -= 1;
    }
  };
}
