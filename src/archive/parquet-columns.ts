import type { SchemaElement } from 'hyparquet';
import type { Column, Kind } from './columns.ts';

/** Values and rates have at most 15 digits before the point and 10 behind it. */
const PRECISION = 25;
const SCALE = 10;
/** The fewest bytes that hold 25 digits and a sign. */
const DECIMAL_BYTES = 11;
const DAY_MS = 86_400_000;

type Element = Omit<SchemaElement, 'name' | 'repetition_type'>;

/** How a kind of value is written in Parquet. */
interface Encoding {
  readonly element: Element;
  /** From the text that PostgreSQL wrote (`EXPRESSIONS` of select.ts). */
  encode(text: string): unknown;
  /** From what is in the file, its annotations left aside, to a text that PostgreSQL takes. */
  decode(value: unknown): string;
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

/** The decimal number of a big-endian number of its tenth decimals, without zeros at its end. */
export function unscaled(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
  const number = BigInt.asIntN(8 * bytes.length, BigInt(`0x${hex}`));
  const digits = String(number < 0n ? -number : number).padStart(SCALE + 1, '0');
  const text = `${digits.slice(0, -SCALE)}.${digits.slice(-SCALE)}`.replace(/\.?0+$/, '');
  return number < 0n ? `-${text}` : text;
}

/** A number of days since 1970 as a date. */
const dateOf = (days: number): string => new Date(days * DAY_MS).toISOString().slice(0, 10);

/** A number of microseconds since 1970 as an instant; no Date sees the microseconds. */
function instantOf(micros: bigint): string {
  const ofSecond = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const seconds = new Date(Number((micros - ofSecond) / 1000n)).toISOString().slice(0, 19);
  return `${seconds}.${String(ofSecond).padStart(6, '0')}Z`;
}

const asText: Encoding = {
  element: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  encode: (text) => text,
  decode: (bytes) => Buffer.from(bytes as Uint8Array).toString('utf8'),
};

const ENCODINGS: Readonly<Record<Kind, Encoding>> = {
  integer: {
    element: { type: 'INT32' },
    encode: Number,
    decode: String,
  },
  bigint: {
    element: { type: 'INT64' },
    encode: BigInt,
    decode: String,
  },
  boolean: {
    element: { type: 'BOOLEAN' },
    encode: (text) => text === 't',
    decode: String,
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
    decode: (bytes) => unscaled(bytes as Uint8Array),
  },
  // A factor of a unit may have any digits.
  number: asText,
  date: {
    element: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
    encode: Number,
    decode: (days) => dateOf(days as number),
  },
  instant: {
    element: {
      type: 'INT64',
      converted_type: 'TIMESTAMP_MICROS',
      logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
    },
    encode: BigInt,
    decode: (micros) => instantOf(micros as bigint),
  },
  json: asText,
  bytes: {
    element: { type: 'BYTE_ARRAY' },
    encode: (hex) => new Uint8Array(Buffer.from(hex, 'hex')),
    decode: (bytes) => `\\x${Buffer.from(bytes as Uint8Array).toString('hex')}`,
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
