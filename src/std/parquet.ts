import type { SchemaElement } from 'hyparquet';

/** The type of a column, without its name. */
export type ParquetType = Omit<SchemaElement, 'name' | 'repetition_type'>;

export const PARQUET_DATE: ParquetType = {
  type: 'INT32',
  converted_type: 'DATE',
  logical_type: { type: 'DATE' },
};
export const PARQUET_INSTANT: ParquetType = {
  type: 'INT64',
  converted_type: 'TIMESTAMP_MICROS',
  logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
};
export const PARQUET_TEXT: ParquetType = {
  type: 'BYTE_ARRAY',
  converted_type: 'UTF8',
  logical_type: { type: 'STRING' },
};

/**
 * The type of exact decimals.
 * @param precision digits of a number
 * @param scale digits after the decimal point
 * @param bytes the fewest bytes that hold the digits and a sign
 */
export const parquetDecimal = (precision: number, scale: number, bytes: number): ParquetType => ({
  type: 'FIXED_LEN_BYTE_ARRAY',
  type_length: bytes,
  converted_type: 'DECIMAL',
  logical_type: { type: 'DECIMAL', precision, scale },
  precision,
  scale,
});

/**
 * A decimal number times 10^scale.
 * @throws RangeError for more decimals than the scale
 */
export function scaledDecimal(text: string, scale: number): bigint {
  const [whole = '', decimals = ''] = text.split('.');
  if (decimals.length > scale) throw new RangeError(`more than ${scale} decimals: ${text}`);
  return BigInt(whole + decimals.padEnd(scale, '0'));
}
