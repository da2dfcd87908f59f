import type pg from 'pg';

/** A row that breaks a rule: its table, key and values by name. */
export type BrokenRow = Readonly<Record<string, unknown>>;

/** An invariant of the stored data. */
export interface Rule {
  readonly name: string;
  /** The invariant in a sentence or two. */
  readonly meaning: string;
  /** A query for the rows that break the rule, or a function that returns them. */
  readonly broken: string | ((driver: pg.ClientBase) => Promise<readonly BrokenRow[]>);
}

/** A versioned table. Its past rows are in `<table>_history`. */
export interface Versioned {
  readonly table: string;
  readonly key: readonly string[];
  /** True if a removed row may be restored under its key, as by an undo. */
  readonly mayBeRestored: boolean;
}

const byId = (table: string, mayBeRestored = false): Versioned => ({
  table,
  key: ['id'],
  mayBeRestored,
});

export const VERSIONED: readonly Versioned[] = [
  byId('currency', true),
  byId('unit_of_measure'),
  byId('dimension_value', true),
  byId('product', true),
  byId('search_alias'),
  byId('price', true),
  { table: 'series', key: ['price_id', 'date'], mayBeRestored: true },
  { table: 'fx_rate', key: ['source', 'currency_id', 'date'], mayBeRestored: true },
  byId('holiday_list', true),
  byId('calendar', true),
  { table: 'price_calendar', key: ['price_id'], mayBeRestored: true },
  byId('vat_rate', true),
];

/** Subquery for the current and past rows of a versioned table, with the column `table`. */
export const everyVersion = (table: string, columns: string): string => `(
  select '${table}' as "table", ${columns}, revision, null::bigint as revision_to from ${table}
  union all
  select '${table}_history', ${columns}, revision, revision_to from ${table}_history)`;

/** Subquery for all current and past prices with their markets. */
export const ANY_PRICE = `(
  select id, code, market_id from price
  union select id, code, market_id from price_history)`;

/**
 * Subquery for changes that an archive of some markets excludes: revisions of a market before its
 * first product. Other databases have none, because a price needs a product.
 */
export const OMITTED_CHANGES = `(
  select m.id as market_id, s.revision
  from revision_scope s join market m on m.slug = s.scope
  where not exists (
    select from ${everyVersion('product', 'market_id')} p
    where p.market_id = m.id and p.revision <= s.revision))`;
