import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Observes } from '../../catalog/analytics.ts';
import { columnName, DIMENSIONS, type FilterName } from '../../catalog/dimensions.ts';
import { codeKey } from '../../catalog/match-key.ts';
import type { PayableReference } from '../../catalog/payable-reference.ts';
import { numberIn, requireCommit } from '../../db/revisions.ts';
import type { Database, PriceDimensions, SpecificationEntry } from '../../db/schema.ts';
import type { ListFilter, Plan } from '../plan/plan.ts';

/*
 * Reads of a market: the selected prices (this file), the values of filters, references, exchange
 * rates, and the filter values without a match.
 */

/** Returns the database. Called only if a query is needed. */
export type LazyDatabase = () => Kysely<Database>;

/** The column of `price` and the kind of `dimension_value` of a filter. */
export function columnOf(name: FilterName): { column: string; kind: string } {
  if (name === 'products') return { column: 'product_id', kind: 'product' };
  if (name === 'priceTypes') return { column: 'price_type', kind: 'price-type' };
  if (name === 'priceCategories') return { column: 'price_category_id', kind: 'price-category' };
  const { field, kind } = DIMENSIONS[name];
  return { column: columnName(field), kind };
}

/** The values of a filter at a revision, as a table with key, uuid, name and match_key. */
export const valuesAt = (name: FilterName, revision: string): RawBuilder<unknown> => {
  const at = numberIn(revision);
  if (name === 'products') {
    return sql`(select id as key, uuid, name, match_key from product_at(${at}))`;
  }
  const { kind } = columnOf(name);
  const key = name === 'priceTypes' ? sql`slug` : sql`id`;
  return sql`(select ${key} as key, uuid, name, match_key from dimension_value_at(${at})
    where kind = ${sql.lit(kind)})`;
};

/**
 * The condition that a price has one of a filter's values, given as ids or names. The keys are one
 * array parameter, so that lists of any length use the same statement.
 */
function conditionOf(filter: ListFilter, revision: string): RawBuilder<boolean> {
  const column = sql.ref(`p.${columnOf(filter.name).column}`);
  return sql<boolean>`${column} in (select v.key from ${valuesAt(filter.name, revision)} as v
    cross join (select ${[...filter.keys]}::text[] as keys) as sent
    where v.match_key = any(sent.keys) or v.uuid::text = any(sent.keys))`;
}

/** A price at a revision, without its points. */
export interface PriceAttributes extends PriceDimensions {
  readonly id: number;
  readonly code: string;
  readonly price_type: 'price' | 'payable';
  readonly currency_id: number | null;
  readonly unit_id: number;
  readonly specification: readonly SpecificationEntry[];
  readonly product_id: number;
  readonly name: string;
  readonly short_name: string | null;
  readonly assessment_launched_at: string | null;
  /** The kind of a value: of a day, or the mean of a period. */
  readonly observes: Observes;
  /** ISO 3166 code of the country whose VAT the values include; null if not known to. */
  readonly vat_country: string | null;
  /** In the order of their first days; null if unknown, and for prices. */
  readonly payable_reference: readonly PayableReference[] | null;
}

/** A price at a revision, with the date and publication of its latest point. */
export interface SelectedPrice extends PriceAttributes {
  readonly last_date: string | null;
  readonly last_published_at: string | null;
}

/** The prices of a market at a revision, aliased `p`; see `requireCommit`. */
export const marketPrices = (slug: string, revision: string): RawBuilder<SelectedPrice> =>
  sql<SelectedPrice>`(select price.* from price_at_4(${numberIn(revision)}) as price
    where price.market_id = (select id from market where slug = ${slug})
      and ${requireCommit(revision)})`;

/** The part of a plan that selects prices. */
export type PriceFilters = Pick<Plan, 'market' | 'codes' | 'lists'>;

const BY_CODE = sql`p.code collate "C"`;

/** The prices that a plan selects at a revision. */
function filtered(db: Kysely<Database>, plan: PriceFilters, revision: string) {
  let query = db.selectFrom(marketPrices(plan.market.slug, revision).as('p'));
  if (plan.codes) {
    query = query.where(sql<boolean>`p.code_key = any(${plan.codes.map(codeKey)}::text[])`);
  }
  for (const filter of plan.lists) query = query.where(conditionOf(filter, revision));
  return query;
}

/** Prices after a code, in the order of their codes. */
export interface CodeRange {
  readonly after: string | null;
  /** Most prices; null for no limit. */
  readonly pricesMax: number | null;
}

export const ALL_CODES: CodeRange = { after: null, pricesMax: null };

/**
 * The statement that selects prices of a plan at a revision, in the order of their codes. It looks
 * up the latest points of the range only, not of every price.
 */
export function selectionOf(
  db: Kysely<Database>,
  plan: PriceFilters,
  revision: string,
  { after, pricesMax }: CodeRange = ALL_CODES,
) {
  let prices = filtered(db, plan, revision).selectAll('p');
  if (after !== null) prices = prices.where(sql<boolean>`${BY_CODE} > ${after}`);
  if (pricesMax !== null) prices = prices.orderBy(BY_CODE).limit(pricesMax);
  const latest = sql<{ date: string; published_at: string }>`
    latest_point_at(p.id, ${numberIn(revision)})`;
  return db
    .selectFrom(prices.as('p'))
    .leftJoinLateral(latest.as('latest'), (join) => join.onTrue())
    .selectAll('p')
    .select(['latest.date as last_date', 'latest.published_at as last_published_at'])
    .orderBy(BY_CODE);
}
