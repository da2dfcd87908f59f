import type pg from 'pg';
import { ownTables } from './own-tables.ts';

/** A table with an identity column. */
interface Identity {
  readonly table: string;
  /** The sequence of the column, as `regclass` prints it. */
  readonly sequence: string;
  /** True if the account of the session may read the sequence. */
  readonly isReadable: boolean;
  /** SQL expression for the greatest id ever used; null if none was. */
  readonly maxId: string;
}

const IDENTITIES = `
  select c.relname as table, a.attname as column, s.sequence::text,
    has_sequence_privilege(s.sequence, 'select') as "isReadable",
    to_regclass(format('public.%I', relname || '_history')) is not null as "hasHistory"
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attidentity <> ''
    cross join lateral (select pg_get_serial_sequence(quote_ident(relname), attname)::regclass
      as sequence) as s
  where c.relnamespace = 'public'::regnamespace and c.relname = any($1) order by 1, 2`;

/** Greatest ids outside of a table and its history. */
const OTHER_IDS: Readonly<Record<string, string>> = {
  price: '(select max(price_id) from change_segment)',
};

/** Lists the tables with identity columns. A new id must never have been used before. */
export async function identitiesOf(driver: pg.ClientBase): Promise<Identity[]> {
  const { rows } = await driver.query<
    Omit<Identity, 'maxId'> & { readonly column: string; readonly hasHistory: boolean }
  >(IDENTITIES, [await ownTables()]);
  return rows.map(({ table, column, sequence, isReadable, hasHistory }) => {
    const tables = hasHistory ? [table, `${table}_history`] : [table];
    const ids = tables.map((each) => `(select max(${column}) from ${each})`);
    if (OTHER_IDS[table] !== undefined) ids.push(OTHER_IDS[table]);
    return { table, sequence, isReadable, maxId: `greatest(${ids.join(', ')})::bigint` };
  });
}
