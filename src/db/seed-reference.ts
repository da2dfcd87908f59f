import type { Transaction } from 'kysely';
import { FX_SOURCES } from '../../seeds/rates.ts';
import { FREQUENCY_SHORT_NAMES } from '../../seeds/reference/categories.ts';
import { CURRENCIES } from '../../seeds/reference/currencies.ts';
import { UNITS } from '../../seeds/reference/units.ts';
import { VALUES } from '../../seeds/reference/values.ts';
import type { SampleMarket } from '../../seeds/sample.ts';
import type { Kind } from '../catalog/dimensions.ts';
import { matchKey } from '../catalog/match-key.ts';
import { idOf } from './ids.ts';
import type { Database } from './schema.ts';
import { openRevision } from './connection.ts';

/** What one table lacks; `write` brings it up to date. */
interface Difference {
  readonly inserted: number;
  readonly updated: number;
  write(): Promise<void>;
}

type Trx = Transaction<Database>;

/**
 * Splits wanted rows into those the table lacks and those whose names differ. The first key of a
 * row is its identity; one that only shares another key (a name that somebody added under another
 * slug) is left as it is. Columns that `existing` does not carry are not compared.
 */
function compare<Existing extends object, Wanted extends Existing>(
  wanted: readonly Wanted[],
  existing: readonly Existing[],
  keysOf: (row: Existing) => readonly [identity: string, ...others: string[]],
): { missing: Wanted[]; changed: Wanted[] } {
  const byIdentity = new Map(existing.map((row) => [keysOf(row)[0], row]));
  const known = new Set(existing.flatMap((row) => keysOf(row)));
  const differs = (row: Wanted): boolean => {
    const current = byIdentity.get(keysOf(row)[0]);
    const columns = Object.keys(current ?? {}) as (keyof Existing)[];
    return current !== undefined && columns.some((column) => current[column] !== row[column]);
  };
  return {
    missing: wanted.filter((row) => !keysOf(row).some((key) => known.has(key))),
    changed: wanted.filter(differs),
  };
}

async function currencies(trx: Trx): Promise<Difference> {
  const wanted = Object.entries(CURRENCIES).map(([iso, { name, symbol }]) => ({
    uuid: idOf('currency', iso.toLowerCase()),
    iso,
    name,
    symbol,
  }));
  const existing = await trx.selectFrom('currency').select(['iso', 'name', 'symbol']).execute();
  const { missing, changed } = compare(wanted, existing, ({ iso }) => [iso]);
  return {
    inserted: missing.length,
    updated: changed.length,
    write: async () => {
      if (missing.length > 0) await trx.insertInto('currency').values(missing).execute();
      for (const { iso, name, symbol } of changed) {
        await trx.updateTable('currency').set({ name, symbol }).where('iso', '=', iso).execute();
      }
    },
  };
}

async function units(trx: Trx): Promise<Difference> {
  const wanted = Object.entries(UNITS).map(([slug, unit]) => ({
    uuid: idOf('unit', slug),
    slug,
    ...unit,
    name_key: matchKey(unit.name),
    symbol_key: matchKey(unit.symbol),
  }));
  const existing = await trx
    .selectFrom('unit_of_measure')
    .select(['slug', 'name', 'symbol', 'rec20', 'name_key', 'symbol_key'])
    .execute();
  const { missing, changed } = compare(wanted, existing, (row) => [row.slug, `=${row.name_key}`]);
  return {
    inserted: missing.length,
    updated: changed.length,
    write: async () => {
      if (missing.length > 0) await trx.insertInto('unit_of_measure').values(missing).execute();
      for (const { slug, name, symbol, rec20, name_key, symbol_key } of changed) {
        const names = { name, symbol, rec20, name_key, symbol_key };
        await trx.updateTable('unit_of_measure').set(names).where('slug', '=', slug).execute();
      }
    },
  };
}

const shortNames: Readonly<Record<string, string>> = FREQUENCY_SHORT_NAMES;

async function dimensionValues(trx: Trx): Promise<Difference> {
  const kinds = Object.entries(VALUES) as [Kind, Readonly<Record<string, string>>][];
  const wanted = kinds.flatMap(([kind, names]) =>
    Object.entries(names).map(([slug, name]) => ({
      uuid: idOf(kind, slug),
      kind,
      slug,
      name,
      short_name: kind === 'frequency' ? (shortNames[slug] ?? null) : null,
      match_key: matchKey(name),
    })),
  );
  const existing = await trx
    .selectFrom('dimension_value')
    .select(['kind', 'slug', 'name', 'short_name', 'match_key'])
    .execute();
  const { missing, changed } = compare(wanted, existing as typeof wanted, (row) => [
    `${row.kind}/${row.slug}`,
    `${row.kind}=${row.match_key}`,
  ]);
  return {
    inserted: missing.length,
    updated: changed.length,
    write: async () => {
      if (missing.length > 0) await trx.insertInto('dimension_value').values(missing).execute();
      for (const { kind, slug, name, short_name, match_key } of changed) {
        await trx
          .updateTable('dimension_value')
          .set({ name, short_name, match_key })
          .where('kind', '=', kind)
          .where('slug', '=', slug)
          .execute();
      }
    },
  };
}

async function products(trx: Trx, markets: readonly SampleMarket[]): Promise<Difference> {
  const rows = await trx.selectFrom('market').select(['id', 'slug']).execute();
  const marketIds = new Map(rows.map(({ id, slug }) => [slug, id]));
  const wanted = markets.flatMap((market) =>
    market.products.map((product) => ({
      uuid: idOf('product', market.slug, product.slug),
      market_id: marketIds.get(market.slug) ?? 0,
      slug: product.slug,
      name: product.name,
      alias: product.alias,
      chemical_code: product.chemicalCode,
      is_sustainable: product.isSustainable,
      match_key: matchKey(product.name),
    })),
  );
  const existing = await trx
    .selectFrom('product')
    .select(['market_id', 'slug', 'name', 'alias', 'chemical_code', 'is_sustainable', 'match_key'])
    .execute();
  const { missing, changed } = compare(wanted, existing, (row) => [
    `${row.market_id}/${row.slug}`,
    `${row.market_id}=${row.match_key}`,
  ]);
  return {
    inserted: missing.length,
    updated: changed.length,
    write: async () => {
      if (missing.length > 0) await trx.insertInto('product').values(missing).execute();
      for (const { uuid: _, market_id, slug, ...names } of changed) {
        await trx
          .updateTable('product')
          .set(names)
          .where('market_id', '=', market_id)
          .where('slug', '=', slug)
          .execute();
      }
    },
  };
}

/** Publishers of rates carry no revision: they only name the rates, which do. */
async function writeSources(trx: Trx): Promise<void> {
  const rows = await trx.selectFrom('currency').select(['id', 'iso']).execute();
  const ids = new Map(rows.map(({ id, iso }) => [iso, id]));
  await trx
    .insertInto('fx_source')
    .values(
      FX_SOURCES.map(({ slug, name, base, isSample }) => ({
        slug,
        name,
        base_currency_id: ids.get(base) ?? 0,
        is_sample: isSample,
      })),
    )
    .onConflict((conflict) => conflict.column('slug').doNothing())
    .execute();
}

/**
 * Brings the reference rows up to date: adds what is missing and takes over names that differ, in
 * one revision, or none when nothing differs. Rows that are not in the seeds stay.
 */
export async function writeReference(
  trx: Trx,
  markets: readonly SampleMarket[],
): Promise<{ inserted: number; updated: number }> {
  const differences = [
    await currencies(trx),
    await units(trx),
    await dimensionValues(trx),
    await products(trx, markets),
  ];
  const sum = (field: 'inserted' | 'updated'): number =>
    differences.reduce((total, each) => total + each[field], 0);
  const [inserted, updated] = [sum('inserted'), sum('updated')];
  if (inserted + updated > 0) {
    await openRevision(trx, 'seeds: reference data');
    for (const difference of differences) await difference.write();
  }
  await writeSources(trx);
  return { inserted, updated };
}
