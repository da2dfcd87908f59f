import { setTimeout as pause } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import pg from 'pg';
import { DatabaseFailure } from './failures.ts';
import { answered, destroy } from './link/silence.ts';
import { commitIdOf, numberIn } from './revisions.ts';
import type { Database } from './schema.ts';
import { sharedNext } from './shared-work.ts';

/** A moment by the clock of the primary, and the last revision committed at or before it. */
interface Settled {
  /** RFC 3339 in UTC with microseconds. */
  readonly until: string;
  readonly revision: string;
  /** The newest revision as it is on the wire. */
  readonly newest: string;
}

/** Newer than its clock are the last revisions of a primary whose clock was set back. */
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

/** How long an answer is reused: the primary may be lost, and with it the revision. */
const FRESH_MS = 1_000;

interface PrimaryOptions {
  /** The servers among which the primary may be. */
  readonly urls: () => readonly string[];
  readonly connection: (url: string) => pg.ClientConfig;
  /** How long a server may take to answer, in milliseconds. */
  readonly silenceMs: number;
}

/** Asks the primary for what a standby cannot know. The connection is made when it is needed. */
export class Primary {
  readonly #options: PrimaryOptions;
  #client: pg.Client | null = null;
  readonly #askNext = sharedNext(() => this.#ask());
  #settled: Settled | null = null;
  #readMs = 0;

  constructor(options: PrimaryOptions) {
    this.#options = options;
  }

  /**
   * A settled moment at or after an instant (UTC with microseconds); `future` where the clock of
   * the primary has not reached it, null where no primary answers. Concurrent callers share one
   * query that begins after their call.
   */
  async settledAt(instant: string): Promise<Settled | 'future' | null> {
    if (this.#options.urls().length === 0) return null;
    if (this.#has(instant)) return this.#settled;
    // A query under way may have read the clock before this call.
    await this.#askNext();
    if (this.#has(instant)) return this.#settled;
    return this.#client === null ? null : 'future';
  }

  /** The newest revision of the primary as on the wire, asked after this call; null without one. */
  async newest(): Promise<string | null> {
    if (this.#options.urls().length === 0) return null;
    await this.#askNext();
    return this.#settled?.newest ?? null;
  }

  close(): void {
    if (this.#client !== null) destroy(this.#client);
    this.#client = null;
  }

  #has(instant: string): boolean {
    const isFresh = performance.now() - this.#readMs < FRESH_MS;
    return isFresh && this.#settled !== null && this.#settled.until >= instant;
  }

  async #ask(): Promise<void> {
    if (this.#client !== null && (await this.#read(this.#client))) return;
    for (const url of this.#options.urls()) {
      this.close();
      const client = new pg.Client(this.#options.connection(url));
      client.on('error', () => this.#client === client && this.close());
      client.on('end', () => this.#client === client && this.close());
      this.#client = client;
      if (await this.#read(client, client.connect())) return;
    }
    this.close();
  }

  /** Reads a settled moment; false where the server does not answer, or is a standby. */
  async #read(client: pg.Client, connecting: Promise<unknown> = Promise.resolve()) {
    const read = connecting.then(() => client.query<Settled>(SETTLED));
    try {
      const { rows } = await answered(read, this.#options.silenceMs);
      this.#settled = rows[0] ?? null;
      this.#readMs = performance.now();
      return this.#settled !== null;
    } catch {
      read.catch(() => {});
      this.#settled = null;
      return false;
    }
  }
}

/**
 * Finds the last revision committed at or before a moment (UTC with microseconds): "0" before the
 * first, null for a moment in the future. What it returns for a moment it returns for ever.
 * @throws DatabaseFailure `not_replayed` if a standby cannot know this yet
 */
export type AsOf = (db: Kysely<Database>, instant: string) => Promise<string | null>;

interface AsOfOptions {
  readonly primary: Pick<Primary, 'settledAt'>;
  /** How long a request waits for a standby to show a moment, in milliseconds. */
  readonly waitMs: number;
  /** How many requests may wait. */
  readonly waitingMax: number;
}

const POLL_MS = 100;

const notReplayed = (): DatabaseFailure =>
  new DatabaseFailure(
    'not_replayed',
    'The standby that answers has not replayed this moment yet; try again shortly',
  );

interface Found {
  readonly isProven: boolean;
  readonly revision: string | null;
}

/**
 * The revision of a moment by the server in use. A primary knows it, and a standby that shows a
 * later revision: revisions are replayed in the order of their times.
 */
async function ownAsOf(db: Kysely<Database>, instant: string): Promise<Found> {
  // The function may have waited for a commit that its statement does not see.
  const { rows } = await sql<Found>`
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

/** The revision of a moment by a standby, proven where it shows what is settled. */
async function replayedAsOf(
  db: Kysely<Database>,
  instant: string,
  settled: Settled | null,
): Promise<Found & { readonly isFuture: boolean }> {
  const has =
    settled === null
      ? sql`false`
      : sql`${numberIn(settled.revision)} = 0 or exists (select from revision
          where number = ${numberIn(settled.revision)}
            and commit_id = ${commitIdOf(settled.revision)})`;
  const { rows } = await sql<Found & { isFuture: boolean }>`
    select exists (select from revision where committed_at >= ${instant}::timestamptz)
        or ${has} as "isProven",
      ${instant}::timestamptz > clock_timestamp() as "isFuture",
      coalesce((select concat_ws('.', number, commit_id) from revision
        where committed_at <= ${instant}::timestamptz
        order by committed_at desc limit 1), '0') as revision`.execute(db);
  return rows[0] ?? { isProven: false, isFuture: false, revision: null };
}

/**
 * A reader for a server that may be a standby. A moment that the standby has not provably replayed
 * is asked of the primary, where `DATABASE_URL` names it, and waited for within a bound.
 */
export function asOfReader({ primary, waitMs, waitingMax }: AsOfOptions): AsOf {
  let waiting = 0;
  const replayed = async (db: Kysely<Database>, instant: string): Promise<string | null> => {
    const begun = performance.now();
    for (;;) {
      const settled = await primary.settledAt(instant);
      if (settled === 'future') return null;
      const found = await replayedAsOf(db, instant, settled);
      if (found.isProven) return found.revision;
      if (performance.now() - begun >= waitMs) {
        // Without a primary the clock of the standby has to do.
        if (settled === null && found.isFuture) return null;
        throw notReplayed();
      }
      await pause(POLL_MS);
    }
  };
  return async (db, instant) => {
    const own = await ownAsOf(db, instant);
    if (own.isProven) return own.revision;
    if (waiting >= waitingMax) throw notReplayed();
    waiting += 1;
    try {
      return await replayed(db, instant);
    } finally {
      waiting -= 1;
    }
  };
}
