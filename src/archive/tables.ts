import type pg from 'pg';
import { FOLDER, migrationNames } from '../db/migrate/migrations.ts';
import { ArchiveRefusal } from './manifest.ts';

/** A table whose rows an archive carries. */
interface ArchivedTable {
  readonly name: string;
  /**
   * The SQL condition that holds for the rows of some markets, given a subquery of their ids;
   * null when an archive of some markets carries the table whole.
   */
  readonly ofMarkets: ((markets: string) => string) | null;
  /** Columns that mean nothing in another installation; an import gives or leaves its own. */
  readonly leftOut: readonly string[];
}

const whole = (name: string, ...leftOut: string[]): ArchivedTable => ({
  name,
  ofMarkets: null,
  leftOut,
});

const partly = (name: string, ofMarkets: (markets: string) => string): ArchivedTable => ({
  name,
  ofMarkets,
  leftOut: [],
});

const withHistory = (table: ArchivedTable): ArchivedTable[] => [
  table,
  { ...table, name: `${table.name}_history` },
];

const inMarkets = (markets: string): string => `market_id in (${markets})`;

/** The prices of some markets, also those that are no more. */
const ofPrices = (markets: string): string =>
  `price_id in (select id from price where ${inMarkets(markets)}
    union select id from price_history where ${inMarkets(markets)})`;

/*
 * The segment with the last numbers goes with every archive, also when its price stays behind: the
 * changes to come are numbered after it, so no number of the feed is ever given twice.
 */
const inMarketsOrLast = (markets: string): string =>
  `(${inMarkets(markets)} or first_seq = (select max(first_seq) from change_segment))`;

/** What an archive carries, each table after those that it refers to. */
export const ARCHIVED: readonly ArchivedTable[] = [
  // What services remember of API keys holds while these stay.
  whole('service', 'keys_version', 'keys_change_id'),
  whole('market'),
  // The transaction that opened a revision is a number of its own server.
  whole('revision', 'opened_by'),
  whole('revision_scope'),
  ...withHistory(whole('currency')),
  ...withHistory(whole('unit_of_measure')),
  ...withHistory(whole('dimension_value')),
  ...withHistory(partly('product', inMarkets)),
  whole('load_batch'),
  ...withHistory(partly('price', inMarkets)),
  ...withHistory(partly('series', ofPrices)),
  partly('change_segment', inMarketsOrLast),
  whole('fx_source'),
  ...withHistory(whole('fx_rate')),
  partly('load_coverage', (markets) => `(price_id is null or ${ofPrices(markets)})`),
];

/** Tables that no archive carries, and why. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  api_key: 'credentials belong to one installation',
  api_key_scope: 'credentials belong to one installation',
  key_audit: 'credentials belong to one installation',
  rate_usage: 'what running services count means nothing later',
  write_lock: 'has no rows',
  seal_lock: 'has no rows',
  access_scope: 'written by the migrate command',
  kysely_migration: 'the manifest names the migrations',
  kysely_migration_lock: 'the manifest names the migrations',
  migration_file: 'the manifest names the migrations',
};

/** Tables that a migrated database has rows of; an import replaces these. */
export const OF_THE_MIGRATION: readonly string[] = ['service', 'market'];

/** The kinds of column values; other types keep the text that PostgreSQL prints. */
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
  /** The name in PostgreSQL: `timestamp with time zone`. */
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
