import { sql } from 'kysely';
import { columnName } from '../catalog/dimensions.ts';
import { matchKey } from '../catalog/match-key.ts';
import { describedColumns } from './describe.ts';
import { writeNewRows } from './formats/declared.ts';
import type { PricePlan } from './price-plan.ts';
import type { PriceRecord } from './records.ts';
import { KIND_OF, type Reference, readReference, type Trx } from './reference.ts';
import type { Problems } from './rejects/problems.ts';

/** What never changes of a price: column → field. */
export const IDENTITY: Readonly<Record<string, string>> = {
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

/** A row of `price`, with the slug of its market. */
export type CurrentPrice = Readonly<Record<string, unknown>> & { readonly market: string };

/** The prices that records describe, as far as they exist, by the key of their code. */
export async function currentPrices(
  trx: Trx,
  records: Iterable<PriceRecord>,
): Promise<Map<string, CurrentPrice>> {
  const keys = [...records].map((each) => matchKey(each.code));
  const { rows } = await sql<CurrentPrice & { code_key: string }>`
    select price.*, market.slug as market from price join market on market.id = price.market_id
    where code_key = any(${keys}::text[])`.execute(trx);
  return new Map(rows.map((row) => [row.code_key, row]));
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
