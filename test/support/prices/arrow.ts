import { tableFromIPC } from '@uwdata/flechette';

/*
 * Reads an Arrow IPC stream by flechette, which shares no code with the writer. DuckDB reads the
 * format only by the extension nanoarrow, which it downloads: tests need no network.
 */

/** An Arrow stream as the cells of a CSV, with what its schema says. */
export interface ArrowRead {
  readonly columns: readonly (readonly [string, string])[];
  readonly metadata: Readonly<Record<string, string>>;
  /** Rows of each record batch. */
  readonly batches: readonly number[];
  readonly rows: readonly Readonly<Record<string, string>>[];
}

interface ArrowType {
  readonly typeId: number;
  readonly scale: number;
  readonly precision: number;
  readonly bitWidth: number;
  readonly unit: number;
  readonly timezone: string;
}

const NAMES: Readonly<Record<number, (type: ArrowType) => string>> = {
  2: ({ bitWidth }) => `int${bitWidth}`,
  5: () => 'utf8',
  6: () => 'bool',
  7: ({ precision, scale, bitWidth }) => `decimal${bitWidth}(${precision}, ${scale})`,
  8: ({ unit }) => (unit === 0 ? 'date32' : 'date64'),
  10: ({ unit, timezone }) => `timestamp(${unit}, ${timezone})`,
};

/** An exact decimal without zeros at its end. */
function decimalCell(whole: bigint, scale: number): string {
  const digits = String(whole < 0n ? -whole : whole).padStart(scale + 1, '0');
  const at = digits.length - scale;
  const text = `${digits.slice(0, at)}.${digits.slice(at)}`.replace(/\.?0*$/, '');
  return whole < 0n ? `-${text}` : text;
}

function cellOf(type: ArrowType, value: unknown): string {
  if (value === null || value === undefined) return '';
  if (type.typeId === 7) return decimalCell(value as bigint, type.scale);
  if (type.typeId === 8) return new Date(value as number).toISOString().slice(0, 10);
  if (type.typeId !== 10) return String(value);
  const micros = BigInt(Math.round((value as number) * 1_000));
  const seconds = new Date(Number(micros / 1_000_000n) * 1_000).toISOString().slice(0, 19);
  const fraction = String(micros % 1_000_000n)
    .padStart(6, '0')
    .replace(/0+$/, '');
  return `${seconds}${fraction && `.${fraction}`}Z`;
}

/** Reads an Arrow stream. @throws for bytes that are none */
export function readArrow(bytes: Uint8Array): ArrowRead {
  // A copy, since the values of a view must be aligned.
  const table = tableFromIPC(new Uint8Array(bytes), { useDecimalInt: true, useBigInt: true });
  const { fields, metadata } = table.schema;
  const types = fields.map(({ type }) => type as unknown as ArrowType);
  const columns = fields.map((_, at) => table.getChildAt(at));
  const rows = Array.from({ length: table.numRows }, (_, row) =>
    Object.fromEntries(
      fields.map(({ name }, at) => [name, cellOf(types[at] as ArrowType, columns[at]?.at(row))]),
    ),
  );
  return {
    columns: fields.map(({ name }, at) => {
      const type = types[at] as ArrowType;
      return [name, NAMES[type.typeId]?.(type) ?? String(type.typeId)] as const;
    }),
    metadata: Object.fromEntries(metadata ?? []),
    batches: (columns[0]?.data ?? []).map(({ length }) => length),
    rows,
  };
}
