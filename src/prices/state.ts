import type { Kysely } from 'kysely';
import { brokenBy } from '../contract/request/validate.ts';
import { type RateSource, rateSource } from '../conversion/rates.ts';
import type { AsOf } from '../db/as-of.ts';
import type { Newest } from '../db/newest.ts';
import { headAt, revisionOf } from '../db/newest.ts';
import {
  findRevision,
  type Head,
  headOf,
  isAfter,
  newestRevision,
  numberOf,
  revisionAsOf,
  revisionText,
  wireText,
} from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import { keptAt } from '../db/shared-work.ts';
import { type Problem, startAgain } from '../errors.ts';
import { IN_THE_FUTURE, type Moment } from './plan/options.ts';
import type { Plan } from './plan/plan.ts';

/** The one state of the database that an answer is of. */
export interface State {
  readonly head: Head;
  /** Where exchange rates come from; null where the answer converts no currency. */
  readonly rates: RateSource | null;
}

/** Whether two states have the same answer to everything. */
export const isSameState = (one: State, other: State): boolean =>
  revisionText(one.head) === revisionText(other.head) &&
  one.head.reference === other.head.reference &&
  one.rates?.slug === other.rates?.slug &&
  one.rates?.revision === other.rates?.revision;

/** What decides which state a plan reads. */
export type StatePlan = Pick<Plan, 'market' | 'options' | 'page'>;

/** Rejects a revision that the database does not have, by the option that named it. */
const unknownRevision = (option: 'revision' | 'cursor', detail: string): Problem =>
  option === 'cursor'
    ? startAgain('invalid_cursor', '/options/cursor', detail)
    : startAgain('unknown_revision', '/options/revision', detail);

/** The last revision that counts for a moment; null for now. */
async function boundOf(db: Kysely<Database>, moment: Moment, asOf: AsOf): Promise<string | null> {
  if (moment.kind === 'now') return null;
  if (moment.kind === 'asOf') {
    const number = await asOf(db, moment.instant);
    if (number === null) {
      throw brokenBy([{ pointer: '/options/asOf', code: 'out_of_range', detail: IN_THE_FUTURE }]);
    }
    return number;
  }
  const { option, text } = moment;
  const { epoch, newest, revision } = await findRevision(db, text);
  if (revision !== null) return revision;
  const [prefix = '', number = ''] = text.split('.');
  if (prefix.startsWith(epoch) && BigInt(number) > BigInt(numberOf(newest))) {
    throw unknownRevision(option, `The newest revision is ${wireText(epoch, newest)}`);
  }
  const detail = `This ${option} is of another epoch or was lost in a failover; ask without it`;
  throw unknownRevision(option, detail);
}

/** A walk stays at its state, also when each of its requests names a past one. */
function checkWalk({ page }: StatePlan, head: Head): void {
  if (page.after === null || page.after.revision === revisionText(head)) return;
  const detail = `This cursor goes on at ${page.after.revision}; leave out asOf and revision`;
  throw unknownRevision('cursor', detail);
}

/**
 * Finds the state that a plan reads: the newest, or that of its moment. The source of rates is
 * chosen at the same revision, and its scope counts towards `$metadata.revision`.
 * @param source the configured source of exchange rates
 * @param asOf finds the revision of a moment
 * @throws Problem `revision_not_here`, `unknown_revision`, `invalid_cursor`, or
 *   `validation_failed` for a moment that is in the future by the database clock
 */
async function stateOf(
  db: Kysely<Database>,
  plan: StatePlan,
  source: string,
  asOf: AsOf = revisionAsOf,
): Promise<State> {
  const { slug } = plan.market;
  const bound = await boundOf(db, plan.options.moment, asOf);
  if (plan.options.currency === null) {
    const head = await headOf(db, [slug], bound);
    checkWalk(plan, head);
    return { head, rates: null };
  }
  // Source and head are chosen at one bound, so that a commit in between cannot part them.
  const until = bound ?? (await newestRevision(db)).revision;
  const rates = await rateSource(db, source, until);
  const head = await headOf(db, [slug, ...rates.scopes], until);
  checkWalk(plan, head);
  return { head, rates };
}

/**
 * Whether a look shows the state that a plan reads: that of now, or of a revision after which
 * nothing was committed that the answer depends on, as on the pages of a walk.
 */
export function isShownBy(newest: Newest, { market, options }: StatePlan): boolean {
  const { moment, currency } = options;
  if (moment.kind !== 'revision') return moment.kind === 'now';
  const shown = [newest.revision, ...[...newest.scopes.values()].map((each) => each.revision), '0'];
  const bound = shown.find((each) => wireText(newest.epoch, each) === moment.text);
  // Another one may still be known to the database.
  if (bound === undefined) return false;
  // The choice of a source depends on what all of them hold.
  const isRead = (scope: string): boolean =>
    scope === market.slug ||
    scope === 'reference' ||
    (currency !== null && scope.startsWith('fx:'));
  return [...newest.scopes].every(
    ([scope, { revision }]) => !isRead(scope) || !isAfter(revision, bound),
  );
}

/** Finds the state that a plan reads, from a look at the database where it shows that state. */
export type StateReader = (
  db: () => Kysely<Database>,
  plan: StatePlan,
  newest: Newest,
) => Promise<State>;

/** What the choice of a source depends on: the rates of all of them, and the reference data. */
function rateKey(newest: Newest): string {
  const rates = [...newest.scopes].filter(([scope]) => scope.startsWith('fx:'));
  const revisions = rates.map(([scope, { revision }]) => `${scope}=${revision}`).sort();
  return `${newest.epoch}.${revisionOf(newest, 'reference')} ${revisions.join(' ')}`;
}

/**
 * A reader that takes what a look has told instead of asking again, and keeps the source of rates
 * that it chose last.
 * @param shared reads what is kept; a request that leaves does not end it for the others
 * @param source the configured source of exchange rates
 */
export function stateReader(shared: Kysely<Database>, source: string, asOf?: AsOf): StateReader {
  const ratesAt = keptAt(1, rateKey, ({ revision }) => rateSource(shared, source, revision));
  return async (db, plan, newest) => {
    if (!isShownBy(newest, plan)) return stateOf(db(), plan, source, asOf);
    const { slug } = plan.market;
    const rates = plan.options.currency === null ? null : await ratesAt(newest);
    const head = headAt(newest, rates === null ? [slug] : [slug, ...rates.scopes]);
    checkWalk(plan, head);
    return { head, rates };
  };
}
