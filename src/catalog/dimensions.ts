/**
 * The dimensions a price can be filtered by. `filter` is the name in a request, `field` the
 * name in a record (and, in snake case with `_id`, the column of `price`), `kind` the value of
 * `dimension_value.kind`.
 */
interface Dimension {
  readonly filter: string;
  readonly field: string;
  readonly kind: string;
  readonly description: string;
}

const dimension = <
  const Filter extends string,
  const Field extends string,
  const Kind extends string,
>(
  filter: Filter,
  field: Field,
  kind: Kind,
  description: string,
) => ({ filter, field, kind, description }) satisfies Dimension;

/** Dimensions of only some markets, in the order of records. */
export const DIMENSIONS = {
  purities: dimension('purities', 'purity', 'purity', 'Purity or grade of the material'),
  grades: dimension('grades', 'grade', 'grade', 'Commercial grade'),
  capacities: dimension('capacities', 'capacity', 'capacity', 'Capacity of the cell or material'),
  cellFormats: dimension('cellFormats', 'cellFormat', 'cell-format', 'Format of the battery cell'),
  meshSizes: dimension('meshSizes', 'meshSize', 'mesh-size', 'Particle size as a sieve mesh'),
  subProducts: dimension('subProducts', 'subProduct', 'sub-product', 'Material recovered'),
  feedstocks: dimension('feedstocks', 'feedstock', 'feedstock', 'Material that is recycled'),
  incoterms: dimension('incoterms', 'incoterm', 'incoterm', 'Delivery terms (Incoterms 2020)'),
  countries: dimension('countries', 'country', 'country', 'Country of the delivery point'),
  regions: dimension('regions', 'region', 'region', 'Region of the delivery point'),
  tradeTypes: dimension('tradeTypes', 'tradeType', 'trade-type', 'Direction of the trade'),
  services: dimension('services', 'service', 'service', 'Service that the price is for'),
} as const;

/** The column of `price` for a text of a record: `shortName` → `short_name`. */
export const snakeCase = (field: string): string =>
  field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The column of `price` for a dimension of a record: `cellFormat` → `cell_format_id`. */
export const columnName = (field: string): string => `${snakeCase(field)}_id`;

export type MarketFilter = keyof typeof DIMENSIONS;
type DimensionKind = (typeof DIMENSIONS)[MarketFilter]['kind'];

/** The filters of every market. Their values are stored apart from the dimensions above. */
export const BASE_FILTERS = {
  products: { filter: 'products', field: 'product', description: 'Product that is priced' },
  priceCategories: {
    filter: 'priceCategories',
    field: 'priceCategory',
    description: 'Category: spot, contract, exchange, index …',
  },
  priceTypes: {
    filter: 'priceTypes',
    field: 'priceType',
    description: 'Price (money) or Payable (a percentage)',
  },
} as const;

type BaseFilter = keyof typeof BASE_FILTERS;
export type FilterName = BaseFilter | MarketFilter;

/** Kinds of reference value that are not a market's own dimension. */
const BASE_KINDS = ['price-category', 'price-type', 'frequency'] as const;
type BaseKind = (typeof BASE_KINDS)[number];

/** All values of `dimension_value.kind`. */
export type ValueKind = DimensionKind | BaseKind;
