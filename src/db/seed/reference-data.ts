import type { Transaction } from 'kysely';
import { FX_SOURCES } from '../../../seeds/rates.ts';
import { FREQUENCY_SHORT_NAMES } from '../../../seeds/reference/categories.ts';
import { CURRENCIES } from '../../../seeds/reference/currencies.ts';
import { UNITS } from '../../../seeds/reference/units.ts';
import { VALUES } from '../../../seeds/reference/values.ts';
import type { SampleMarket } from '../../../seeds/sample.ts';
import type { ValueKind } from '../../catalog/dimensions.ts';
import { matchKey } from '../../catalog/match-key.ts';
import { openRevision } from '../connection.ts';
import { idOf } from '../ids.ts';
import type { Database } from '../schema.ts';

/** The rows that one table lacks. */
interface Addition {
  readonly count: number;
  write(): Promise<unknown>;
}

type Trx = Transaction<Database>;

/**
 * The wanted rows that a table lacks. A row has several keys, such as slug and name: a stored row
 * with any of them counts as present, because its owner may have edited the others.
 */
function missingOf<Existing, Wanted extends Existing>(
  wanted: readonly Wanted[],
  existing: readonly Existing[],
  keysOf: (row: Existing) => readonly string[],
): Wanted[] {
  const known = new Set(existing.flatMap((row) => keysOf(row)));
  return wanted.filter((row) => !keysOf(row).some((key) => known.has(key)));
}

async function currencies(trx: Trx): Promise<Addition> {
  const wanted = Object.entries(CURRENCIES).map(([iso, { name, symbol }]) => ({
    uuid: idOf('currency', iso.toLowerCase()),
    iso,
    name,
    symbol,
  }));
  const existing = await trx.selectFrom('currency').select('iso').execute();
  const missing = missingOf(wanted, existing, ({ iso }) => [iso]);
  return {
    count: missing.length,
    write: () => trx.insertInto('currency').values(missing).execute(),
  };
}

async function units(trx: Trx): Promise<Addition> {
  const wanted = Object.entries(UNITS).map(([slug, unit]) => ({
    uuid: idOf('unit', slug),
    slug,
    ...unit,
    name_key: matchKey(unit.name),
    symbol_key: matchKey(unit.symbol),
  }));
  const existing = await trx.selectFrom('unit_of_measure').select(['slug', 'name_key']).execute();
  const missing = missingOf(wanted, existing, (row) => [row.slug, `=${row.name_key}`]);
  return {
    count: missing.length,
    write: () => trx.insertInto('unit_of_measure').values(missing).execute(),
  };
}

const shortNames: Readonly<Record<string, string>> = FREQUENCY_SHORT_NAMES;

async function dimensionValues(trx: Trx): Promise<Addition> {
  const kinds = Object.entries(VALUES) as [ValueKind, Readonly<Record<string, string>>][];
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
    .select(['kind', 'slug', 'match_key'])
    .execute();
  const missing = missingOf(wanted, existing, (row) => [
    `${row.kind}/${row.slug}`,
    `${row.kind}=${row.match_key}`,
  ]);
  return {
    count: missing.length,
    write: () => trx.insertInto('dimension_value').values(missing).execute(),
  };
}

async function products(trx: Trx, markets: readonly SampleMarket[]): Promise<Addition> {
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
    .select(['market_id', 'slug', 'match_key'])
    .execute();
  const missing = missingOf(wanted, existing, (row) => [
    `${row.market_id}/${row.slug}`,
    `${row.market_id}=${row.match_key}`,
  ]);
  return {
    count: missing.length,
    write: () => trx.insertInto('product').values(missing).execute(),
  };
}

/** Inserts the sources of rates, which have no revision, unlike their rates. */
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
 * Inserts missing reference rows in one revision, or none if all are present. Does not change
 * present rows, whose names may have been edited.
 */
export async function writeReference(
  trx: Trx,
  markets: readonly SampleMarket[],
): Promise<{ inserted: number }> {
  const all = [
    await currencies(trx),
    await units(trx),
    await dimensionValues(trx),
    await products(trx, markets),
  ];
  const additions = all.filter(({ count }) => count > 0);
  if (additions.length > 0) {
    await openRevision(trx, 'seeds: reference data');
    for (const addition of additions) await addition.write();
  }
  await writeSources(trx);
  return { inserted: additions.reduce((total, { count }) => total + count, 0) };
}
