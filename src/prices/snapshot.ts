import type { Kysely } from 'kysely';
import type { AsOfReader } from '../db/as-of.ts';
import type { NewestRevision } from '../db/newest-revision.ts';
import { dataRevisionAt, revisionOf } from '../db/newest-revision.ts';
import {
  type DataRevision,
  findRevision,
  isAfter,
  newestRevision,
  numberOf,
  readDataRevision,
  revisionAsOf,
  revisionText,
  wireText,
} from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import { cachedByRevision } from '../db/shared-work.ts';
import { brokenRules, type Problem, startAgain } from '../errors.ts';
import { type RateSource, rateSource } from './market/rates.ts';
import { IN_THE_FUTURE, type RequestedRevision } from './plan/options.ts';
import type { Plan } from './plan/plan.ts';

/*
 * The domain: `plan` (what is requested), `snapshot.ts` (the revision that is read), `market` (the
 * selected prices), `series` (their points), `answer`, and `write` (its bytes). `changes` and
 * `search` are answers of their own.
 */

/** The committed revision that a response reads. */
export interface Snapshot {
  readonly data: DataRevision;
  /** The source of exchange rates; null if the response converts no currency. */
  readonly rates: RateSource | null;
}

/** True if every request has the same response at both snapshots. */
export const isSameSnapshot = (one: Snapshot, other: Snapshot): boolean =>
  revisionText(one.data) === revisionText(other.data) &&
  one.data.reference === other.data.reference &&
  one.rates?.slug === other.rates?.slug &&
  one.rates?.revision === other.rates?.revision;

/** The part of a plan that decides its snapshot: a market or another scope, options and page. */
export type SnapshotPlan = Pick<Plan, 'options' | 'page'> & {
  readonly market: { readonly slug: string };
};

/** The problem for a revision that the database does not have, by the option that named it. */
const unknownRevision = (option: 'revision' | 'cursor', detail: string): Problem =>
  option === 'cursor'
    ? startAgain('invalid_cursor', '/options/cursor', detail)
    : startAgain('unknown_revision', '/options/revision', detail);

/** The upper bound of the requested revision; null for the newest. */
async function boundOf(
  db: Kysely<Database>,
  requested: RequestedRevision,
  asOf: AsOfReader,
): Promise<string | null> {
  if (requested.kind === 'now') return null;
  if (requested.kind === 'asOf') {
    const number = await asOf(db, requested.instant);
    if (number === null) {
      throw brokenRules([
        { pointer: '/options/asOf', code: 'out_of_range', detail: IN_THE_FUTURE },
      ]);
    }
    return number;
  }
  const { option, text } = requested;
  const { epoch, newest, revision } = await findRevision(db, text);
  if (revision !== null) return revision;
  const [prefix = '', number = ''] = text.split('.');
  const newestIs = `The newest revision is ${wireText(epoch, newest)}`;
  if (prefix.startsWith(epoch) && BigInt(number) > BigInt(numberOf(newest))) {
    throw unknownRevision(option, `${newestIs}; retry without ${option}`);
  }
  const detail = `This ${option} is of another epoch or was lost in a failover; retry without it`;
  throw unknownRevision(option, detail);
}

/** Rejects a past revision that differs from the revision of the cursor. */
function checkCursorRevision({ page }: SnapshotPlan, data: DataRevision): void {
  if (page.after === null || page.after.revision === revisionText(data)) return;
  const detail = `This cursor continues at ${page.after.revision}; omit asOf and revision`;
  throw unknownRevision('cursor', detail);
}

/** The part of a plan that decides its snapshot, without the page. */
type RevisionPlan = Omit<SnapshotPlan, 'page'>;

/**
 * Reads the snapshot of a plan from the database. The source of rates is chosen at the same
 * revision, and its scope counts towards `$metadata.revision`.
 * @param source the configured source of exchange rates
 * @param asOf finds the newest revision at a time
 * @throws Problem `revision_not_here`, `unknown_revision`, `invalid_cursor`, or `validation_failed`
 *   for a time in the future by the database clock
 */
async function readSnapshot(
  db: Kysely<Database>,
  plan: RevisionPlan,
  source: string,
  asOf: AsOfReader = revisionAsOf,
): Promise<Snapshot> {
  const { slug } = plan.market;
  const bound = await boundOf(db, plan.options.requested, asOf);
  if (plan.options.currency === null) {
    return { data: await readDataRevision(db, [slug], bound), rates: null };
  }
  // One bound for source and data revision, so that a commit in between does not separate them.
  const until = bound ?? (await newestRevision(db)).revision;
  const rates = await rateSource(db, source, until);
  return { data: await readDataRevision(db, [slug, ...rates.scopes], until), rates };
}

/** Maximum number of cached past snapshots, of some 200 bytes each. */
const PAST_CACHED = 1_000;

/**
 * Cache key of a past snapshot. It stays the same until a failover to a server that lacks a
 * revision: then `history` grows.
 */
function pastKey({ epoch, history }: NewestRevision, { market, options }: RevisionPlan): string {
  const { requested, currency } = options;
  const isConverted = currency !== null;
  return JSON.stringify([epoch, history, market.slug, isConverted, requested]);
}

/**
 * True if the newest revision contains the snapshot of a plan. The plan reads the newest revision,
 * or one after which no commit affects the response, as later pages do.
 */
export function isShownBy(newest: NewestRevision, { market, options }: SnapshotPlan): boolean {
  const { requested, currency } = options;
  if (requested.kind !== 'revision') return requested.kind === 'now';
  const shown = [newest.revision, ...[...newest.scopes.values()].map((each) => each.revision), '0'];
  const bound = shown.find((each) => wireText(newest.epoch, each) === requested.text);
  // The database may still have another revision.
  if (bound === undefined) return false;
  // The choice of a source depends on the rates of all sources.
  const isRead = (scope: string): boolean =>
    scope === market.slug ||
    scope === 'reference' ||
    (currency !== null && scope.startsWith('fx:'));
  return [...newest.scopes].every(
    ([scope, { revision }]) => !isRead(scope) || !isAfter(revision, bound),
  );
}

/** Finds the snapshot of a plan, without a query if the newest revision contains it. */
export type SnapshotReader = (plan: SnapshotPlan, newest: NewestRevision) => Promise<Snapshot>;

/** Identifies the rates of all sources and the reference data, on which the choice depends. */
function rateKey(newest: NewestRevision): string {
  const rates = [...newest.scopes].filter(([scope]) => scope.startsWith('fx:'));
  const revisions = rates.map(([scope, { revision }]) => `${scope}=${revision}`).sort();
  return `${newest.epoch}.${revisionOf(newest, 'reference')} ${revisions.join(' ')}`;
}

/**
 * A reader that uses the result of the revision check. It caches the last chosen source of rates
 * and past snapshots.
 * @param shared the database of loads that requests share; an aborted request does not cancel them
 * @param source the configured source of exchange rates
 */
export function snapshotReader(
  shared: Kysely<Database>,
  source: string,
  asOf?: AsOfReader,
): SnapshotReader {
  const ratesAt = cachedByRevision(1, rateKey, ({ revision }) =>
    rateSource(shared, source, revision),
  );
  const pastAt = cachedByRevision(PAST_CACHED, pastKey, (_newest, plan: RevisionPlan) =>
    readSnapshot(shared, plan, source, asOf),
  );
  return async (plan, newest) => {
    if (!isShownBy(newest, plan)) {
      const past = await pastAt(newest, plan);
      checkCursorRevision(plan, past.data);
      return past;
    }
    const { slug } = plan.market;
    const rates = plan.options.currency === null ? null : await ratesAt(newest);
    const data = dataRevisionAt(newest, rates === null ? [slug] : [slug, ...rates.scopes]);
    checkCursorRevision(plan, data);
    return { data, rates };
  };
}
