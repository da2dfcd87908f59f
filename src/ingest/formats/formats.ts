import type { FileFormat } from '../records/format.ts';

/*
 * A format reads a file of one publisher or kind as a stream of records. It validates the layout of
 * the file, not its values.
 */

/** A kind of file that can be loaded. */
interface Loadable {
  readonly title: string;
  /** Description of the files, for `--help`. */
  readonly accepts: string;
  /** Imports the module of the format. */
  open(): Promise<FileFormat>;
}

/** The only list of loadable formats. The module of a format is imported on first use. */
export const FORMATS = {
  worldbank: {
    title: 'World Bank commodity prices, monthly ("Pink Sheet")',
    accepts: 'the original workbook, CMO-Historical-Data-Monthly.xlsx',
    open: async () => (await import('./worldbank.ts')).worldbank,
  },
  usgs: {
    title: 'U.S. Geological Survey, Mineral Commodity Summaries, annual prices',
    accepts:
      'the original salient tables (mcs2025-nicke_salient.csv …) or a list of prices, as CSV',
    open: async () => (await import('./usgs.ts')).usgs,
  },
  ecb: {
    title: 'European Central Bank, euro foreign exchange reference rates',
    accepts: 'the history or the single day, as CSV, ZIP or XML',
    open: async () => (await import('./ecb.ts')).ecb,
  },
  fed: {
    title: 'Federal Reserve, H.10 foreign exchange rates, daily',
    accepts: 'the table with a row for each day and a column for each country, as CSV',
    open: async () => (await import('./fed.ts')).fed,
  },
  csv: {
    title: 'Prices and their series, one point a row (docs/loading.md)',
    accepts: 'CSV in UTF-8 with a header row',
    open: async () => (await import('./csv.ts')).csv,
  },
  ndjson: {
    title: 'Prices and their series, one JSON object a line (docs/loading.md)',
    accepts: 'NDJSON in UTF-8',
    open: async () => (await import('./ndjson.ts')).ndjson,
  },
  table: {
    title: 'Any delimited or Excel table, as a mapping describes it (docs/mapping.md)',
    accepts: 'delimited text or an Excel workbook (.xlsx), detected by content',
    open: () => {
      throw new Error('a table is read with a mapping');
    },
  },
} as const satisfies Record<string, Loadable>;

export type FormatName = keyof typeof FORMATS;
export const FORMAT_NAMES = Object.keys(FORMATS) as FormatName[];

/** Imports a format. @param map path of the mapping, for tables only */
export async function openFormat(name: FormatName, map?: string): Promise<FileFormat> {
  if (map === undefined) return FORMATS[name].open();
  const { readMapping } = await import('../mapping/mapping.ts');
  const { tableWith } = await import('../mapping/table.ts');
  return tableWith(await readMapping(map));
}
