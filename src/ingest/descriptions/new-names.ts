import { sql } from 'kysely';
import { matchKey } from '../../catalog/match-key.ts';
import { didYouMean } from '../../catalog/nearest.ts';
import { idOf } from '../../db/ids.ts';
import type { RatePublisher } from '../records/format.ts';
import type { Problems } from '../records/problems.ts';
import type { ProductRecord, ValueRecord } from '../records/source-record.ts';
import { INVALID_LABEL, isLabel } from '../records/texts.ts';
import { addTo, KIND_OF, type ReferenceData, type Trx } from './known-names.ts';

/** A product or dimension value that a file declares and the database lacks. */
export type NewName =
  | { readonly record: ProductRecord; readonly marketId: number; readonly key: string }
  | { readonly record: ValueRecord; readonly kind: string; readonly key: string };

/**
 * Finds the declared products and values that do not exist yet. They are added to the reference
 * data with id 0, so that descriptions can already refer to them.
 */
export function newNames(
  records: readonly (ProductRecord | ValueRecord)[],
  reference: ReferenceData,
  problems: Problems,
): NewName[] {
  const rows: NewName[] = [];
  for (const record of records) {
    const row = newName(record, reference, problems);
    if (!row) continue;
    const named = { id: 0, name: record.name };
    if ('marketId' in row) addTo(reference.products, row.marketId, [row.key], named);
    else addTo(reference.values, row.kind, [row.key], named);
    rows.push(row);
  }
  return rows;
}

function newName(
  record: ProductRecord | ValueRecord,
  { markets, products, values }: ReferenceData,
  problems: Problems,
): NewName | null {
  const { file, line, name } = record;
  const key = matchKey(name);
  const labels: Record<string, string> =
    record.kind === 'product'
      ? { name, alias: record.alias, chemicalCode: record.chemicalCode }
      : { name };
  for (const [column, value] of Object.entries(labels)) {
    if (isLabel(value)) continue;
    problems.add('invalid_text', INVALID_LABEL, { file, line, column, value });
    return null;
  }
  if (record.kind === 'product') {
    const marketId = markets.get(record.market);
    if (marketId !== undefined) {
      return products.get(marketId)?.has(key) ? null : { record, marketId, key };
    }
    const message = `There is no such market${didYouMean(record.market, markets.keys())}`;
    const place = { file, line, column: 'market', value: record.market };
    problems.add('unknown_market', message, place);
    return null;
  }
  const kind = KIND_OF.get(record.dimension);
  const { dimension } = record;
  const known = kind === undefined ? undefined : values.get(kind);
  if (known?.has(key)) return null;
  // New frequencies are refused, because other code handles each frequency by its name.
  if (kind !== undefined && kind !== 'frequency') return { record, kind, key };
  const others = [...KIND_OF.keys()].filter((field) => field !== 'frequency');
  const frequencies = [...new Set([...(known?.values() ?? [])].map((each) => each.name))];
  const message =
    kind === undefined
      ? `No dimension of this name takes new values${didYouMean(dimension, others)}`
      : `Frequencies cannot be added; there are ${frequencies.join(', ')}`;
  problems.add('unsupported_field', message, { file, line, column: 'dimension', value: dimension });
  return null;
}

/** Converts a name to a part of an id and address: `99.8% Ni min` → `99.8-ni-min`. */
const slugOf = (name: string): string =>
  name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}.]+/gu, '-')
    .replace(/^-|-$/g, '') || 'value';

/** Finds a free slug: the second row of the same name gets `-2`. */
async function freeSlug(trx: Trx, { record: { name }, ...row }: NewName): Promise<string> {
  const slug = slugOf(name);
  for (let count = 1; ; count += 1) {
    const candidate = count === 1 ? slug : `${slug}-${count}`;
    const taken =
      'marketId' in row
        ? sql`select from product where market_id = ${row.marketId} and slug = ${candidate}`
        : sql`select from dimension_value where kind = ${row.kind} and slug = ${candidate}`;
    if ((await taken.execute(trx)).rows.length === 0) return candidate;
  }
}

/** Writes declared products and values; requires an open revision. */
export async function writeNewNames(trx: Trx, rows: readonly NewName[]): Promise<void> {
  for (const row of rows) {
    const { name } = row.record;
    const slug = await freeSlug(trx, row);
    if ('marketId' in row) {
      const { market, alias, chemicalCode, isSustainable } = row.record;
      const uuid = idOf('product', market, slug);
      await sql`
        insert into product
          (uuid, market_id, slug, name, alias, chemical_code, is_sustainable, match_key)
        values (${uuid}, ${row.marketId}, ${slug}, ${name}, ${alias}, ${chemicalCode},
          ${isSustainable}, ${row.key})`.execute(trx);
    } else {
      const uuid = idOf(row.kind as 'purity', slug);
      await sql`
        insert into dimension_value (uuid, kind, slug, name, match_key)
        values (${uuid}, ${row.kind}, ${slug}, ${name}, ${row.key})`.execute(trx);
    }
  }
}

const names = new Intl.DisplayNames(['en'], { type: 'currency', fallback: 'none' });

/** English name of an ISO 4217 currency, including former ones; undefined if unknown. */
export const currencyName = (iso: string): string | undefined =>
  /^[A-Z]{3}$/.test(iso) ? names.of(iso) : undefined;

/** Symbol of a currency, or its code if it has none. */
function currencySymbol(iso: string): string {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency: iso });
  return format.formatToParts(0).find((part) => part.type === 'currency')?.value ?? iso;
}

/** Adds the currencies of new rates; requires an open revision. */
export async function writeCurrencies(trx: Trx, isoCodes: readonly string[]): Promise<void> {
  if (isoCodes.length === 0) return;
  const rows = isoCodes.map((iso) => ({
    uuid: idOf('currency', iso.toLowerCase()),
    iso,
    name: currencyName(iso) ?? iso,
    symbol: currencySymbol(iso),
  }));
  await trx.insertInto('currency').values(rows).execute();
}

/**
 * Adds the publisher of the rates if it is missing. The check comes first: an account that only
 * loads may lack the right to insert publishers.
 */
export async function writeSource(trx: Trx, { slug, name, base }: RatePublisher): Promise<void> {
  const known = await trx.selectFrom('fx_source').select('slug').where('slug', '=', slug).execute();
  if (known.length > 0) return;
  const { id } = await trx
    .selectFrom('currency')
    .select('id')
    .where('iso', '=', base)
    .executeTakeFirstOrThrow();
  await trx.insertInto('fx_source').values({ slug, name, base_currency_id: id }).execute();
}
