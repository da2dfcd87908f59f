import { DIMENSIONS } from '../../catalog/dimensions.ts';
import type { Market } from '../../catalog/markets.ts';
import type { SelectedPrice } from '../select/query.ts';
import type { References } from '../select/references.ts';
import { membersOf, ownTerms } from '../write/record.ts';

/** A value that a record refers to. */
interface Named {
  readonly name: string;
}

/** What a result shows of a price. */
export interface FoundPrice {
  readonly code: string;
  readonly name: string;
  readonly shortName: string | null;
  readonly lastAssessedAt: string | null;
  readonly latestPublishedAt: string | null;
  readonly product: Named & { readonly alias: string; readonly chemicalCode: string };
  readonly unitOfMeasure: Named & { readonly symbol: string };
  readonly currency: (Named & { readonly iso: string }) | null;
  readonly [field: string]: unknown;
}

/** What a result shows of a price: its record without the parts that no list has room for. */
export function foundPrice(
  market: Market,
  price: SelectedPrice,
  references: References,
): FoundPrice {
  const record = membersOf(market, price, references, ownTerms(price, references));
  const { specification: _long, assessmentLaunchedAt: _past, ...shown } = record;
  return shown as unknown as FoundPrice;
}

type TextOf = (price: FoundPrice, market: Market) => string | null;

const nameOf =
  (field: string): TextOf =>
  (price) =>
    (price[field] as Named | null | undefined)?.name ?? null;

const PLACES = ['country', 'region'];

const others = Object.values(DIMENSIONS)
  .map(({ field }) => field)
  .filter((field) => !PLACES.includes(field));

/** The attributes that are searched, and the text of each; what counts most comes first. */
export const ATTRIBUTES: readonly (readonly [field: string, text: TextOf])[] = [
  ['code', ({ code }) => code],
  ['name', ({ name }) => name],
  ['product', nameOf('product')],
  ['alias', ({ product }) => product.alias],
  ['chemicalCode', ({ product }) => product.chemicalCode],
  ['shortName', ({ shortName }) => shortName],
  ...[...PLACES, ...others, 'priceCategory', 'frequency', 'priceType'].map(
    (field): readonly [string, TextOf] => [field, nameOf(field)],
  ),
  ['currency', ({ currency }) => currency && `${currency.iso} ${currency.name}`],
  ['unitOfMeasure', ({ unitOfMeasure: { name, symbol } }) => `${name} ${symbol}`],
  ['market', (_price, { name }) => name],
];
