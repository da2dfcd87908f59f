import { type Kysely, sql } from 'kysely';
import type { Database } from '../db/schema.ts';
import type { PriceFilters, PriceTerms, SelectedPrice } from './query.ts';
import { BY_CODE, filtered, latestPoint } from './query.ts';

/** Some of the prices of a plan: the next ones after a code. */
interface Stretch {
  readonly after: string | null;
  /** Null is as many as there are. */
  readonly most: number | null;
  /** Numbers of prices that are passed over. */
  readonly without: readonly number[];
}

/**
 * The statement that selects a stretch of the prices of a plan. Their latest points are looked for
 * when the stretch is known, and not of every price.
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
