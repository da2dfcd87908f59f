import { SPANS } from '../../catalog/analytics.ts';
import { NO_DAY } from '../../conversion/calendar.ts';
import {
  type DecimalColumn,
  isUnconverted,
  lackingAt,
  type PointColumns,
  VALUE_NAMES,
  type ValueName,
} from '../../conversion/columns.ts';
import { Problem } from '../../errors.ts';
import { dayOf } from '../../std/days.ts';
import { Slice } from '../../std/turns.ts';
import type { RenderContext } from '../answer/answer.ts';
import { firstComputing, isComputed } from '../plan/options.ts';
import type { Plan } from '../plan/plan.ts';
import { Int128, PRECISION } from './int128.ts';
import { POINT_COLUMNS, type PointColumn } from './point-columns.ts';
import type { Contents } from './points.ts';
import { columnsOf, reasonOf, type SharedValue, sharedValues } from './rows.ts';

/*
 * The rows of a response as typed columns, for Parquet and Arrow. A column of a record is one value
 * shared by all of its rows, or one value for each point.
 */

/** Writes a table in pieces, with some metadata by key. */
export type TableSlices = (
  context: RenderContext,
  records: AsyncIterable<Contents>,
  about: Readonly<Record<string, unknown>>,
) => AsyncGenerator<Buffer>;

/** The type of the values of a column. */
export type TableColumnKind = 'text' | 'decimal' | 'day' | 'instant' | 'integer' | 'boolean';

/** Decimals of stored prices and rates: none has more (docs/formats.md). */
const STORED_SCALE = 10;

/** Decimals of computed numbers. Numbers with more are rejected, see `checkTable`. */
const COMPUTED_SCALE = 18;

/** The kinds of record columns that are not text. The factors of a unit may have any digits. */
const KINDS: Readonly<Record<string, TableColumnKind>> = {
  isSustainable: 'boolean',
  assessmentLaunchedAt: 'day',
  lastAssessedAt: 'day',
  latestPublishedAt: 'instant',
  nextExpectedAt: 'instant',
  referenceValidFrom: 'day',
  latestDate: 'day',
  latestMid: 'decimal',
  previousDate: 'day',
  previousMid: 'decimal',
  ...Object.fromEntries(
    SPANS.flatMap((span) => [
      [`${span}Absolute`, 'decimal'],
      [`${span}Percent`, 'decimal'],
      [`${span}BaseDate`, 'day'],
    ]),
  ),
};

/** A column of a table. */
export interface TableColumn {
  readonly name: string;
  readonly kind: TableColumnKind;
  /** Digits behind the point of a decimal; 0 for any other kind. */
  readonly scale: number;
}

/** The requested columns of a plan, in their order. */
export const tableColumns = (plan: Plan): readonly TableColumn[] =>
  columnsOf(plan).map((name) => {
    const kind = POINT_COLUMNS[name]?.kind ?? KINDS[name] ?? 'text';
    return { name, kind, scale: kind === 'decimal' ? scaleOf(plan, name) : 0 };
  });

/** True if a column holds numbers of points, which an option may compute. */
const isValue = (name: string): name is ValueName | 'movingAverage' =>
  name === 'movingAverage' || (VALUE_NAMES as readonly string[]).includes(name);

/** True if a column holds rates as published. */
const isRate = (name: string): boolean => name.startsWith('fx') || name === 'vatRate';

function scaleOf(plan: Plan, name: string): number {
  if (isValue(name)) return isComputed(plan.options) ? COMPUTED_SCALE : STORED_SCALE;
  return isRate(name) ? STORED_SCALE : COMPUTED_SCALE;
}

/** Consecutive rows of one record. */
export interface Run {
  readonly contents: Contents;
  readonly shared: Readonly<Record<string, SharedValue>>;
  /** Null for the one row of a record without points. */
  readonly points: PointColumns | null;
  /** Range of point indexes, the end exclusive; 0 and 1 without points. */
  readonly from: number;
  readonly to: number;
}

/**
 * The values of a column in a run: one for all rows, or a function of the point index. NaN is a
 * missing number.
 */
type RunValues =
  | { readonly of: 'record'; readonly value: SharedValue }
  | { readonly of: 'number'; readonly at: (index: number) => number }
  | { readonly of: 'decimal'; readonly column: DecimalColumn }
  | { readonly of: 'text'; readonly at: (index: number) => string | null };

const NONE: RunValues = { of: 'record', value: null };

const DAYS_TO_2000 = 10_957;
const MICROS_TO_2000 = 946_684_800_000_000;

const numbers = (at: (index: number) => number): RunValues => ({ of: 'number', at });

/** The values of a column in the points of a record. Days and instants count from 1970. */
function valuesOf(column: PointColumn, points: PointColumns): RunValues {
  switch (column.kind) {
    case 'day': {
      const days = column.of(points);
      if (days === undefined) return NONE;
      return numbers((index) => {
        const day = days[index] as number;
        return day === NO_DAY ? Number.NaN : day + DAYS_TO_2000;
      });
    }
    case 'instant': {
      const instants = column.of(points);
      return numbers((index) => (instants[index] as number) + MICROS_TO_2000);
    }
    case 'decimal': {
      const decimals = column.of(points);
      return decimals === undefined ? NONE : { of: 'decimal', column: decimals };
    }
    case 'integer': {
      const { isZeroEmpty = false } = column;
      const integers = column.of(points);
      if (integers === undefined) return NONE;
      return numbers((index) => {
        const value = integers[index] as number;
        return value === 0 && isZeroEmpty ? Number.NaN : value;
      });
    }
    case 'text': {
      const at = column.of(points);
      return at === undefined ? NONE : { of: 'text', at };
    }
  }
}

/** The values of a column in a run. */
export function valuesIn({ contents, shared, points }: Run, { name }: TableColumn): RunValues {
  const { receipt } = contents;
  if (name === 'conversionReason') {
    if (points === null || receipt === null) {
      return { of: 'record', value: receipt?.reason ?? null };
    }
    const reason = reasonOf(receipt);
    return {
      of: 'text',
      at: (index) => (isUnconverted(points, index) ? lackingAt(points, index) : reason),
    };
  }
  const column = POINT_COLUMNS[name];
  if (column !== undefined) return points === null ? NONE : valuesOf(column, points);
  return { of: 'record', value: shared[name] ?? null };
}

/** A day or an instant of a record in days or microseconds since 1970; NaN for none. */
export function timeOf(value: SharedValue, kind: TableColumnKind): number {
  if (typeof value !== 'string') return Number.NaN;
  if (kind === 'day') return dayOf(value) + DAYS_TO_2000;
  const [seconds = '', fraction = ''] = value.replace('Z', '').split('.');
  return Date.parse(`${seconds}Z`) * 1_000 + Number(fraction.padEnd(6, '0'));
}

/** Most records of a batch, which holds a few KB of each while a slow client reads. */
const BATCH_RECORDS = 1_024;

/**
 * The rows of a response in batches. A record longer than a batch is divided. Waits for a turn of
 * the event loop between records when one is due. The caller may empty a batch once it is encoded.
 * @param costMax maximum cost of a batch
 * @param costOf the cost of each row of a record, at least 1
 * @param firstCostMax maximum cost of the first batch; each next one may cost twice as much
 */
export async function* batchesOf(
  context: RenderContext,
  records: AsyncIterable<Contents>,
  costMax: number,
  costOf: (shared: Run['shared']) => number,
  firstCostMax: number = costMax,
): AsyncGenerator<Run[]> {
  let batch: Run[] = [];
  let batchCostMax = firstCostMax;
  let left = batchCostMax;
  const slice = new Slice();
  for await (const contents of records) {
    await slice.yieldIfOver();
    const shared = sharedValues(context, contents);
    const cost = costOf(shared);
    const points = contents.points?.length ? contents.points : null;
    const rows = points?.length ?? 1;
    for (let from = 0; from < rows; ) {
      const to = Math.min(rows, from + Math.max(1, Math.floor(left / cost)));
      batch.push({ contents, shared, points, from, to });
      left -= (to - from) * cost;
      from = to;
      if (left >= cost && batch.length < BATCH_RECORDS) continue;
      yield batch;
      slice.restart();
      batch = [];
      batchCostMax = Math.min(costMax, 2 * batchCostMax);
      left = batchCostMax;
    }
  }
  if (batch.length > 0) yield batch;
}

/** The number of rows of a batch. */
export const rowsIn = (batch: readonly Run[]): number =>
  batch.reduce((sum, { from, to }) => sum + to - from, 0);

/** The option that causes the digits that do not fit. */
function placeOf({ options }: Plan, name: string): string {
  if (!isValue(name)) return 'includeSummary';
  return options.decimals === null ? 'decimals' : (firstComputing(options) ?? 'decimals');
}

function beyond(plan: Plan, { name, scale }: TableColumn, code: string): Problem {
  const place = placeOf(plan, name);
  const limits = `${scale} decimals and ${PRECISION - scale} digits before them`;
  const instead =
    place === 'decimals' ? 'set decimals, or request text/csv' : 'request text/csv instead';
  const detail = `${name} of ${code} has a number beyond ${limits}; ${instead}`;
  return new Problem('validation_failed', 'A number does not fit its column; errors says which', {
    errors: [{ pointer: `/options/${place}`, code: 'out_of_range', detail }],
  });
}

/** True if each number of a column fits a scale. */
function isFitting(column: DecimalColumn, scale: number, number: Int128): boolean {
  for (let index = 0; index < column.scaled.length; index += 1) {
    const scaled = column.scaled[index] as number;
    // A safe integer with as many decimals or fewer has no more than 34 digits.
    if (Number.isNaN(scaled)) continue;
    if (Number.isFinite(scaled) && (column.scale[index] as number) <= scale) continue;
    if (!number.setPoint(column, index, scale)) return false;
  }
  return true;
}

/**
 * Checks that all numbers of a response fit their columns, before its first byte. Stored prices
 * always fit and are not read. A conversion or a change in percent may have more digits.
 * @throws Problem `validation_failed`
 */
export async function checkTable(
  context: RenderContext,
  records: AsyncIterable<Contents>,
): Promise<void> {
  const { plan } = context;
  const { options } = plan;
  const columns = tableColumns(plan).filter(({ name, kind }) => {
    if (kind !== 'decimal' || isRate(name)) return false;
    return isValue(name) ? isComputed(plan.options) : options.includeSummary;
  });
  if (columns.length === 0) return;
  const number = new Int128();
  const slice = new Slice();
  for await (const contents of records) {
    const shared = options.includeSummary ? sharedValues(context, contents) : {};
    for (const column of columns) {
      const { name, scale } = column;
      const points = isValue(name) ? contents.points?.[name] : undefined;
      const value = shared[name];
      const fits =
        points !== undefined
          ? isFitting(points, scale, number)
          : typeof value !== 'object' || !value || number.setDecimal(value.decimal, scale);
      if (!fits) throw beyond(plan, column, contents.price.code);
    }
    await slice.yieldIfOver();
  }
}
