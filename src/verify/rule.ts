import type pg from 'pg';

/** What breaks a rule, by what it is called: the table, the key of the row, the values. */
export type Broken = Readonly<Record<string, unknown>>;

/** Something that holds for the stored data at any time. */
export interface Rule {
  readonly name: string;
  /** What holds, in a sentence or two. */
  readonly meaning: string;
  /** A query whose rows are what breaks the rule, or a function that returns them. */
  readonly broken: string | ((driver: pg.ClientBase) => Promise<readonly Broken[]>);
}

/** A versioned table: its rows that are no more lie in `<table>_history`. */
export interface Versioned {
  readonly table: string;
  readonly key: readonly string[];
  /** True if a row that went may come back under its key, as by an undo. */
  readonly mayReturn: boolean;
}

const byId = (table: string, mayReturn = false): Versioned => ({ table, key: ['id'], mayReturn });

export const VERSIONED: readonly Versioned[] = [
  byId('currency', true),
  byId('unit_of_measure'),
  byId('dimension_value', true),
  byId('product', true),
  byId('price', true),
  { table: 'series', key: ['price_id', 'date'], mayReturn: true },
  { table: 'fx_rate', key: ['source', 'currency_id', 'date'], mayReturn: true },
];

/** The rows of a versioned table, those of the past too, as a subquery with the column `table`. */
export const everyVersion = (table: string, columns: string): string => `(
  select '${table}' as "table", ${columns}, revision, null::bigint as revision_to from ${table}
  union all
  select '${table}_history', ${columns}, revision, revision_to from ${table}_history)`;

/** Every price that there is or was, with its market. */
export const ANY_PRICE = `(
  select id, code, market_id from price
  union select id, code, market_id from price_history)`;

/**
 * Changes that are not here, as an archive of some markets leaves them out: the market and number
 * of revisions that changed a market before it had a product. Elsewhere there is none, for a
 * price needs a product.
 */
export const LEFT_OUT = `(
  select m.id as market_id, s.revision
  from revision_scope s join market m on m.slug = s.scope
  where not exists (
    select from ${everyVersion('product', 'market_id')} p
    where p.market_id = m.id and p.revision <= s.revision))`;
