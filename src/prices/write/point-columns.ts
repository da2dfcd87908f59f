import { NO_DAY } from '../../conversion/calendar.ts';
import type { DecimalColumn, FxColumns, PointColumns } from '../../conversion/columns.ts';

/** Returns the values of a column in the points of a record; undefined if all are empty. */
type ValuesOf<Values> = (points: PointColumns) => Values | undefined;

/** A column of points, by the kind of its values. */
export type PointColumn =
  /** Days since 2000-01-01; `NO_DAY` is empty. */
  | { readonly kind: 'day'; readonly of: ValuesOf<Int32Array> }
  /** Microseconds since 2000-01-01T00:00Z. */
  | { readonly kind: 'instant'; readonly of: (points: PointColumns) => Float64Array }
  | { readonly kind: 'decimal'; readonly of: ValuesOf<DecimalColumn> }
  /** With `isZeroEmpty`, 0 is empty. */
  | { readonly kind: 'integer'; readonly of: ValuesOf<Int32Array>; readonly isZeroEmpty?: true }
  | { readonly kind: 'text'; readonly of: ValuesOf<TextValues> };

/** The text of a point; null is empty. */
type TextValues = (index: number) => string | null;

/** The rates of days; undefined without rates, and where means convert. */
const dayRates = ({ fx }: PointColumns): FxColumns | undefined =>
  fx === null || fx.means !== null ? undefined : fx;

/**
 * The columns whose values differ between the points of a record, by name. The rows of CSV and
 * JSON, Parquet and Arrow derive from it. The nested JSON of `json.ts` lists the same members
 * itself, because it is the fastest writer. `conversionReason` depends on the receipt as well.
 */
export const POINT_COLUMNS: Readonly<Record<string, PointColumn>> = {
  date: { kind: 'day', of: ({ day }) => day },
  low: { kind: 'decimal', of: ({ low }) => low },
  mid: { kind: 'decimal', of: ({ mid }) => mid },
  high: { kind: 'decimal', of: ({ high }) => high },
  publishedAt: { kind: 'instant', of: ({ publishedAt }) => publishedAt },
  corrections: { kind: 'integer', of: ({ corrections }) => corrections },
  periodStart: { kind: 'day', of: ({ periods }) => periods?.start },
  periodEnd: { kind: 'day', of: ({ periods }) => periods?.end },
  observations: { kind: 'integer', of: ({ periods }) => periods?.observations },
  observationsLeftOut: {
    kind: 'integer',
    of: ({ periods }) => periods?.leftOut,
    isZeroEmpty: true,
  },
  movingAverage: { kind: 'decimal', of: ({ movingAverage }) => movingAverage },
  fxDate: { kind: 'day', of: (points) => dayRates(points)?.day },
  fxBase: {
    kind: 'text',
    of: (points) => {
      const fx = dayRates(points);
      if (fx === undefined) return undefined;
      return (index) => (fx.day[index] === NO_DAY ? null : fx.pair.base);
    },
  },
  fxFrom: { kind: 'decimal', of: (points) => dayRates(points)?.from },
  fxTo: { kind: 'decimal', of: (points) => dayRates(points)?.to },
  fxMeanRate: { kind: 'decimal', of: ({ fx }) => fx?.means?.rate },
  fxMeanFirstDate: { kind: 'day', of: ({ fx }) => fx?.means?.first },
  fxMeanLastDate: { kind: 'day', of: ({ fx }) => (fx?.means ? fx.day : undefined) },
  vatRate: { kind: 'decimal', of: ({ vat }) => vat ?? undefined },
  fxMeanDays: { kind: 'integer', of: ({ fx }) => fx?.means?.days, isZeroEmpty: true },
};
