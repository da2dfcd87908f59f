import type pg from 'pg';

/** A table whose ids PostgreSQL counts. */
interface Identity {
  readonly table: string;
  /** The sequence of its ids, as `regclass` prints it. */
  readonly sequence: string;
  /** True if the account of the session may read the sequence. */
  readonly isReadable: boolean;
  /** The greatest id that a row has or had, as an expression of SQL; null where there was none. */
  readonly newest: string;
}

const IDENTITIES = `
  select c.relname as table, a.attname as column, s.sequence::text,
    has_sequence_privilege(s.sequence, 'select') as "isReadable",
    to_regclass(format('public.%I', relname || '_history')) is not null as "hasHistory"
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attidentity <> ''
    cross join lateral (select pg_get_serial_sequence(quote_ident(relname), attname)::regclass
      as sequence) as s
  where c.relnamespace = 'public'::regnamespace order by 1, 2`;

/** Where the ids of a table live on beside the table and its history. */
const REMEMBERED: Readonly<Record<string, string>> = {
  price: '(select max(price_id) from change_segment)',
};

/** The tables with counted ids: the next id must be one that no row had before. */
export async function identitiesOf(driver: pg.ClientBase): Promise<Identity[]> {
  const { rows } = await driver.query<
    Omit<Identity, 'newest'> & { readonly column: string; readonly hasHistory: boolean }
  >(IDENTITIES);
  return rows.map(({ table, column, sequence, isReadable, hasHistory }) => {
    const places = hasHistory ? [table, `${table}_history`] : [table];
    const ids = places.map((each) => `(select max(${column}) from ${each})`);
    if (REMEMBERED[table] !== undefined) ids.push(REMEMBERED[table]);
    return { table, sequence, isReadable, newest: `greatest(${ids.join(', ')})::bigint` };
  });
}
