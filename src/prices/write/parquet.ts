import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { SPANS } from '../../catalog/analytics.ts';
import { dayOf, NO_DAY } from '../../conversion/calendar.ts';
import { type DecimalColumn, isUnconverted, type PointColumns } from '../../conversion/columns.ts';
import {
  PARQUET_DATE,
  PARQUET_INSTANT,
  PARQUET_TEXT,
  type ParquetType,
  parquetDecimal,
  scaledDecimal,
} from '../../std/parquet.ts';
import { turn } from '../../std/turns.ts';
import type { Contents, Terms } from './contents.ts';
import { columnsOf, reasonOf, type Shared, sharedValues } from './rows.ts';

/** Digits of a decimal: 20 before the point and 18 behind it, which 16 bytes hold. */
const PRECISION = 38;
const SCALE = 18;
const DECIMAL_BYTES = 16;

/** Rows of one row group: what the memory holds at once. */
const GROUP_ROWS = 8_192;

const DAYS_TO_2000 = 10_957;
const MICROS_TO_2000 = 946_684_800_000_000n;

const DECIMAL = parquetDecimal(PRECISION, SCALE, DECIMAL_BYTES);
const INTEGER: ParquetType = { type: 'INT32' };

/** Columns that are no text. The factors of a unit may have any digits, so they are text. */
const ELEMENTS: Readonly<Record<string, ParquetType>> = {
  date: PARQUET_DATE,
  low: DECIMAL,
  mid: DECIMAL,
  high: DECIMAL,
  publishedAt: PARQUET_INSTANT,
  corrections: INTEGER,
  isSustainable: { type: 'BOOLEAN' },
  assessmentLaunchedAt: PARQUET_DATE,
  lastAssessedAt: PARQUET_DATE,
  latestPublishedAt: PARQUET_INSTANT,
  periodStart: PARQUET_DATE,
  periodEnd: PARQUET_DATE,
  observations: INTEGER,
  observationsLeftOut: INTEGER,
  fxDate: PARQUET_DATE,
  fxFrom: DECIMAL,
  fxTo: DECIMAL,
  latestDate: PARQUET_DATE,
  latestMid: DECIMAL,
  previousDate: PARQUET_DATE,
  previousMid: DECIMAL,
  ...Object.fromEntries(
    SPANS.flatMap((span) => [
      [`${span}Absolute`, DECIMAL],
      [`${span}Percent`, DECIMAL],
      [`${span}BaseDate`, PARQUET_DATE],
    ]),
  ),
};

const elementOf = (name: string): ParquetType => ELEMENTS[name] ?? PARQUET_TEXT;

const TENS = Array.from({ length: SCALE + 1 }, (_, power) => 10n ** BigInt(power));

const scaledText = (text: string): bigint => scaledDecimal(text, SCALE);

function scaledAt(column: DecimalColumn | undefined, index: number): bigint | null {
  const scaled = column?.scaled[index];
  if (column === undefined || scaled === undefined || Number.isNaN(scaled)) return null;
  const wide = column.wide?.get(index);
  if (scaled === Number.POSITIVE_INFINITY) return wide === undefined ? null : scaledText(wide);
  return BigInt(scaled) * (TENS[SCALE - (column.scale[index] as number)] as bigint);
}

const dayValue = (day: number | undefined): number | null =>
  day === undefined || day === NO_DAY ? null : day + DAYS_TO_2000;

/** The value of a column that all rows of a record share. */
function sharedValue(element: ParquetType, value: Shared): unknown {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'object') {
    return element === DECIMAL ? scaledText(value.decimal) : value.decimal;
  }
  if (element === PARQUET_DATE) return dayOf(value) + DAYS_TO_2000;
  if (element !== PARQUET_INSTANT) return value;
  const [seconds = '', fraction = ''] = value.replace('Z', '').split('.');
  return BigInt(Date.parse(`${seconds}Z`)) * 1_000n + BigInt(fraction.padEnd(6, '0'));
}

type PointValue = (points: PointColumns, index: number) => unknown;

const hasRate = ({ fx }: PointColumns, index: number): boolean =>
  fx !== null && fx.day[index] !== NO_DAY;

/** The values of a point, by column. */
const POINT_VALUES: Readonly<Record<string, PointValue>> = {
  date: ({ day }, index) => dayValue(day[index]),
  low: ({ low }, index) => scaledAt(low, index),
  mid: ({ mid }, index) => scaledAt(mid, index),
  high: ({ high }, index) => scaledAt(high, index),
  publishedAt: ({ publishedAt }, index) => BigInt(publishedAt[index] as number) + MICROS_TO_2000,
  corrections: ({ corrections }, index) => corrections[index],
  periodStart: ({ periods }, index) => dayValue(periods?.start[index]),
  periodEnd: ({ periods }, index) => dayValue(periods?.end[index]),
  observations: ({ periods }, index) => periods?.observations[index] ?? null,
  observationsLeftOut: ({ periods }, index) => periods?.leftOut[index] || null,
  fxDate: ({ fx }, index) => dayValue(fx?.day[index]),
  fxBase: (points, index) => (hasRate(points, index) ? (points.fx?.pair.base ?? null) : null),
  fxFrom: (points, index) => (hasRate(points, index) ? scaledAt(points.fx?.from, index) : null),
  fxTo: (points, index) => (hasRate(points, index) ? scaledAt(points.fx?.to, index) : null),
};

/** The function that gives the value of a column for each point of a record. */
function pointValueOf(
  name: string,
  contents: Contents,
  shared: Readonly<Record<string, Shared>>,
): PointValue {
  const { receipt, points } = contents;
  const hasPoints = points !== null && points.length > 0;
  if (name === 'conversionReason') {
    if (!hasPoints) return () => receipt?.reason ?? null;
    const reason = reasonOf(receipt);
    return (all, index) => (isUnconverted(all, index) ? 'no-rate' : reason);
  }
  const ofPoint = POINT_VALUES[name];
  if (ofPoint !== undefined) return hasPoints ? ofPoint : () => null;
  const value = sharedValue(elementOf(name), shared[name] ?? null);
  return () => value;
}

/** Collects the bytes of the row groups that are made. */
class PieceWriter extends ByteWriter {
  /** The bytes since the last call; those of the caller from then on. */
  take(): Buffer {
    const piece = Buffer.from(this.getBytes());
    this.index = 0;
    return piece;
  }

  override async finish(): Promise<void> {}
}

const ONE_EMPTY_POINT = { length: 1 } as PointColumns;

/**
 * The rows of an answer as one Parquet file, in pieces: a row for each point, or one without
 * values for a price without points. Row groups of 8,192 rows, compressed with Snappy.
 * @param records the contents of all records, in their order
 * @param about what the metadata of the file says, by key
 * @throws RangeError for a number with more than 18 decimals
 */
export async function* parquetSlices(
  terms: Terms,
  records: AsyncIterable<Contents>,
  about: Readonly<Record<string, unknown>>,
): AsyncGenerator<Buffer> {
  const names = columnsOf(terms.plan);
  const bytes = new PieceWriter(1_048_576);
  const writer = new ParquetWriter({
    writer: bytes,
    schema: [
      { name: 'root', num_children: names.length },
      ...names.map((name) => ({ name, ...elementOf(name), repetition_type: 'OPTIONAL' as const })),
    ],
    createdBy: 'commodity-prices',
    kvMetadata: Object.entries(about).map(([key, value]) => ({
      key,
      value: JSON.stringify(value),
    })),
  });
  let data: unknown[][] = names.map(() => []);
  let held = 0;
  const writeGroup = async (): Promise<Buffer> => {
    const columnData = names.map((name, at) => ({
      name,
      data: data[at] ?? [],
      offsetIndex: false,
    }));
    await writer.write({ columnData, rowGroupSize: GROUP_ROWS });
    data = names.map(() => []);
    held = 0;
    return bytes.take();
  };
  for await (const contents of records) {
    const shared = sharedValues(terms, contents);
    const values = names.map((name) => pointValueOf(name, contents, shared));
    const points =
      contents.points === null || contents.points.length === 0 ? ONE_EMPTY_POINT : contents.points;
    for (let index = 0; index < points.length; index += 1) {
      for (const [at, value] of values.entries()) data[at]?.push(value(points, index));
      held += 1;
      if (held < GROUP_ROWS) continue;
      yield await writeGroup();
      await turn();
    }
  }
  if (held > 0) yield await writeGroup();
  await writer.finish();
  yield bytes.take();
}
