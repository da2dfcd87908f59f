import type { Kysely } from 'kysely';
import { type RateSource, rateSource } from '../conversion/rates.ts';
import { type Head, headOf, newestRevision, revisionAsOf } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import { Problem, type ViolationCode } from '../errors.ts';
import type { Plan } from './plan.ts';
import { IN_THE_FUTURE, type Moment } from './plan-options.ts';

/** The one state of the database that an answer is of. */
export interface State {
  readonly head: Head;
  /** Where exchange rates come from; null where the answer converts no currency. */
  readonly rates: RateSource | null;
}

const refusedMoment = (option: string, code: ViolationCode, detail: string): Problem =>
  new Problem('validation_failed', 'One rule is broken; errors names the place', {
    errors: [{ pointer: `/options/${option}`, code, detail }],
  });

const unknownRevision = (detail: string): Problem =>
  refusedMoment('revision', 'unknown_revision', detail);

/** The last revision that counts for a moment; null for now. */
async function boundOf(db: Kysely<Database>, moment: Moment): Promise<string | null> {
  if (moment.kind === 'now') return null;
  if (moment.kind === 'asOf') {
    const number = await revisionAsOf(db, moment.instant);
    if (number === null) throw refusedMoment('asOf', 'out_of_range', IN_THE_FUTURE);
    return number;
  }
  const newest = await newestRevision(db);
  const [epoch, number] = moment.text.split('.') as [string, string];
  if (epoch !== newest.epoch) {
    throw unknownRevision('This revision is of another epoch of the data; ask without it');
  }
  if (BigInt(number) > BigInt(newest.revision)) {
    throw unknownRevision(`The newest revision is ${newest.epoch}.${newest.revision}`);
  }
  return number;
}

/**
 * Finds the state that a plan reads: the newest, or that of its moment. The source of rates is
 * chosen at the same revision, and its scope counts towards `$metadata.revision`.
 * @param source the configured source of exchange rates
 * @throws Problem `validation_failed` with `unknown_revision`, or `out_of_range` for a moment that
 *   is still to come by the clock of the database
 */
export async function stateOf(db: Kysely<Database>, plan: Plan, source: string): Promise<State> {
  const { slug } = plan.market;
  const bound = await boundOf(db, plan.options.moment);
  if (plan.options.currency === null) {
    return { head: await headOf(db, [slug], bound), rates: null };
  }
  // Source and head are chosen at one bound, so that a commit in between cannot part them.
  const until = bound ?? (await newestRevision(db)).revision;
  const rates = await rateSource(db, source, until);
  return { head: await headOf(db, [slug, ...rates.scopes], until), rates };
}
