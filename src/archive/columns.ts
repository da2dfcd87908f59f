import type pg from 'pg';
import { FOLDER, migrationNames } from '../db/migration-files.ts';
import { ArchiveRefusal } from './refusal.ts';
import { ARCHIVED, type ArchivedTable } from './tables.ts';

/** How the values of a column are written; other types are carried as PostgreSQL prints them. */
export type Kind =
  | 'integer'
  | 'bigint'
  | 'boolean'
  | 'decimal'
  | 'number'
  | 'date'
  | 'instant'
  | 'json'
  | 'bytes'
  | 'text';

const KINDS: Readonly<Record<string, Kind>> = {
  smallint: 'integer',
  integer: 'integer',
  bigint: 'bigint',
  boolean: 'boolean',
  numeric: 'number',
  date: 'date',
  'timestamp with time zone': 'instant',
  jsonb: 'json',
  bytea: 'bytes',
};

/** Values and rates: the schema holds them to 15 digits, 10 decimals and no zeros at their end. */
const DECIMALS = new Set(['low', 'mid', 'high', 'rate']);

/** A column of a table, as the catalog of the database has it. */
export interface Column {
  readonly name: string;
  /** As PostgreSQL names it: `timestamp with time zone`. */
  readonly type: string;
  readonly kind: Kind;
  readonly isRequired: boolean;
}

/** A table of the archive with the columns that it has in this database. */
export interface Table extends ArchivedTable {
  readonly columns: readonly Column[];
  /** Columns of the primary key, in its order. */
  readonly key: readonly string[];
}

interface Row {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly place: number | null;
}

const COLUMNS = `
  select c.relname as table, a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
    a.attnotnull as required, key.place
  from unnest($1::text[]) as wanted (name)
    join pg_class c on c.oid = to_regclass(quote_ident(wanted.name))
    join pg_attribute a on a.attrelid = c.oid
    left join lateral (
      select k.place::integer from pg_index i,
        unnest(i.indkey::int2[]) with ordinality as k (attnum, place)
      where i.indrelid = c.oid and i.indisprimary and k.place <= i.indnkeyatts
        and k.attnum = a.attnum) as key on true
  where a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
  order by a.attnum`;

const kindOf = ({ name, type }: Row): Kind => {
  const kind = KINDS[type] ?? 'text';
  return kind === 'number' && DECIMALS.has(name) ? 'decimal' : kind;
};

/** The tables of an archive with the columns of this database, in the order of the archive. */
export async function tablesOf(driver: pg.ClientBase): Promise<Table[]> {
  const { rows } = await driver.query<Row>(COLUMNS, [ARCHIVED.map((each) => each.name)]);
  const byTable = Map.groupBy(rows, (row) => row.table);
  return ARCHIVED.map((table) => {
    const all = byTable.get(table.name);
    if (!all) throw new Error(`the database has no table ${table.name}`);
    const own = all.filter((row) => !table.leftOut.includes(row.name));
    const key = own.filter((row) => row.place !== null);
    return {
      ...table,
      columns: own.map((row) => ({
        name: row.name,
        type: row.type,
        kind: kindOf(row),
        isRequired: row.required,
      })),
      key: key.sort((a, b) => Number(a.place) - Number(b.place)).map((row) => row.name),
    };
  });
}

/**
 * The names of the migrations that ran, in their order.
 * @throws ArchiveRefusal when a newer version ran some: it may have tables that we know nothing of
 */
export async function migrationsOf(driver: pg.ClientBase): Promise<string[]> {
  const { rows } = await driver.query<{ name: string }>('select name from kysely_migration');
  const known = await migrationNames(FOLDER);
  const names = rows.map((row) => row.name).sort();
  const strange = names.filter((each) => !known.includes(each));
  if (strange.length === 0) return names;
  throw new ArchiveRefusal(
    `the database belongs to a newer version of the software, which ran ${strange.join(', ')}`,
  );
}
