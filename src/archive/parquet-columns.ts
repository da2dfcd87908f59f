import type { SchemaElement } from 'hyparquet';
import type { Column, Kind } from './columns.ts';

/** Values and rates have at most 15 digits before the point and 10 behind it. */
const PRECISION = 25;
const SCALE = 10;
/** The fewest bytes that hold 25 digits and a sign. */
const DECIMAL_BYTES = 11;

type Element = Omit<SchemaElement, 'name' | 'repetition_type'>;

/** How a kind of value is written in Parquet. */
interface Encoding {
  readonly element: Element;
  /** From the text that PostgreSQL wrote (`EXPRESSIONS` of select.ts). */
  encode(text: string): unknown;
}

/**
 * A decimal number as a whole number of its tenth decimals.
 * @throws RangeError for one with more than 10 decimals
 */
export function scaled(text: string): bigint {
  const [whole = '', decimals = ''] = text.split('.');
  if (decimals.length > SCALE) throw new RangeError(`more than ${SCALE} decimals: ${text}`);
  return BigInt(whole + decimals.padEnd(SCALE, '0'));
}

const asText: Encoding = {
  element: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  encode: (text) => text,
};

const ENCODINGS: Readonly<Record<Kind, Encoding>> = {
  integer: {
    element: { type: 'INT32' },
    encode: Number,
  },
  bigint: {
    element: { type: 'INT64' },
    encode: BigInt,
  },
  boolean: {
    element: { type: 'BOOLEAN' },
    encode: (text) => text === 't',
  },
  decimal: {
    element: {
      type: 'FIXED_LEN_BYTE_ARRAY',
      type_length: DECIMAL_BYTES,
      converted_type: 'DECIMAL',
      logical_type: { type: 'DECIMAL', precision: PRECISION, scale: SCALE },
      precision: PRECISION,
      scale: SCALE,
    },
    encode: scaled,
  },
  // A factor of a unit may have any digits.
  number: asText,
  date: {
    element: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
    encode: Number,
  },
  instant: {
    element: {
      type: 'INT64',
      converted_type: 'TIMESTAMP_MICROS',
      logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
    },
    encode: BigInt,
  },
  json: asText,
  bytes: {
    element: { type: 'BYTE_ARRAY' },
    encode: (hex) => new Uint8Array(Buffer.from(hex, 'hex')),
  },
  text: asText,
};

/** How the values of a column are written. */
export const encodingOf = ({ kind }: Pick<Column, 'kind'>): Encoding => ENCODINGS[kind];

/** The schema of the file of a table. */
export const schemaOf = (columns: readonly Column[]): SchemaElement[] => [
  { name: 'root', num_children: columns.length },
  ...columns.map(({ name, kind, isRequired }) => ({
    name,
    ...ENCODINGS[kind].element,
    repetition_type: isRequired ? ('REQUIRED' as const) : ('OPTIONAL' as const),
  })),
];
