import type pg from 'pg';
import { MIGRATION_TABLE, migrationNames } from '../db/migrate/migrations.ts';
import { ArchiveRefusal } from './manifest.ts';

/** A table of archives. */
interface ArchivedTable {
  readonly name: string;
  /**
   * SQL condition for the rows of some markets, given a subquery of their ids. Null if archives of
   * some markets contain all rows.
   */
  readonly ofMarkets: ((markets: string) => string) | null;
  /** Columns that are specific to an installation; an import keeps or sets their values. */
  readonly excludedColumns: readonly string[];
}

const whole = (name: string, ...excludedColumns: string[]): ArchivedTable => ({
  name,
  ofMarkets: null,
  excludedColumns,
});

const filtered = (name: string, ofMarkets: (markets: string) => string): ArchivedTable => ({
  name,
  ofMarkets,
  excludedColumns: [],
});

const withHistory = (table: ArchivedTable): ArchivedTable[] => [
  table,
  { ...table, name: `${table.name}_history` },
];

const inMarkets = (markets: string): string => `market_id in (${markets})`;

/** Condition for rows of prices of some markets, removed prices included. */
const ofPrices = (markets: string): string =>
  `price_id in (select id from price where ${inMarkets(markets)}
    union select id from price_history where ${inMarkets(markets)})`;

/*
 * Every archive contains the segment with the last feed numbers, even without its price. Later
 * changes continue these numbers, so no number is used twice.
 */
const inMarketsOrLast = (markets: string): string =>
  `(${inMarkets(markets)} or first_seq = (select max(first_seq) from change_segment))`;

/** The tables of archives, each after those that it references. */
export const ARCHIVED: readonly ArchivedTable[] = [
  // Services cache API keys by these columns.
  whole('service', 'keys_version', 'keys_change_id'),
  whole('market'),
  // A transaction id is specific to a server.
  whole('revision', 'opened_by'),
  whole('revision_scope'),
  ...withHistory(whole('currency')),
  ...withHistory(whole('unit_of_measure')),
  ...withHistory(whole('dimension_value')),
  ...withHistory(filtered('product', inMarkets)),
  ...withHistory(whole('search_alias')),
  whole('load_batch'),
  ...withHistory(filtered('price', inMarkets)),
  ...withHistory(whole('holiday_list')),
  ...withHistory(whole('calendar')),
  ...withHistory(whole('vat_rate')),
  ...withHistory(filtered('price_calendar', ofPrices)),
  ...withHistory(filtered('series', ofPrices)),
  filtered('change_segment', inMarketsOrLast),
  whole('fx_source'),
  ...withHistory(whole('fx_rate')),
  filtered('load_coverage', (markets) => `(price_id is null or ${ofPrices(markets)})`),
];

/** Tables with rows from migrations, which an import replaces. */
export const MIGRATED_TABLES: readonly string[] = ['service', 'market'];

/** A column of a table, from the system catalog. */
export interface Column {
  readonly name: string;
  /** The name in PostgreSQL: `timestamp with time zone`. */
  readonly type: string;
}

/** A table of archives with its columns in this database. */
export interface Table extends ArchivedTable {
  readonly columns: readonly Column[];
  /** Columns of the primary key, in order. */
  readonly key: readonly string[];
}

interface CatalogRow {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly position: number | null;
}

const COLUMNS = `
  select c.relname as table, a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
    key.position
  from unnest($1::text[]) as wanted (name)
    join pg_class c on c.oid = to_regclass(quote_ident(wanted.name))
    join pg_attribute a on a.attrelid = c.oid
    left join lateral (
      select k.position::integer from pg_index i,
        unnest(i.indkey::int2[]) with ordinality as k (attnum, position)
      where i.indrelid = c.oid and i.indisprimary and k.position <= i.indnkeyatts
        and k.attnum = a.attnum) as key on true
  where a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
  order by a.attnum`;

/** The tables of archives with their columns in this database, in the order of `ARCHIVED`. */
export async function tablesOf(driver: pg.ClientBase): Promise<Table[]> {
  const { rows } = await driver.query<CatalogRow>(COLUMNS, [ARCHIVED.map((each) => each.name)]);
  const byTable = Map.groupBy(rows, (row) => row.table);
  return ARCHIVED.map((table) => {
    const all = byTable.get(table.name);
    if (!all) throw new Error(`the database has no table ${table.name}`);
    const own = all.filter((row) => !table.excludedColumns.includes(row.name));
    const key = own.filter((row) => row.position !== null);
    return {
      ...table,
      columns: own.map(({ name, type }) => ({ name, type })),
      key: key.sort((a, b) => Number(a.position) - Number(b.position)).map((row) => row.name),
    };
  });
}

/**
 * The names of the migrations that ran, in order.
 * @throws ArchiveRefusal if a newer version ran some of them: it may have created other tables
 */
export async function migrationsOf(driver: pg.ClientBase): Promise<string[]> {
  const { rows } = await driver.query<{ name: string }>(`select name from ${MIGRATION_TABLE}`);
  const known = await migrationNames();
  const names = rows.map((row) => row.name).sort();
  const unknown = names.filter((each) => !known.includes(each));
  if (unknown.length === 0) return names;
  throw new ArchiveRefusal(
    `the database belongs to a newer version of the software, which ran ${unknown.join(', ')}`,
  );
}
