import type { Observes } from '../src/catalog/analytics.ts';
import type { DIMENSIONS, MarketFilter } from '../src/catalog/dimensions.ts';
import type { MARKETS, MarketSlug } from '../src/catalog/markets.ts';
import type { PayableReference } from '../src/catalog/payable-reference.ts';
import type { DriverName } from './drivers.ts';
import type { CurrencyIso } from './reference/currencies.ts';
import type { UnitSlug } from './reference/units.ts';
import type { NameOf, VALUES } from './reference/values.ts';

type MarketEntry<M extends MarketSlug> = Extract<(typeof MARKETS)[number], { slug: M }>;

/** Every market has these three; they are written together, as `delivery`. */
type DeliveryFilter = 'incoterms' | 'countries' | 'regions';
type OwnFilter<M extends MarketSlug> = Exclude<MarketEntry<M>['filters'][number], DeliveryFilter>;

type NamesOf<K> = K extends keyof typeof VALUES ? NameOf<K> : never;
type FilterValueOf<F extends MarketFilter> = NamesOf<(typeof DIMENSIONS)[F]['kind']> | null;
type OwnValues<M extends MarketSlug> = {
  readonly [F in OwnFilter<M> as (typeof DIMENSIONS)[F]['field']]: FilterValueOf<F>;
};
type Dimensions<M extends MarketSlug> = [OwnFilter<M>] extends [never]
  ? { readonly dimensions?: never }
  : { readonly dimensions: OwnValues<M> };

/** Decimal text, exact. */
type DecimalText = `${number}`;
type Day = `${number}-${number}-${number}`;

/** The weights of shared movements in a price: 1 is in step with one. */
export type Drivers = { readonly [D in DriverName]?: number };

/** Low, mid and high of the last day; a payable has neither currency nor unit of its own. */
type SeedValues =
  | {
      readonly price: readonly [
        currency: CurrencyIso,
        unit: Exclude<UnitSlug, 'percent'>,
        low: DecimalText,
        mid: DecimalText,
        high: DecimalText,
      ];
      readonly payable?: never;
      readonly reference?: never;
    }
  | {
      readonly payable: readonly [low: DecimalText, mid: DecimalText, high: DecimalText];
      /** The price that the payable is a percentage of since its launch. */
      readonly reference: readonly [
        code: `CP-${string}-${number}`,
        side: PayableReference['side'],
        statistic: PayableReference['statistic'],
        element: string,
      ];
      readonly price?: never;
    };

/** One price as it stands in a seed file of the market `M` with the products `P`. */
export type SeedPrice<M extends MarketSlug, P extends string> = Dimensions<M> &
  SeedValues & {
    readonly code: `CP-${MarketEntry<M>['prefix']}-${number}`;
    readonly name: string;
    readonly shortName: string;
    readonly product: P;
    readonly assessed: readonly [
      category: NameOf<'price-category'>,
      frequency: NameOf<'frequency'>,
      launched: Day,
    ];
    readonly delivery: readonly [
      incoterm: FilterValueOf<'incoterms'>,
      country: FilterValueOf<'countries'>,
      region: FilterValueOf<'regions'>,
    ];
    /** The kind of a value; that of a day by default. */
    readonly observes?: Observes;
    /** Attributes without a filter: value added tax, form, footprint, reference of a payable. */
    readonly specification?: Readonly<Record<string, string>>;
    /** In place of the drivers of its product or market. */
    readonly drivers?: Drivers;
  };

export type SeedProduct = readonly [
  name: string,
  alias: string,
  chemicalCode: string,
  sustainable?: 'sustainable',
];

interface SeedMarket<M extends MarketSlug, P extends string> {
  /** The movement of its series in a year: standard deviation of the logarithm. */
  readonly volatility: number;
  /** Drivers of the outright prices of this market whose product has none. */
  readonly drivers: Drivers;
  readonly productDrivers?: { readonly [Product in P]?: Drivers };
  /** Products by the slug that their ids are made from. */
  readonly products: Readonly<Record<P, SeedProduct>>;
  readonly prices: readonly SeedPrice<M, NoInfer<P>>[];
}

/** A market's seeds after type checking, when its own dimensions no longer matter to the type. */
export interface CheckedMarket extends Omit<SeedMarket<MarketSlug, string>, 'prices'> {
  readonly slug: MarketSlug;
  readonly prices: readonly (Omit<SeedPrice<'copper', string>, 'code' | 'dimensions'> &
    SeedValues & {
      readonly code: string;
      readonly dimensions?: Readonly<Record<string, string | null>>;
    })[];
}

/**
 * The seeds of one market. A product, dimension, name or code that does not belong to the market
 * does not compile.
 */
export const seedsOf = <M extends MarketSlug, P extends string>(
  slug: M,
  market: SeedMarket<M, P>,
): CheckedMarket => ({ slug, ...market }) as CheckedMarket;
