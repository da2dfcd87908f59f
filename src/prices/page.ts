import { type Kysely, sql } from 'kysely';
import { parameterPointer } from '../contract/problem.ts';
import type { RateTable } from '../conversion/rate-table.ts';
import { type Head, revisionText } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import { mapped } from '../turns.ts';
import { cursorText } from './cursor.ts';
import {
  type MissingReader,
  type RatesInUse,
  refusedOf,
  withMissingRates,
} from './missing-rates.ts';
import { outcomesOf, type PlannedPrice, vatWarnings, withoutRefused } from './outcomes.ts';
import { canonicalText, type Plan } from './plan.ts';
import { isConverting } from './plan-options.ts';
import {
  BY_CODE,
  filtered,
  latestPoint,
  type PriceFilters,
  type PriceTerms,
  type SelectedPrice,
  selectPrices,
} from './query.ts';
import { LARGE_WAITING_MAX, Readings } from './readings.ts';
import type { References } from './references.ts';
import type { State } from './state.ts';
import type { Targets } from './targets.ts';
import type { VocabularyReader } from './vocabulary.ts';
import {
  checkStrict,
  type Unmatched,
  unmatchedIn,
  unmatchedWarnings,
  type Warning,
} from './warnings.ts';

/** Some of the prices of a plan: the next ones after a code. */
interface Stretch {
  readonly after: string | null;
  /** Null is as many as there are. */
  readonly most: number | null;
  /** Numbers of prices that are passed over. */
  readonly without: readonly number[];
}

/**
 * The statement that selects a stretch of the prices of a plan. Latest points are looked up for the
 * stretch only, not for every price.
 */
export function stretchSelection(
  db: Kysely<Database>,
  plan: PriceFilters,
  revision: string,
  { after, most, without }: Stretch,
) {
  let inner = filtered(db, plan, revision).selectAll('p');
  if (after !== null) inner = inner.where(sql<boolean>`${BY_CODE} > ${after}`);
  if (without.length > 0) inner = inner.where(sql<boolean>`p.id <> all(${[...without]}::int[])`);
  if (most !== null) inner = inner.limit(most);
  return db
    .selectFrom(inner.as('p'))
    .leftJoinLateral(latestPoint(revision), (join) => join.onTrue())
    .selectAll('p')
    .select(['latest.date as last_date', 'latest.published_at as last_published_at'])
    .orderBy(BY_CODE);
}

/** Runs the selection of a stretch. Throws what the database throws. */
export const selectStretch = (
  db: Kysely<Database>,
  plan: PriceFilters,
  revision: string,
  stretch: Stretch,
): Promise<readonly SelectedPrice[]> => stretchSelection(db, plan, revision, stretch).execute();

/** The terms of all prices of a plan, whatever page it is of, in the order of their codes. */
export const selectTerms = (
  db: Kysely<Database>,
  plan: PriceFilters,
  revision: string,
): Promise<readonly PriceTerms[]> =>
  filtered(db, plan, revision)
    .select(['p.id', 'p.code', 'p.price_type', 'p.currency_id', 'p.unit_id', 'p.specification'])
    .execute();

/** The prices that an answer shows, and what is told about all that were asked for. */
interface Found {
  readonly shown: readonly PlannedPrice[];
  readonly warnings: readonly Warning[];
  /** Goes on after the last of them; null where nothing comes after it. */
  readonly nextCursor: string | null;
}

/** What the filters of a plan come to. */
export interface Selected {
  readonly prices: readonly SelectedPrice[];
  /** The values that match nothing. */
  readonly unmatched: readonly Unmatched[];
}

/** The database for those who need it: what is at hand is found without. */
export type Asking = () => Kysely<Database>;

/** Finds all prices of a plan at the state of a head. */
export type Selector = (
  asking: Asking,
  plan: Plan,
  head: Head,
  signal: () => AbortSignal,
) => Promise<Selected>;

/** Prices beyond which a selection is a large one. */
const LARGE = 2_000;

/** Asks the database for all of it. */
export function sqlSelector(vocabularies: VocabularyReader): Selector {
  const readings = new Readings(1, LARGE_WAITING_MAX);
  /** Markets of which a selection was a large one. */
  const large = new Set<string>();
  return async (asking, plan, head, signal) => {
    const { slug } = plan.market;
    const read = async (): Promise<Selected> => {
      const db = asking();
      const prices = await selectPrices(db, plan, head.revision);
      if (prices.length > LARGE) large.add(slug);
      return { prices, unmatched: await unmatchedIn(db, vocabularies, plan, head, prices) };
    };
    const mayBeLarge = plan.codes === null && large.has(slug);
    return mayBeLarge ? readings.run(read, signal()) : read();
  };
}

/** What prices are found by, all of one state. */
interface Finding {
  readonly db: Asking;
  readonly plan: Plan;
  readonly state: State;
  readonly references: References;
  readonly targets: Targets;
  readonly rates: RateTable | null;
  readonly vocabularies: VocabularyReader;
  readonly select: Selector;
  /** Ends what is read when the work for the request ends. */
  readonly signal: () => AbortSignal;
  readonly missing: MissingReader;
  /** Whether all prices are at hand, so that a page is best cut from them. */
  readonly hasAll: boolean;
}

/** The cursor that goes on after the last price of a page. */
const cursorAfter = ({ plan, state }: Finding, last: PlannedPrice): string => {
  const { code } = last.price;
  return cursorText(canonicalText(plan), { revision: revisionText(state.head), code });
};

/** A page of prices in the order of their codes. */
function cutOf(finding: Finding, kept: readonly PlannedPrice[]) {
  const { limit, after } = finding.plan.page;
  // Codes are ASCII, so that their order is the same here as in the database.
  const rest = after === null ? kept : kept.filter(({ price }) => price.code > after.code);
  const shown = limit === null ? rest : rest.slice(0, limit);
  const last = shown.at(-1);
  const isEnd = last === undefined || shown.length === rest.length;
  return { shown, nextCursor: isEnd ? null : cursorAfter(finding, last) };
}

const ratesInUse = ({ state, rates, references, targets }: Finding): RatesInUse => ({
  source: state.rates?.slug ?? null,
  ...{ rates, references, targets },
});

/** Finds all prices that a plan asks for, and cuts the page from them. */
async function wholeOf(finding: Finding): Promise<Found> {
  const { db, plan, state, references, targets, rates, select } = finding;
  const selected = await select(db, plan, state.head, finding.signal);
  const { prices } = selected;
  const unmatched = unmatchedWarnings(plan, selected.unmatched);
  checkStrict(plan, unmatched);
  const outcomes = await outcomesOf(plan, prices, targets, references, rates);
  const inUse = ratesInUse(finding);
  const rated = await withMissingRates(finding.missing, plan, outcomes, state.head.revision, inUse);
  const { kept, warnings: omitted } = withoutRefused(plan, rated.planned);
  const warnings = [...unmatched, ...rated.warnings, ...omitted, ...(await vatWarnings(kept))];
  return { ...cutOf(finding, kept), warnings };
}

/**
 * A page of the prices that a plan asks for. What is told and refused is that of the whole request,
 * so it is the same on every page; the terms of all prices are read for it only where it depends on
 * them. Prices that are left out take no place on a page.
 */
async function pageOf(finding: Finding): Promise<Found> {
  const { plan, state, references, targets, rates } = finding;
  const db = finding.db();
  const { revision } = state.head;
  const { limit, after } = plan.page;
  const needsAll = plan.codes !== null || isConverting(plan.options);
  const all = needsAll ? await selectTerms(db, plan, revision) : [];
  const unmatched = unmatchedWarnings(
    plan,
    await unmatchedIn(db, finding.vocabularies, plan, state.head, all),
  );
  checkStrict(plan, unmatched);
  const outcomes = await outcomesOf(plan, all, targets, references, rates);
  const inUse = ratesInUse(finding);
  const rated = await withMissingRates(finding.missing, plan, outcomes, revision, inUse);
  const { kept, warnings: omitted } = withoutRefused(plan, rated.planned);
  const keptIds = new Set(kept.map(({ price }) => price.id));
  const prices = await selectStretch(db, plan, revision, {
    after: after?.code ?? null,
    // One more tells whether there is another page.
    most: limit === null ? null : limit + 1,
    without: all.filter(({ id }) => !keptIds.has(id)).map(({ id }) => id),
  });
  const cut = await outcomesOf(
    plan,
    prices.slice(0, limit ?? undefined),
    targets,
    references,
    rates,
  );
  const shown = refusedOf(cut, rated.unconvertible);
  const last = shown.at(-1);
  const nextCursor =
    last === undefined || prices.length === shown.length ? null : cursorAfter(finding, last);
  const warnings = [...unmatched, ...rated.warnings, ...omitted, ...(await vatWarnings(kept))];
  return { shown, warnings, nextCursor };
}

/**
 * Finds the prices that an answer shows.
 * @throws Problem for values that match nothing when the plan is strict, and for prices that cannot
 *   be converted when it says so; what the database throws
 */
export async function findPrices(finding: Finding): Promise<Found> {
  const { page, by } = finding.plan;
  const isWhole = page.limit === null && page.after === null;
  const found = await (isWhole || finding.hasAll ? wholeOf(finding) : pageOf(finding));
  if (by === 'body' || found.warnings.length === 0) return found;
  const warnings = await mapped(found.warnings, (each) => ({
    ...each,
    pointer: parameterPointer(each.pointer),
  }));
  return { ...found, warnings };
}
