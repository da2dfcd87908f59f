import { sql } from 'kysely';
import { columnName } from '../../catalog/dimensions.ts';
import { matchKey } from '../../catalog/match-key.ts';
import type { LoadProblem } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import type { PriceRecord } from '../records/source-record.ts';
import { specificationOf } from '../records/texts.ts';
import { type DescribedColumns, type Descriptions, describedColumns } from './descriptions.ts';
import { type NewName, newNames, writeNewNames } from './new-names.ts';
import {
  KIND_OF,
  type Reference,
  type ReferenceRow,
  readReference,
  type Trx,
} from './reference.ts';

/** What never changes of a price: column → field. */
const IDENTITY: Readonly<Record<string, string>> = {
  market_id: 'market',
  price_type: 'priceType',
  currency_id: 'currency',
  unit_id: 'unitOfMeasure',
};
/** What a description may change of a price: column → field. */
export const CHANGEABLE: Readonly<Record<string, string>> = {
  name: 'name',
  short_name: 'shortName',
  product_id: 'product',
  specification: 'specification',
  assessment_launched_at: 'assessmentLaunchedAt',
  ...Object.fromEntries([...KIND_OF.keys()].map((field) => [columnName(field), field])),
};
export const CHANGEABLE_COLUMNS: readonly string[] = Object.keys(CHANGEABLE);
const COLUMNS = [
  'code',
  'code_key',
  'market_id',
  'price_type',
  'currency_id',
  'unit_id',
  'unit_dimension',
  ...CHANGEABLE_COLUMNS,
];

/** DescribedColumns as a statement lists them, of a table where one is named. */
export const listOf = (columns: readonly string[], table: string | null = null) =>
  sql.join(columns.map((column) => sql.ref(table === null ? column : `${table}.${column}`)));

/** A row of `price`, with the slug of its market. */
type CurrentPrice = Readonly<Record<string, unknown>> & { readonly market: string };

/** The prices that records describe, as far as they exist, by the key of their code. */
async function currentPrices(
  trx: Trx,
  records: Iterable<PriceRecord>,
): Promise<Map<string, CurrentPrice>> {
  const keys = [...records].map((each) => matchKey(each.code));
  const { rows } = await sql<CurrentPrice & { code_key: string }>`
    select price.*, market.slug as market from price join market on market.id = price.market_id
    where code_key = any(${keys}::text[])`.execute(trx);
  return new Map(rows.map((row) => [row.code_key, row]));
}

/** An attribute of a price that changes; references by their names. */
export interface PriceChange {
  readonly code: string;
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** What a load does to prices and to what they refer to. */
export interface PriceChanges {
  readonly newNames: readonly NewName[];
  readonly created: readonly PriceRecord[];
  readonly changed: readonly PriceRecord[];
  readonly changes: readonly PriceChange[];
  /** Descriptions that cannot be taken: the last problem of each, by the number of the price. */
  readonly failed: ReadonlyMap<number, LoadProblem>;
}

/** A file that describes no price. */
export const NO_PRICE_CHANGES: PriceChanges = {
  newNames: [],
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
  const rows: ReadonlyMap<string, ReferenceRow> | undefined =
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
  columns: DescribedColumns,
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
export async function classifyPrices(
  trx: Trx,
  descriptions: Descriptions,
  isPermitted: boolean,
  problems: Problems,
): Promise<PriceChanges> {
  if (descriptions.count === 0) return NO_PRICE_CHANGES;
  const created: PriceRecord[] = [];
  const changed: PriceRecord[] = [];
  const changes: PriceChange[] = [];
  const failed = new Map<number, LoadProblem>();
  const reference = await readReference(trx);
  const rows = newNames(descriptions.others, reference, problems);
  const current = await currentPrices(trx, descriptions.prices.values());
  const comparison = { reference, isPermitted, problems };
  for (const [number, record] of descriptions.prices) {
    const known = current.get(matchKey(record.code)) ?? null;
    if (known && record.whenPresent === 'keep') continue;
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
  return { newNames: rows, created, changed, changes, failed };
}

/** The columns of planned prices, now that everything they refer to has an id. */
function rowsOf(
  records: readonly PriceRecord[],
  current: ReadonlyMap<string, CurrentPrice>,
  reference: Reference,
  problems: Problems,
): string {
  const rows = records.map((record) => {
    const key = matchKey(record.code);
    const known = current.get(key) ?? null;
    const columns = describedColumns(record, known, reference, problems);
    const stated = columns?.['specification'];
    return {
      ...known,
      ...columns,
      code: known?.['code'] ?? record.code,
      code_key: key,
      specification: typeof stated === 'string' ? JSON.parse(stated) : known?.['specification'],
    };
  });
  return JSON.stringify(rows);
}

/** Writes the plan; a revision must be open. */
export async function writePrices(trx: Trx, plan: PriceChanges, problems: Problems): Promise<void> {
  if (plan.newNames.length + plan.created.length + plan.changed.length === 0) return;
  await writeNewNames(trx, plan.newNames);
  const reference = await readReference(trx);
  const current = await currentPrices(trx, plan.changed);
  if (plan.created.length > 0) {
    const rows = rowsOf(plan.created, current, reference, problems);
    await sql`
      insert into price (${listOf(COLUMNS)})
      select ${listOf(COLUMNS, 'described')}
      from jsonb_populate_recordset(null::price, ${rows}::jsonb) as described`.execute(trx);
  }
  if (plan.changed.length > 0) {
    const rows = rowsOf(plan.changed, current, reference, problems);
    await sql`
      update price set (${listOf(CHANGEABLE_COLUMNS)})
        = row(${listOf(CHANGEABLE_COLUMNS, 'described')})
      from jsonb_populate_recordset(null::price, ${rows}::jsonb) as described
      where price.code_key = described.code_key`.execute(trx);
  }
}
