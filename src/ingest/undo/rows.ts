import { type RawBuilder, sql } from 'kysely';
import { CHANGEABLE } from '../prices.ts';
import type { Trx } from '../reference.ts';

/** The tables of what prices refer to, and of prices, each after those that it refers to. */
const ROWS = ['currency', 'product', 'dimension_value', 'price'] as const;
export type RowTable = (typeof ROWS)[number];

/** Rows that a revision removed and that are not there now, as `h`: a query without its columns. */
export const removedIn = (table: RowTable, revision: string | null): RawBuilder<unknown> => sql`
  from ${sql.ref(`${table}_history`)} h
  where h.revision_to = ${revision}::bigint
    and not exists (select from ${sql.ref(table)} t where t.id = h.id)`;

const listOf = (columns: readonly string[], table: string | null = null) =>
  sql.join(columns.map((column) => sql.ref(table === null ? column : `${table}.${column}`)));

const ATTRIBUTES = Object.keys(CHANGEABLE);

/** Prices `price` whose attributes a revision changed, and `h`, what they were before it. */
export const pricesChangedIn = (revision: string | null): RawBuilder<unknown> => sql`
  from price_history h join price on price.id = h.id
  where h.revision_to = ${revision}::bigint
    and row(${listOf(ATTRIBUTES, 'price')}) is distinct from row(${listOf(ATTRIBUTES, 'h')})`;

async function columnsOf(trx: Trx, table: RowTable): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select attname as name from pg_attribute
    where attrelid = to_regclass(quote_ident(${table})) and attnum > 0 and not attisdropped
      and attname <> 'revision'
    order by attnum`.execute(trx);
  return rows.map(({ name }) => name);
}

/** Brings back the rows that a revision removed, each under the id that it had. */
export async function restoreRows(trx: Trx, revision: string): Promise<void> {
  for (const table of ROWS) {
    const columns = await columnsOf(trx, table);
    await sql`
      insert into ${sql.ref(table)} (${listOf(columns)}) overriding system value
      select ${listOf(columns, 'h')} ${removedIn(table, revision)}`.execute(trx);
  }
  await sql`
    update price set (${listOf(ATTRIBUTES)}) = row(${listOf(ATTRIBUTES, 'was')})
    from (select h.* ${pricesChangedIn(revision)}) as was
    where was.id = price.id`.execute(trx);
}
