import { type RawBuilder, sql } from 'kysely';
import { columnName, DIMENSIONS, type FilterName } from '../catalog/dimensions.ts';
import { numberIn } from '../db/revisions.ts';
import type { ListFilter } from './plan.ts';

/** The column of `price` and the kind of `dimension_value` behind a filter. */
export function columnOf(name: FilterName): { column: string; kind: string } {
  if (name === 'products') return { column: 'product_id', kind: 'product' };
  if (name === 'priceTypes') return { column: 'price_type', kind: 'price-type' };
  if (name === 'priceCategories') return { column: 'price_category_id', kind: 'price-category' };
  const { field, kind } = DIMENSIONS[name];
  return { column: columnName(field), kind };
}

/** The values of a filter at a revision, as a table of key, id, uuid, name and match_key. */
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
 * The condition that a price has one of a filter's values, given as ids or names; the keys go to
 * PostgreSQL as one array parameter, so every length of list is the same statement.
 */
export function conditionOf(filter: ListFilter, revision: string): RawBuilder<boolean> {
  const column = sql.ref(`p.${columnOf(filter.name).column}`);
  return sql<boolean>`${column} in (select v.key from ${valuesAt(filter.name, revision)} as v
    cross join (select ${[...filter.keys]}::text[] as keys) as sent
    where v.match_key = any(sent.keys) or v.uuid::text = any(sent.keys))`;
}
