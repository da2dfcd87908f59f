import { columnName } from '../../catalog/dimensions.ts';
import type { Market } from '../../catalog/markets.ts';
import { dimensionFields } from '../../contract/schemas/formats.ts';
import { instantOf } from '../../db/instant.ts';
import type { PriceAttributes, SelectedPrice } from '../select/query.ts';
import type { CurrencyReference, References, UnitReference } from '../select/references.ts';

type DimensionColumn = Extract<keyof PriceAttributes, `${string}_id`>;

/** The field and column of each dimension of a market, in the order in which records show them. */
const dimensionsOf = (market: Market) =>
  dimensionFields(market).map((field) => ({ field, column: columnName(field) as DimensionColumn }));

const known = <K, V>(map: ReadonlyMap<K, V>, key: K, what: string): V => {
  const found = map.get(key);
  if (found === undefined) throw new Error(`no ${what} ${key} at this revision`);
  return found;
};

/** What the numbers of a record are in. */
export interface ShownTerms {
  readonly unitOfMeasure: UnitReference['shown'];
  readonly currency: CurrencyReference['shown'] | null;
}

/** The terms that a price was assessed in. */
export function ownTerms(price: PriceAttributes, references: References): ShownTerms {
  const unit = known(references.units, price.unit_id, 'unit of measure');
  const { currency_id: id } = price;
  return {
    unitOfMeasure: unit.shown,
    currency: id === null ? null : known(references.currencies, id, 'currency').shown,
  };
}

/** What a record shows of a price, but its code and what depends on its points. */
export function attributesOf(
  market: Market,
  price: PriceAttributes,
  references: References,
  terms: ShownTerms,
) {
  const dimensions: Record<string, object | null> = {};
  for (const { field, column } of dimensionsOf(market)) {
    const id = price[column];
    dimensions[field] = id === null ? null : known(references.values, id, field);
  }
  return {
    name: price.name,
    shortName: price.short_name,
    // PostgreSQL keeps the members of a jsonb object in an order of its own.
    specification: price.specification.map(({ name, value, order }) => ({ name, value, order })),
    assessmentLaunchedAt: price.assessment_launched_at,
    product: known(references.products, price.product_id, 'product'),
    priceCategory: known(references.values, price.price_category_id, 'price category'),
    frequency: known(references.frequencies, price.frequency_id, 'frequency'),
    ...dimensions,
    unitOfMeasure: terms.unitOfMeasure,
    currency: terms.currency,
    priceType: known(references.priceTypes, price.price_type, 'price type'),
  };
}

/** The members of a record up to its price type, in the order of the contract. */
export function membersOf(
  market: Market,
  price: SelectedPrice,
  references: References,
  terms: ShownTerms,
) {
  const { name, shortName, specification, assessmentLaunchedAt, ...described } = attributesOf(
    market,
    price,
    references,
    terms,
  );
  return {
    code: price.code,
    name,
    shortName,
    specification,
    assessmentLaunchedAt,
    lastAssessedAt: price.last_date,
    latestPublishedAt: price.last_published_at && instantOf(price.last_published_at),
    ...described,
  };
}
