/** A table whose rows an archive carries. */
export interface ArchivedTable {
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
