import { type RawBuilder, sql } from 'kysely';
import { rowsOf } from '../../db/cursor.ts';
import type { Values } from '../preview.ts';
import { CHANGEABLE } from '../prices.ts';
import type { Trx } from '../reference.ts';
import {
  namesIn,
  type PriceRow,
  pointsIn,
  pricesIn,
  ratesIn,
  type ValueRow,
} from './statements.ts';

/** Attributes of a price by their fields; what they refer to by name. */
type Attributes = Readonly<Record<string, unknown>>;

/** Something that a batch changed. */
export interface BatchChange {
  /** As the feed calls it; names are products, values of dimensions and currencies. */
  readonly operation:
    | 'published'
    | 'corrected'
    | 'withdrawn'
    | 'price-added'
    | 'price-changed'
    | 'name-added'
    | 'name-changed'
    | 'name-removed';
  /** Code of the price, currency of the rate, or the name. */
  readonly code: string;
  /** The source of a rate, or the kind of a name. */
  readonly of: string | null;
  /** Day of the value; null when it is none. */
  readonly date: string | null;
  /** The value before; of a changed price what differs, of one that is gone its name. */
  readonly before: Values | Attributes | null;
  readonly after: Values | Attributes | null;
}

function valuesOf(row: ValueRow, side: 'was' | 'is'): Values | null {
  const mid = row[`${side}_mid`];
  return mid === null ? null : { low: row[`${side}_low`], mid, high: row[`${side}_high`] };
}

function valueChange(row: ValueRow): BatchChange {
  const before = valuesOf(row, 'was');
  const after = valuesOf(row, 'is');
  const operation = after === null ? 'withdrawn' : before === null ? 'published' : 'corrected';
  const { code, source, date } = row;
  return { operation, code, of: source, date, before, after };
}

/** Names of products and dimension values by their ids, also of those that are no more. */
type Names = ReadonlyMap<string, string>;

async function namesOf(trx: Trx): Promise<Names> {
  const { rows } = await sql<{ place: string; name: string }>`
    select 'product ' || id as place, name from product_history
    union all select 'value ' || id, name from dimension_value_history
    union all select 'product ' || id, name from product
    union all select 'value ' || id, name from dimension_value`.execute(trx);
  return new Map(rows.map(({ place, name }) => [place, name]));
}

/** An attribute as a person reads it. */
function textOf(column: string, value: unknown, names: Names): unknown {
  if (value === null || !column.endsWith('_id')) return value;
  return names.get(`${column === 'product_id' ? 'product' : 'value'} ${value}`) ?? value;
}

function priceChange({ code, before: was, after: is }: PriceRow, names: Names): BatchChange {
  const common = { code, of: null, date: null };
  if (was === null) {
    return { operation: 'price-added', ...common, before: null, after: { name: is?.['name'] } };
  }
  if (is === null) {
    return { operation: 'withdrawn', ...common, before: { name: was['name'] }, after: null };
  }
  const before: Record<string, unknown> = {};
  const after: Record<string, unknown> = {};
  for (const [column, field] of Object.entries(CHANGEABLE)) {
    if (JSON.stringify(was[column]) === JSON.stringify(is[column])) continue;
    before[field] = textOf(column, was[column], names);
    after[field] = textOf(column, is[column], names);
  }
  return { operation: 'price-changed', ...common, before, after };
}

async function* rowsAs<T>(
  trx: Trx,
  query: RawBuilder<T>,
  changeOf: (row: T) => BatchChange,
): AsyncGenerator<BatchChange> {
  for await (const row of rowsOf(trx, query)) yield changeOf(row);
}

/**
 * Everything that a revision changed: names, prices, then the values of prices and of currencies
 * in the order of their codes and days. Memory does not grow with it.
 */
export async function* changesOf(trx: Trx, revision: string): AsyncGenerator<BatchChange> {
  yield* rowsAs(trx, namesIn(revision), ({ kind, before, after }) => ({
    operation: before === null ? 'name-added' : after === null ? 'name-removed' : 'name-changed',
    code: after ?? before ?? '',
    of: kind,
    date: null,
    before: null,
    after: null,
  }));
  const names = await namesOf(trx);
  yield* rowsAs(trx, pricesIn(revision), (row) => priceChange(row, names));
  yield* rowsAs(trx, pointsIn(revision), valueChange);
  yield* rowsAs(trx, ratesIn(revision), valueChange);
}
