import { idOf } from '../../db/ids.ts';
import type { Trx } from '../load/reference.ts';
import type { RateSource } from './format.ts';

const names = new Intl.DisplayNames(['en'], { type: 'currency', fallback: 'none' });

/** The English name of a currency of ISO 4217, also of one that has ended; undefined if none. */
export const currencyName = (iso: string): string | undefined =>
  /^[A-Z]{3}$/.test(iso) ? names.of(iso) : undefined;

/** Its sign, or its code where it has none. */
function currencySymbol(iso: string): string {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency: iso });
  return format.formatToParts(0).find((part) => part.type === 'currency')?.value ?? iso;
}

/**
 * Adds currencies that rates were found for: currencies come and go, and a new one is a row of
 * data. A revision must be open.
 */
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
 * Makes sure that the publisher of the rates is known. It looks first: an account that only loads
 * need not be allowed to add publishers, which the seeds know.
 */
export async function writeSource(trx: Trx, { slug, name, base }: RateSource): Promise<void> {
  const known = await trx.selectFrom('fx_source').select('slug').where('slug', '=', slug).execute();
  if (known.length > 0) return;
  const { id } = await trx
    .selectFrom('currency')
    .select('id')
    .where('iso', '=', base)
    .executeTakeFirstOrThrow();
  await trx.insertInto('fx_source').values({ slug, name, base_currency_id: id }).execute();
}
