import { type Kysely, sql } from 'kysely';
import { inApplyTransaction } from './connection.ts';
import { newestRevision, numberOf, wireText } from './revisions.ts';
import type { Database } from './schema.ts';

/** The epoch before and after it was renewed. */
interface RenewedEpoch {
  readonly before: string;
  readonly after: string;
  /** The newest revision, as it is on the wire from now on. */
  readonly revision: string;
}

/**
 * Gives the data a new epoch: every revision, cursor, ETag and position of the feed that was told
 * until now is unknown from now on. Waits for the writer that is under way; readers go on.
 */
export const renewEpoch = (db: Kysely<Database>): Promise<RenewedEpoch> =>
  inApplyTransaction(db, async (trx) => {
    const { rows } = await sql<{ before: string; after: string }>`
      with before as materialized (select epoch from service),
      fresh as materialized (
        select substr(md5(gen_random_uuid()::text), 1, 6) as epoch from generate_series(1, 20)),
      changed as (
        update service set epoch =
          (select epoch from fresh where epoch <> (select epoch from before) limit 1)
        returning epoch)
      select before.epoch as before, changed.epoch as after from before, changed`.execute(trx);
    const [renewed] = rows;
    if (!renewed) throw new Error('the table service has no row');
    const { revision } = await newestRevision(trx);
    // Services look again, and tell those who wait for changes at a place that is no more.
    await sql`select pg_notify('revision', ${numberOf(revision)})`.execute(trx);
    return { ...renewed, revision: wireText(renewed.after, revision) };
  });
