import { sql } from 'kysely';
import { columnName } from '../../catalog/dimensions.ts';
import { matchKey } from '../../catalog/match-key.ts';
import type { PayableReference } from '../../catalog/payable-reference.ts';
import type { LoadProblem } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import type { PriceRecord } from '../records/source-record.ts';
import { specificationOf } from '../records/texts.ts';
import { type DescribedColumns, type Descriptions, describedColumns } from './descriptions.ts';
import {
  KIND_OF,
  type ReferenceData,
  type ReferenceRow,
  readReference,
  type Trx,
} from './known-names.ts';
import { type NewName, newNames, writeNewNames } from './new-names.ts';
import { addReferenced, referencedPrices, referencesText } from './references.ts';

/*
 * The descriptions of prices in a file: collected while it is read (`descriptions.ts`),
 * then compared with stored prices and names (`known-names.ts`), and written with the new names
 * (`new-names.ts`).
 */

/** Immutable columns of a price: column → field. */
const IDENTITY: Readonly<Record<string, string>> = {
  market_id: 'market',
  price_type: 'priceType',
  currency_id: 'currency',
  unit_id: 'unitOfMeasure',
};
/** Columns of a price that a description may change: column → field. */
export const CHANGEABLE: Readonly<Record<string, string>> = {
  name: 'name',
  short_name: 'shortName',
  product_id: 'product',
  specification: 'specification',
  assessment_launched_at: 'assessmentLaunchedAt',
  observes: 'observes',
  vat_country: 'vatCountry',
  payable_reference: 'reference',
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

/** Formats a column list for a statement, qualified with a table if one is given. */
export const listOf = (columns: readonly string[], table: string | null = null) =>
  sql.join(columns.map((column) => sql.ref(table === null ? column : `${table}.${column}`)));

/** A row of `price`, with the slug of its market. */
type CurrentPrice = Readonly<Record<string, unknown>> & {
  readonly market: string;
  readonly price_type: 'price' | 'payable';
  readonly payable_reference: readonly PayableReference[] | null;
};

/** Reads the existing prices among those described, by code key. */
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

/** One changed attribute of a price; references are given by name. */
export interface PriceChange {
  readonly code: string;
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** The changes that a load makes to prices and to the names that they refer to. */
export interface PriceChanges {
  readonly newNames: readonly NewName[];
  readonly created: readonly PriceRecord[];
  readonly changed: readonly PriceRecord[];
  readonly changes: readonly PriceChange[];
  /** Rejected descriptions: the last problem of each, by series number. */
  readonly failed: ReadonlyMap<number, LoadProblem>;
}

/** The changes of a file that describes no price. */
export const NO_PRICE_CHANGES: PriceChanges = {
  newNames: [],
  created: [],
  changed: [],
  changes: [],
  failed: new Map(),
};

/** Reference data and rules for the comparison of descriptions. */
interface Comparison {
  readonly reference: ReferenceData;
  readonly isPermitted: boolean;
  readonly problems: Problems;
}

/** A stored value in the notation of a description. */
function currentOf(current: CurrentPrice, column: string): string | number | null {
  if (column === 'specification') return specificationOf(JSON.stringify(current[column]));
  if (column === 'payable_reference') return referencesText(current.payable_reference);
  // A price of which nobody stated it has values of a day.
  const missing = column === 'observes' ? 'day' : null;
  return (current[column] as string | number | null | undefined) ?? missing;
}

/** The attributes that prices of an earlier version lack: column → field. */
const LATER = { observes: 'observes', payable_reference: 'reference' } as const;

/**
 * The part of a shipped description that completes an existing price. A price that was loaded
 * before an attribute existed lacks it; everything else may have been edited since. Null if nothing
 * is lacking.
 */
function completionOf(record: PriceRecord, known: CurrentPrice): PriceRecord | null {
  const lacking = Object.entries(LATER).flatMap(([column, field]) => {
    const stated = record.attributes[field];
    return typeof stated === 'string' && known[column] === null ? [[field, stated] as const] : [];
  });
  return lacking.length === 0 ? null : { ...record, attributes: Object.fromEntries(lacking) };
}

/** A column value as readable text; references are given by name. */
function textOf(
  field: string,
  value: string | number | null,
  current: CurrentPrice,
  { products, values }: ReferenceData,
): string | null {
  if (typeof value !== 'number') return value;
  const kind = KIND_OF.get(field);
  const rows: ReadonlyMap<string, ReferenceRow> | undefined =
    kind === undefined ? products.get(current['market_id'] as number) : values.get(kind);
  return [...(rows?.values() ?? [])].find(({ id }) => id === value)?.name ?? String(value);
}

/** True if a description may change an attribute; reports a problem if not. */
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

/** The attributes that a description changes; null if one may not change. */
function changesOf(
  record: PriceRecord,
  columns: DescribedColumns,
  current: CurrentPrice,
  comparison: Comparison,
): PriceChange[] | null {
  const { code } = record;
  const changes: PriceChange[] = [];
  let areAllowed = true;
  for (const [column, value] of Object.entries(columns)) {
    const before = currentOf(current, column);
    const field = IDENTITY[column] ?? CHANGEABLE[column];
    if (value === before || field === undefined) continue;
    if (!isAllowed(record, column, comparison)) areAllowed = false;
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
  return areAllowed ? changes : null;
}

/** Descriptions with references come after those of the prices that they may name. */
const inOrder = (prices: Descriptions['prices']) => {
  const refers = ({ attributes }: PriceRecord): number =>
    typeof attributes['reference'] === 'string' ? 1 : 0;
  return [...prices].sort(([, a], [, b]) => refers(a) - refers(b));
};

/** Compares the descriptions of a file with the database and reports problems. Writes nothing. */
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
  for (const [key, price] of await referencedPrices(trx, descriptions.prices.values())) {
    reference.referenced.set(key, price);
  }
  for (const [number, described] of inOrder(descriptions.prices)) {
    const known = current.get(matchKey(described.code)) ?? null;
    const isCompletion = known !== null && described.whenPresent === 'keep';
    const record = isCompletion ? completionOf(described, known) : described;
    if (record === null) continue;
    const columns = describedColumns(record, known, reference, problems);
    const allowed = isCompletion ? { ...comparison, isPermitted: true } : comparison;
    const changing = columns && known ? changesOf(record, columns, known, allowed) : [];
    if (!columns || !changing) {
      if (problems.latest) failed.set(number, problems.latest);
    } else if (!known) {
      created.push(record);
      addReferenced(reference.referenced, record);
    } else if (changing.length > 0) {
      changed.push(record);
      changes.push(...changing);
    }
  }
  return { newNames: rows, created, changed, changes, failed };
}

/** The rows of prices to write, after everything that they refer to has an id. */
function rowsOf(
  records: readonly PriceRecord[],
  current: ReadonlyMap<string, CurrentPrice>,
  reference: ReferenceData,
  problems: Problems,
): string {
  const rows = records.map((record) => {
    const key = matchKey(record.code);
    const known = current.get(key) ?? null;
    const columns = describedColumns(record, known, reference, problems);
    const stated = columns?.['specification'];
    const references = columns?.['payable_reference'];
    return {
      ...known,
      ...columns,
      code: known?.['code'] ?? record.code,
      code_key: key,
      specification: typeof stated === 'string' ? JSON.parse(stated) : known?.['specification'],
      payable_reference:
        references === undefined ? known?.payable_reference : JSON.parse(references as string),
    };
  });
  return JSON.stringify(rows);
}

/** Writes the changes; requires an open revision. */
export async function writePrices(
  trx: Trx,
  changes: PriceChanges,
  problems: Problems,
): Promise<void> {
  if (changes.newNames.length + changes.created.length + changes.changed.length === 0) return;
  await writeNewNames(trx, changes.newNames);
  const reference = await readReference(trx);
  const current = await currentPrices(trx, changes.changed);
  const written = [...changes.created, ...changes.changed];
  for (const record of changes.created) addReferenced(reference.referenced, record);
  for (const [key, price] of await referencedPrices(trx, written)) {
    reference.referenced.set(key, price);
  }
  if (changes.created.length > 0) {
    const rows = rowsOf(changes.created, current, reference, problems);
    await sql`
      insert into price (${listOf(COLUMNS)})
      select ${listOf(COLUMNS, 'described')}
      from jsonb_populate_recordset(null::price, ${rows}::jsonb) as described`.execute(trx);
  }
  if (changes.changed.length > 0) {
    const rows = rowsOf(changes.changed, current, reference, problems);
    await sql`
      update price set (${listOf(CHANGEABLE_COLUMNS)})
        = row(${listOf(CHANGEABLE_COLUMNS, 'described')})
      from jsonb_populate_recordset(null::price, ${rows}::jsonb) as described
      where price.code_key = described.code_key`.execute(trx);
  }
}
