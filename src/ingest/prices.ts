import { sql } from 'kysely';
import { columnName } from '../catalog/dimensions.ts';
import { matchKey } from '../catalog/match-key.ts';
import { type NewRow, newRows, writeNewRows } from './declared.ts';
import { type Columns, describedColumns } from './describe.ts';
import type { Descriptions } from './descriptions.ts';
import type { Problems } from './problems.ts';
import type { PriceRecord } from './records.ts';
import { KIND_OF, type Reference, readReference, type Trx } from './reference.ts';
import { specificationOf } from './specification.ts';

const IDENTITY: Readonly<Record<string, string>> = {
  market_id: 'market',
  price_type: 'priceType',
  currency_id: 'currency',
  unit_id: 'unitOfMeasure',
};
const CHANGEABLE: Readonly<Record<string, string>> = {
  name: 'name',
  short_name: 'shortName',
  product_id: 'product',
  specification: 'specification',
  assessment_launched_at: 'assessmentLaunchedAt',
  ...Object.fromEntries([...KIND_OF.keys()].map((field) => [columnName(field), field])),
};
const CODE = ['code', 'code_key'];
const COLUMNS = [
  ...CODE,
  'market_id',
  'price_type',
  'currency_id',
  'unit_id',
  'unit_dimension',
  ...Object.keys(CHANGEABLE),
];

/** What a load does to prices and to what they refer to. */
export interface PricePlan {
  readonly newRows: readonly NewRow[];
  readonly created: readonly PriceRecord[];
  readonly changed: readonly PriceRecord[];
}

type CurrentPrice = Readonly<Record<string, unknown>> & { readonly market: string };

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

/** A stored value in the notation of a description. */
const currentOf = (current: CurrentPrice, column: string): unknown =>
  column === 'specification'
    ? specificationOf(JSON.stringify(current[column]))
    : (current[column] ?? null);

/** Whether a description changes a price; what it may not change is noted as a problem. */
function changes(
  record: PriceRecord,
  columns: Columns,
  current: CurrentPrice,
  isPermitted: boolean,
  problems: Problems,
): boolean {
  let isChanged = false;
  for (const [column, value] of Object.entries(columns)) {
    if (value === currentOf(current, column)) continue;
    const field = IDENTITY[column] ?? CHANGEABLE[column];
    if (field === undefined) continue;
    isChanged = true;
    const place = { line: record.line, column: field, value: record.attributes[field] ?? null };
    if (IDENTITY[column]) {
      const message = `The ${field} of ${record.code} never changes: publish a price of its own`;
      problems.add('immutable', message, place);
    } else if (!isPermitted) {
      const change = `The ${field} of ${record.code} would change`;
      const message = `${change}; allow corrections, with a reason, to change it`;
      problems.add('correction_not_allowed', message, place);
    }
  }
  return isChanged;
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
  if (descriptions.isEmpty) return { newRows: [], created: [], changed: [] };
  const reference = await readReference(trx);
  const rows = newRows(descriptions.others, reference, problems);
  const current = await currentPrices(trx, descriptions.prices.values());
  const created: PriceRecord[] = [];
  const changed: PriceRecord[] = [];
  for (const record of descriptions.prices.values()) {
    const known = current.get(matchKey(record.code)) ?? null;
    if (known && record.whenPresent === 'keep') continue;
    const columns = describedColumns(record, known, reference, problems);
    if (!columns) continue;
    if (!known) created.push(record);
    else if (changes(record, columns, known, isPermitted, problems)) changed.push(record);
  }
  return { newRows: rows, created, changed };
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

const names = (columns: readonly string[], table: string) =>
  sql.join(columns.map((column) => sql.ref(`${table}.${column}`)));

/** Writes the plan; a revision must be open. */
export async function writePrices(trx: Trx, plan: PricePlan, problems: Problems): Promise<void> {
  if (plan.newRows.length + plan.created.length + plan.changed.length === 0) return;
  await writeNewRows(trx, plan.newRows);
  const reference = await readReference(trx);
  const current = await currentPrices(trx, plan.changed);
  if (plan.created.length > 0) {
    const rows = rowsOf(plan.created, current, reference, problems);
    await sql`
      insert into price (${sql.join(COLUMNS.map((column) => sql.ref(column)))})
      select ${names(COLUMNS, 'described')}
      from jsonb_populate_recordset(null::price, ${rows}::jsonb) as described`.execute(trx);
  }
  if (plan.changed.length > 0) {
    const rows = rowsOf(plan.changed, current, reference, problems);
    const columns = Object.keys(CHANGEABLE);
    await sql`
      update price set (${sql.join(columns.map((column) => sql.ref(column)))})
        = row(${names(columns, 'described')})
      from jsonb_populate_recordset(null::price, ${rows}::jsonb) as described
      where price.code_key = described.code_key`.execute(trx);
  }
}
