/**
 * The market table of the specification, section 4.2, typed by hand: what the service must be,
 * whatever its catalog says. In each line: slug, then its own filters.
 */
const TABLE = `
lithium: purities incoterms countries regions tradeTypes grades
manganese: purities incoterms countries regions tradeTypes
lithium-ion-battery: capacities cellFormats incoterms countries regions tradeTypes
cobalt: purities incoterms countries regions
anodes: capacities purities incoterms countries regions
cathodes: capacities incoterms countries regions
electrolyte: purities incoterms countries regions
natural-graphite: meshSizes purities incoterms countries regions
rare-earths: purities incoterms countries regions
synthetic-graphite: purities incoterms countries regions services
recycling: incoterms countries regions subProducts feedstocks
nickel: purities incoterms countries regions services
aluminium: incoterms countries regions
binders-and-additives: incoterms countries regions
precursor: incoterms countries regions
solvent: incoterms countries regions
copper: incoterms countries regions`;

/** Each filter and the member of a record that it looks at. */
export const FIELDS: Readonly<Record<string, string>> = {
  products: 'product',
  priceCategories: 'priceCategory',
  priceTypes: 'priceType',
  purities: 'purity',
  grades: 'grade',
  capacities: 'capacity',
  cellFormats: 'cellFormat',
  meshSizes: 'meshSize',
  subProducts: 'subProduct',
  feedstocks: 'feedstock',
  incoterms: 'incoterm',
  countries: 'country',
  regions: 'region',
  tradeTypes: 'tradeType',
  services: 'service',
};

const BASE = ['products', 'priceCategories', 'priceTypes'];

export interface SpecifiedMarket {
  readonly slug: string;
  /** Base filters first. */
  readonly filters: readonly string[];
  readonly ownFilters: readonly string[];
}

export const SPECIFIED: readonly SpecifiedMarket[] = TABLE.trim()
  .split('\n')
  .map((line) => {
    const [slug = '', own = ''] = line.split(': ');
    const ownFilters = own.split(' ');
    return { slug, ownFilters, filters: [...BASE, ...ownFilters] };
  });
