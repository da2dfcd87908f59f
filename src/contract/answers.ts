import Type, { type TSchema } from 'typebox';
import type { Market } from '../catalog/markets.ts';
import { ref } from './components.ts';
import { csvColumns } from './csv.ts';
import { FORMATS } from './formats.ts';

/** The CSV of a market; its pattern is the row of column names. */
export const csvSchema = (market: Market, $id: string) =>
  Type.String({ $id, pattern: `^${csvColumns(market).join(',')}\\r\\n` });

/** The NDJSON of a market. */
export const ndjsonSchema = (record: string, $id: string) =>
  Type.String({ $id, description: `In each line one ${record}, as in \`data\` of the JSON` });

/** The answer with prices, in each of its formats. */
export const pricesContent = (schemas: {
  readonly response: TSchema;
  readonly csv: TSchema;
  readonly ndjson: TSchema;
}) => ({
  description: 'The prices',
  content: {
    [FORMATS.json.media]: { schema: ref(schemas.response) },
    [FORMATS.csv.media]: { schema: ref(schemas.csv) },
    [FORMATS.ndjson.media]: { schema: ref(schemas.ndjson) },
  },
});
