import { setTimeout as pause } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import { Problem } from '../errors.ts';
import type { Primary, Settled } from './link/primary.ts';
import { commitIdOf, numberIn } from './revisions.ts';
import type { Database } from './schema.ts';

/**
 * Finds the last revision committed at or before a moment (UTC with microseconds): "0" before the
 * first, null for a moment in the future. What it returns for a moment it returns for ever.
 * @throws Problem `revision_not_here` where this cannot be known yet
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

const notHere = (): Problem =>
  new Problem(
    'revision_not_here',
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
        throw notHere();
      }
      await pause(POLL_MS);
    }
  };
  return async (db, instant) => {
    const own = await ownAsOf(db, instant);
    if (own.isProven) return own.revision;
    if (waiting >= waitingMax) throw notHere();
    waiting += 1;
    try {
      return await replayed(db, instant);
    } finally {
      waiting -= 1;
    }
  };
}
