import { type Kysely, sql } from 'kysely';
import { inApplyTransaction, type OnHeld, openRevision } from '../db/connection.ts';
import { textOf } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import { writeCurrencies, writeSource } from './formats/currencies.ts';
import {
  type EarlierBatch,
  earlierBatch,
  type LoadCounts,
  nextBatch,
  writeBatch,
  writeCoverage,
} from './ledger.ts';
import { type ApplyInput, changesAnything, type Plan, planOf } from './plan.ts';
import { writePrices } from './prices.ts';
import type { Trx } from './reference.ts';
import { resolveCreated } from './staging/resolve.ts';

interface Applied {
  readonly status: 'applied' | 'unchanged' | 'already-loaded';
  readonly batch: number;
  /** On the wire form, `<epoch>.<number>`; null when nothing changed. */
  readonly revision: string | null;
  readonly vintage: string | null;
  readonly counts: LoadCounts;
}

/** What a load would have done. */
interface Rehearsed {
  readonly status: 'previewed';
  readonly batch: null;
  readonly revision: null;
  readonly vintage: string | null;
  readonly counts: LoadCounts;
}

export const NO_COUNTS: LoadCounts = {
  rows: 0,
  inserted: 0,
  unchanged: 0,
  corrected: 0,
  outdated: 0,
  rejected: 0,
  pricesAdded: 0,
  pricesChanged: 0,
};

/** A file that an earlier batch loaded changes nothing. */
export const alreadyLoaded = ({ id, vintage }: EarlierBatch): Applied => ({
  status: 'already-loaded',
  batch: id,
  revision: null,
  vintage,
  counts: NO_COUNTS,
});

/** Writes the plan in one revision, which it returns as text. */
async function write(trx: Trx, plan: Plan, batch: number, input: ApplyInput): Promise<string> {
  const { target, values } = plan;
  const { startedAt, reason, format, fileName, vintage } = input.entry;
  const { isInOrder } = input.staged.ranges;
  const number = await openRevision(trx, reason ?? `load ${format} ${fileName}`);
  await writeCurrencies(trx, plan.currencies);
  if (plan.source) await writeSource(trx, plan.source);
  await writePrices(trx, plan.prices, input.problems);
  await resolveCreated(trx, target);
  const inserted = await target.insert(batch, startedAt, isInOrder).execute(trx);
  const correctedAt = input.format.correctedAt === 'vintage' ? vintage : null;
  const corrected = await target.correct(batch, correctedAt, startedAt).execute(trx);
  const written = [Number(inserted.numAffectedRows), Number(corrected.numAffectedRows)];
  if (written[0] !== values.inserted || written[1] !== values.corrected) {
    throw new Error(`wrote ${written.join(' and ')} rows where others were planned`);
  }
  return number;
}

/** Sorting and hashing of millions of rows, a few times at once; else it goes through files. */
const WORK_MEMORY = sql`set local work_mem = '128MB'`;

/**
 * Brings staged values into the database: one transaction, under the one lock of all writers, so
 * that what was compared is still so when it is written.
 * @param beforeCommit runs when all is written, and can still fail the load
 * @throws Refused after a rollback, with the reasons in `input.problems`
 */
export const apply = (
  db: Kysely<Database>,
  input: ApplyInput,
  beforeCommit: () => Promise<void>,
  onHeld?: OnHeld,
): Promise<Applied> =>
  inApplyTransaction(
    db,
    async (trx) => {
      await sql`set local synchronous_commit = on`.execute(trx);
      await WORK_MEMORY.execute(trx);
      const { entry, staged, problems } = input;
      const earlier = await earlierBatch(trx, entry);
      if (earlier) return alreadyLoaded(earlier);
      const plan = await planOf(trx, input);
      const batch = await nextBatch(trx);
      const number = changesAnything(plan) ? await write(trx, plan, batch, input) : null;
      const counts: LoadCounts = {
        rows: staged.rowsRead,
        ...plan.values,
        rejected: problems.rejected,
        pricesAdded: plan.prices.created.length,
        pricesChanged: plan.prices.changed.length,
      };
      await writeBatch(trx, batch, 'applied', number, { ...entry, counts });
      if (entry.vintage !== null) await writeCoverage(trx, batch, plan.target);
      const revision = number === null ? null : await textOf(trx, number);
      await beforeCommit();
      const status = number === null ? 'unchanged' : 'applied';
      return { status, batch, revision, vintage: entry.vintage, counts };
    },
    onHeld,
  );

/**
 * Finds out what a load would do, and does not do it: nothing is written, and no writer waits.
 * @throws Refused with the reasons in `input.problems`
 */
export const rehearse = (db: Kysely<Database>, input: ApplyInput): Promise<Rehearsed> =>
  db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(async (trx) => {
      await WORK_MEMORY.execute(trx);
      const { values, prices } = await planOf(trx, input);
      const counts: LoadCounts = {
        rows: input.staged.rowsRead,
        ...values,
        rejected: input.problems.rejected,
        pricesAdded: prices.created.length,
        pricesChanged: prices.changed.length,
      };
      return {
        status: 'previewed',
        batch: null,
        revision: null,
        vintage: input.entry.vintage,
        counts,
      };
    });
