import { createHash } from 'node:crypto';
import { sql, type Transaction } from 'kysely';
import { SAMPLE_MARK } from '../../../seeds/sample.ts';
import type { Database } from '../schema.ts';

const FORMAT = 'seed';
const ACTOR = 'seed';

/** The two lines of the ledger that the sample data leave, once each was written. */
export const LINES = { samples: 'seeds', corrections: 'seeds, corrections' } as const;

/** What a line of the ledger says about seeds. */
interface SeedBatch {
  readonly file_name: (typeof LINES)[keyof typeof LINES];
  readonly sha256: Buffer;
  readonly reason: string | null;
  readonly prices_added: number;
  readonly rows: number;
  readonly inserted: number;
  readonly unchanged: number;
  readonly corrected: number;
  readonly outdated: number;
}

/** SHA-256 over all the lines of a batch, the key by which it is loaded once. */
export function digestOf(lines: Iterable<string>): Buffer {
  const hash = createHash('sha256');
  for (const line of lines) hash.update(line);
  return hash.digest();
}

/** Whether exactly these seeds were loaded before. */
export async function wasLoaded(trx: Transaction<Database>, sha256: Buffer): Promise<boolean> {
  const rows = await trx
    .selectFrom('load_batch')
    .select('id')
    .where('sha256', '=', sha256)
    .where('format', '=', FORMAT)
    .where('status', '=', 'applied')
    .execute();
  return rows.length > 0;
}

/**
 * Writes a line of the ledger, with the revision that is open, and returns its id, which the rows
 * of the batch carry. `finishBatch` notes when they were in.
 */
export async function recordBatch(trx: Transaction<Database>, batch: SeedBatch): Promise<number> {
  const { id } = await trx
    .insertInto('load_batch')
    .values({
      ...batch,
      format: FORMAT,
      vintage: null,
      actor: ACTOR,
      status: 'applied',
      started_at: sql<string>`now()`,
      finished_at: sql<string>`clock_timestamp()`,
      revision: sql<string | null>`current_revision()`,
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

/** Notes when the batch ended. */
export const finishBatch = (trx: Transaction<Database>, id: number): Promise<unknown> =>
  trx
    .updateTable('load_batch')
    .set({ finished_at: sql<string>`clock_timestamp()` })
    .where('id', '=', id)
    .execute();

const mark = JSON.stringify([{ name: SAMPLE_MARK.name }]);

/** Whether the price `p` is one of the seeds; no other gets points or corrections from them. */
export const isSamplePrice = sql`p.specification @> ${mark}::jsonb`;
