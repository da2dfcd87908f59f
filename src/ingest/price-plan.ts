import { matchKey } from '../catalog/match-key.ts';
import { type Columns, describedColumns } from './describe.ts';
import type { Descriptions } from './descriptions.ts';
import { type NewRow, newRows } from './formats/declared.ts';
import { specificationOf } from './parsing/texts.ts';
import { CHANGEABLE, type CurrentPrice, currentPrices, IDENTITY } from './prices.ts';
import type { PriceRecord } from './records.ts';
import { KIND_OF, type Named, type Reference, readReference, type Trx } from './reference.ts';
import type { LoadProblem, Problems } from './rejects/problems.ts';

/** An attribute of a price that changes; references by their names. */
export interface PriceChange {
  readonly code: string;
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** What a load does to prices and to what they refer to. */
export interface PricePlan {
  readonly newRows: readonly NewRow[];
  readonly created: readonly PriceRecord[];
  readonly changed: readonly PriceRecord[];
  readonly changes: readonly PriceChange[];
  /** Descriptions that cannot be taken: the last problem of each, by the number of the price. */
  readonly failed: ReadonlyMap<number, LoadProblem>;
}

/** A file that describes no price. */
export const NO_PRICES: PricePlan = {
  newRows: [],
  created: [],
  changed: [],
  changes: [],
  failed: new Map(),
};

/** What descriptions are compared with. */
interface Comparison {
  readonly reference: Reference;
  readonly isPermitted: boolean;
  readonly problems: Problems;
}

/** A stored value in the notation of a description. */
const currentOf = (current: CurrentPrice, column: string): string | number | null =>
  column === 'specification'
    ? specificationOf(JSON.stringify(current[column]))
    : ((current[column] as string | number | null | undefined) ?? null);

/** A value of a column as a person reads it: what it refers to by name. */
function textOf(
  field: string,
  value: string | number | null,
  current: CurrentPrice,
  { products, values }: Reference,
): string | null {
  if (typeof value !== 'number') return value;
  const kind = KIND_OF.get(field);
  const rows: ReadonlyMap<string, Named> | undefined =
    kind === undefined ? products.get(current['market_id'] as number) : values.get(kind);
  return [...(rows?.values() ?? [])].find(({ id }) => id === value)?.name ?? String(value);
}

/** Whether a description may change an attribute; the problem is noted when it may not. */
function isAllowed(
  record: PriceRecord,
  column: string,
  { isPermitted, problems }: Comparison,
): boolean {
  const field = IDENTITY[column] ?? CHANGEABLE[column] ?? column;
  const { file, line } = record;
  const place = { file, line, column: field, value: record.attributes[field] ?? null };
  if (IDENTITY[column]) {
    const message = `The ${field} of ${record.code} never changes: publish a price of its own`;
    problems.add('immutable', message, place);
    return false;
  }
  if (isPermitted) return true;
  const change = `The ${field} of ${record.code} would change`;
  const message = `${change}; to change it load the file with --allow-corrections and --reason`;
  problems.add('correction_not_allowed', message, place);
  return false;
}

/** The attributes that a description changes; null when one may not change. */
function changesOf(
  record: PriceRecord,
  columns: Columns,
  current: CurrentPrice,
  comparison: Comparison,
): PriceChange[] | null {
  const { code } = record;
  const changes: PriceChange[] = [];
  let isFine = true;
  for (const [column, value] of Object.entries(columns)) {
    const before = currentOf(current, column);
    const field = IDENTITY[column] ?? CHANGEABLE[column];
    if (value === before || field === undefined) continue;
    if (!isAllowed(record, column, comparison)) isFine = false;
    changes.push({
      code,
      field,
      before: textOf(field, before, current, comparison.reference),
      // A name that the file itself adds has no id yet.
      after:
        value === 0
          ? (record.attributes[field] ?? null)
          : textOf(field, value, current, comparison.reference),
    });
  }
  return isFine ? changes : null;
}

/**
 * Compares the descriptions of a file with the database: what is new, what changes. Problems are
 * noted, nothing is written.
 */
export async function planPrices(
  trx: Trx,
  descriptions: Descriptions,
  isPermitted: boolean,
  problems: Problems,
): Promise<PricePlan> {
  if (descriptions.count === 0) return NO_PRICES;
  const created: PriceRecord[] = [];
  const changed: PriceRecord[] = [];
  const changes: PriceChange[] = [];
  const failed = new Map<number, LoadProblem>();
  const reference = await readReference(trx);
  const rows = newRows(descriptions.others, reference, problems);
  const current = await currentPrices(trx, descriptions.prices.values());
  const comparison = { reference, isPermitted, problems };
  for (const [number, record] of descriptions.prices) {
    const known = current.get(matchKey(record.code)) ?? null;
    if (known && record.whenPresent === 'keep') continue;
    problems.record = record;
    const columns = describedColumns(record, known, reference, problems);
    const changing = columns && known ? changesOf(record, columns, known, comparison) : [];
    if (!columns || !changing) {
      if (problems.latest) failed.set(number, problems.latest);
    } else if (!known) created.push(record);
    else if (changing.length > 0) {
      changed.push(record);
      changes.push(...changing);
    }
  }
  problems.record = null;
  return { newRows: rows, created, changed, changes, failed };
}
