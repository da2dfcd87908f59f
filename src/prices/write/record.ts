import { columnName } from '../../catalog/dimensions.ts';
import { MARKETS, type Market } from '../../catalog/markets.ts';
import type { PayableReference } from '../../catalog/payable-reference.ts';
import { dimensionFields } from '../../contract/schemas/formats.ts';
import { instantOf } from '../../db/instant.ts';
import type { PriceAttributes, SelectedPrice } from '../market/query.ts';
import type { CurrencyReference, References, UnitReference } from '../market/references.ts';

type DimensionColumn = Extract<keyof PriceAttributes, `${string}_id`>;

/** The field and column of each dimension of a market, in the order in which records show them. */
const DIMENSIONS = new Map(
  MARKETS.map((market: Market) => {
    const fields = dimensionFields(market);
    return [
      market.slug,
      fields.map((field) => ({ field, column: columnName(field) as DimensionColumn })),
    ];
  }),
);

const known = <K, V>(map: ReadonlyMap<K, V>, key: K, what: string): V => {
  const found = map.get(key);
  if (found === undefined) throw new Error(`no ${what} ${key} at this revision`);
  return found;
};

/** The currency and unit of the numbers of a record, as objects of the record. */
export interface CurrencyAndUnitMembers {
  readonly unitOfMeasure: UnitReference['member'];
  readonly currency: CurrencyReference['member'] | null;
}

/** The currency and unit of the assessment of a price. */
export function currencyAndUnitOf(
  price: PriceAttributes,
  references: References,
): CurrencyAndUnitMembers {
  const unit = known(references.units, price.unit_id, 'unit of measure');
  const { currency_id: id } = price;
  return {
    unitOfMeasure: unit.member,
    currency: id === null ? null : known(references.currencies, id, 'currency').member,
  };
}

/** The members of a reference in the order of the contract, which jsonb does not preserve. */
const referenceMembers = ({ code, side, statistic, element, validFrom }: PayableReference) => ({
  code,
  side,
  statistic,
  element,
  validFrom,
});

/** The latest reference of a payable with those before it, the newest first. */
function referenceOf(references: readonly PayableReference[] | null) {
  const [latest, ...earlier] = (references ?? []).map(referenceMembers).reverse();
  return latest === undefined ? null : { ...latest, earlier };
}

/** The members of a record that depend neither on its points nor on its code. */
export function attributesOf(
  market: Market,
  price: PriceAttributes,
  references: References,
  currencyAndUnit: CurrencyAndUnitMembers,
) {
  const dimensions: Record<string, object | null> = {};
  for (const { field, column } of DIMENSIONS.get(market.slug) ?? []) {
    const id = price[column];
    dimensions[field] = id === null ? null : known(references.values, id, field);
  }
  return {
    name: price.name,
    shortName: price.short_name,
    // PostgreSQL does not preserve the member order of a jsonb object.
    specification: price.specification.map(({ name, value, order }) => ({ name, value, order })),
    assessmentLaunchedAt: price.assessment_launched_at,
    product: known(references.products, price.product_id, 'product'),
    priceCategory: known(references.values, price.price_category_id, 'price category'),
    frequency: known(references.frequencies, price.frequency_id, 'frequency'),
    ...dimensions,
    unitOfMeasure: currencyAndUnit.unitOfMeasure,
    currency: currencyAndUnit.currency,
    priceType: known(references.priceTypes, price.price_type, 'price type'),
    observes: price.observes,
    vatCountry: price.vat_country,
    reference: referenceOf(price.payable_reference),
  };
}

/** The members of a record up to its conversion, in the order of the contract. */
export function membersOf(
  market: Market,
  price: SelectedPrice,
  references: References,
  currencyAndUnit: CurrencyAndUnitMembers,
) {
  const { name, shortName, specification, assessmentLaunchedAt, ...described } = attributesOf(
    market,
    price,
    references,
    currencyAndUnit,
  );
  return {
    code: price.code,
    name,
    shortName,
    specification,
    assessmentLaunchedAt,
    lastAssessedAt: price.last_date,
    latestPublishedAt: price.last_published_at && instantOf(price.last_published_at),
    nextExpectedAt: references.calendars.nextOf(price)?.at ?? null,
    ...described,
  };
}
