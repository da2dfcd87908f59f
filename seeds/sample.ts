import type { Observes } from '../src/catalog/analytics.ts';
import { MARKETS, type MarketSlug } from '../src/catalog/markets.ts';
import type { PayableReference } from '../src/catalog/payable-reference.ts';
import type { CurrencyIso } from './reference/currencies.ts';
import type { UnitSlug } from './reference/units.ts';
import type { NameOf } from './reference/values.ts';
import type { CheckedMarket, Drivers } from './types.ts';

export interface SampleProduct {
  readonly slug: string;
  readonly name: string;
  readonly alias: string;
  readonly chemicalCode: string;
  readonly isSustainable: boolean;
}

export interface SamplePrice {
  readonly code: string;
  readonly name: string;
  readonly shortName: string;
  /** Slug of the product. */
  readonly product: string;
  readonly category: NameOf<'price-category'>;
  readonly frequency: NameOf<'frequency'>;
  readonly launched: string;
  readonly observes: Observes;
  /** The country whose VAT its values include; null without VAT. */
  readonly vatCountry: string | null;
  /** Of a payable; null for a price. */
  readonly reference: PayableReference | null;
  /** Names by the record's field; null where the price has none. */
  readonly dimensions: Readonly<Record<string, string | null>>;
  readonly specification: readonly { name: string; value: string; order: number }[];
  readonly type: 'price' | 'payable';
  readonly currency: CurrencyIso | null;
  readonly unit: UnitSlug;
  /** The values of its last day, as decimal text. */
  readonly low: string;
  readonly mid: string;
  readonly high: string;
  readonly volatility: number;
  readonly drivers: Drivers;
}

export interface SampleMarket {
  readonly slug: MarketSlug;
  readonly products: readonly SampleProduct[];
  readonly prices: readonly SamplePrice[];
}

/** Stands in the specification of every sample price, so that none is taken for a real one. */
export const SAMPLE_MARK = {
  name: 'sample data',
  value: 'synthetic values for demonstration, not an assessment',
} as const;

const specificationOf = (entries: Readonly<Record<string, string>> = {}) =>
  [...Object.entries(entries), [SAMPLE_MARK.name, SAMPLE_MARK.value] as const].map(
    ([name, value], index) => ({ name, value, order: index + 1 }),
  );

/** Fees and premiums move by themselves; outright prices with their product or market. */
const driversOf = (market: CheckedMarket, price: CheckedMarket['prices'][number]): Drivers => {
  const [category] = price.assessed;
  if (price.drivers) return price.drivers;
  if (price.payable || category === 'Premium' || category === 'Processing fee') return {};
  return market.productDrivers?.[price.product] ?? market.drivers;
};

const referenceOf = (
  [code, side, statistic, element]: NonNullable<CheckedMarket['prices'][number]['reference']>,
  validFrom: string,
): PayableReference => ({ code, side, statistic, element, validFrom });

function samplePrice(market: CheckedMarket, price: CheckedMarket['prices'][number]): SamplePrice {
  const [category, frequency, launched] = price.assessed;
  const [incoterm, country, region] = price.delivery;
  const values = price.price ?? ([null, 'percent', ...price.payable] as const);
  const [currency, unit, low, mid, high] = values;
  return {
    code: price.code,
    name: price.name,
    shortName: price.shortName,
    product: price.product,
    category,
    frequency,
    launched,
    observes: price.observes ?? 'day',
    vatCountry: price.specification?.['vat'] === undefined ? null : 'CN',
    reference: price.payable ? referenceOf(price.reference, launched) : null,
    dimensions: { ...price.dimensions, incoterm, country, region },
    specification: specificationOf(price.specification),
    type: price.price ? 'price' : 'payable',
    currency,
    unit,
    low,
    mid,
    high,
    volatility: market.volatility,
    drivers: driversOf(market, price),
  };
}

/**
 * The sample data of every market of the catalog, in its order. A market needs no more than a
 * file of its slug in `markets/`.
 */
export async function sampleMarkets(): Promise<SampleMarket[]> {
  const load = async ({ slug }: { slug: MarketSlug }): Promise<SampleMarket> => {
    const file: { market: CheckedMarket } = await import(`./markets/${slug}.ts`);
    const { market } = file;
    if (market.slug !== slug) throw new Error(`seeds/markets/${slug}.ts holds ${market.slug}`);
    const products = Object.entries(market.products).map(([key, product]) => {
      const [name, alias, chemicalCode, sustainable] = product;
      return { slug: key, name, alias, chemicalCode, isSustainable: sustainable !== undefined };
    });
    return { slug, products, prices: market.prices.map((price) => samplePrice(market, price)) };
  };
  return Promise.all(MARKETS.map(load));
}
