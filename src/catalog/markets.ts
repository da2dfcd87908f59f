import type { MarketFilter } from './dimensions.ts';

/*
 * The catalog: markets, their filters and scopes, and how names are matched. It is data that every
 * other folder may read.
 */

/**
 * The only list of markets: routes, scopes, schemas, the OpenAPI document, seeds and tests are
 * generated from it. `filters` are the filters beyond the base filters, as in section 4.2 of the
 * specification. `prefix` starts every price code of the market.
 */
export const MARKETS = [
  {
    slug: 'lithium',
    name: 'Lithium',
    prefix: 'LI',
    filters: ['purities', 'incoterms', 'countries', 'regions', 'tradeTypes', 'grades'],
  },
  {
    slug: 'manganese',
    name: 'Manganese',
    prefix: 'MN',
    filters: ['purities', 'incoterms', 'countries', 'regions', 'tradeTypes'],
  },
  {
    slug: 'lithium-ion-battery',
    name: 'Lithium-ion battery',
    prefix: 'LB',
    filters: ['capacities', 'cellFormats', 'incoterms', 'countries', 'regions', 'tradeTypes'],
  },
  {
    slug: 'cobalt',
    name: 'Cobalt',
    prefix: 'CO',
    filters: ['purities', 'incoterms', 'countries', 'regions'],
  },
  {
    slug: 'anodes',
    name: 'Anodes',
    prefix: 'AN',
    filters: ['capacities', 'purities', 'incoterms', 'countries', 'regions'],
  },
  {
    slug: 'cathodes',
    name: 'Cathodes',
    prefix: 'CA',
    filters: ['capacities', 'incoterms', 'countries', 'regions'],
  },
  {
    slug: 'electrolyte',
    name: 'Electrolyte',
    prefix: 'EL',
    filters: ['purities', 'incoterms', 'countries', 'regions'],
  },
  {
    slug: 'natural-graphite',
    name: 'Natural graphite',
    prefix: 'NG',
    filters: ['meshSizes', 'purities', 'incoterms', 'countries', 'regions'],
  },
  {
    slug: 'rare-earths',
    name: 'Rare earths',
    prefix: 'RE',
    filters: ['purities', 'incoterms', 'countries', 'regions'],
  },
  {
    slug: 'synthetic-graphite',
    name: 'Synthetic graphite',
    prefix: 'SG',
    filters: ['purities', 'incoterms', 'countries', 'regions', 'services'],
  },
  {
    slug: 'recycling',
    name: 'Recycling',
    prefix: 'RC',
    filters: ['incoterms', 'countries', 'regions', 'subProducts', 'feedstocks'],
  },
  {
    slug: 'nickel',
    name: 'Nickel',
    prefix: 'NI',
    filters: ['purities', 'incoterms', 'countries', 'regions', 'services'],
  },
  {
    slug: 'aluminium',
    name: 'Aluminium',
    prefix: 'AL',
    filters: ['incoterms', 'countries', 'regions'],
  },
  {
    slug: 'binders-and-additives',
    name: 'Binders and additives',
    prefix: 'BA',
    filters: ['incoterms', 'countries', 'regions'],
  },
  {
    slug: 'precursor',
    name: 'Precursor',
    prefix: 'PC',
    filters: ['incoterms', 'countries', 'regions'],
  },
  {
    slug: 'solvent',
    name: 'Solvent',
    prefix: 'SO',
    filters: ['incoterms', 'countries', 'regions'],
  },
  {
    slug: 'copper',
    name: 'Copper',
    prefix: 'CU',
    filters: ['incoterms', 'countries', 'regions'],
  },
] as const satisfies readonly {
  slug: string;
  name: string;
  prefix: string;
  filters: readonly MarketFilter[];
}[];

export type MarketSlug = (typeof MARKETS)[number]['slug'];

export interface Market {
  readonly slug: MarketSlug;
  readonly name: string;
  readonly prefix: string;
  readonly filters: readonly MarketFilter[];
}

const bySlug: ReadonlyMap<string, Market> = new Map(MARKETS.map((each) => [each.slug, each]));

/** The market of a slug, compared exactly; undefined if there is none. */
export const marketOf = (slug: string): Market | undefined => bySlug.get(slug);

const byPrefix: ReadonlyMap<string, Market> = new Map(MARKETS.map((each) => [each.prefix, each]));

/** The market that a code names by its prefix, as in `CP-NI-0001`; undefined if it names none. */
export const marketOfPrefix = (code: string): Market | undefined =>
  byPrefix.get(/^CP-([A-Z]{2})-/.exec(code.toUpperCase())?.[1] ?? '');
