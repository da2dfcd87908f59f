import { csv } from '../parsing/csv.ts';
import { ndjson } from '../parsing/ndjson.ts';
import { table } from '../table/table.ts';
import { ecb } from './ecb.ts';
import { fed } from './fed.ts';
import type { Format } from './format.ts';
import { usgs } from './usgs.ts';
import { worldbank } from './worldbank.ts';

/** Every kind of file that can be loaded, the only list of them. */
export const FORMATS = { worldbank, usgs, ecb, fed, csv, ndjson, table } as const satisfies Record<
  string,
  Format
>;

export type FormatName = keyof typeof FORMATS;
export const FORMAT_NAMES = Object.keys(FORMATS) as FormatName[];
