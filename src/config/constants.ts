/**
 * Limits of the contract, which the OpenAPI document states, and guards that no operator needs to
 * change. The configuration has them beside the settings, so that tests can replace them.
 */
export const CONSTANTS = {
  /** Deepest nesting of a request body. */
  JSON_DEPTH_MAX: 8,
  URL_BYTES_MAX: 8_192,
  /** Most items in the filter `codes`. */
  CODES_MAX: 500,
  /** Most items in any other filter list. */
  LIST_ITEMS_MAX: 200,
  /** Longest item of a filter list, in characters. */
  ITEM_LENGTH_MAX: 128,
  /** Most records that `options.limit` may ask for. */
  RECORDS_MAX: 10_000,
  /** Most cells, dates times prices, of an answer with `layout=wide`, which is built in memory. */
  WIDE_CELLS_MAX: 2_000_000,
  /** Rows of a sheet of a workbook, with its row of names: the limit of Excel. */
  SHEET_ROWS_MAX: 1_048_576,
  /** Changes on a page of the feed without `limit`. */
  CHANGES_LIMIT: 1_000,
  CHANGES_LIMIT_MAX: 5_000,
  /** A longer wait would exceed the usual timeouts of proxies, 30 s. */
  CHANGES_WAIT_MAX_SECONDS: 25,

  /** Longest wait of `asOf` for a standby that is behind. */
  AS_OF_WAIT_MS: 1_000,
  AS_OF_WAITING_MAX: 16,
  /** Requests of open addresses, such as /docs, that begin in a second, for all clients. */
  OPEN_PER_SECOND: 25,
  OPEN_WAITING_MAX: 128,
  /** Bounds the memory of an answer that is read from the database. */
  SERIES_PRICES_PER_STATEMENT: 20,
  /** Tolerance for clocks of token issuers. */
  JWT_LEEWAY_SECONDS: 30,
} as const;
