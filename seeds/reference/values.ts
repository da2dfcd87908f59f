import type { ValueKind } from '../../src/catalog/dimensions.ts';
import { CAPACITIES } from './capacities.ts';
import { FREQUENCIES, PRICE_CATEGORIES, PRICE_TYPES } from './categories.ts';
import { COUNTRIES, INCOTERMS, REGIONS, TRADE_TYPES } from './delivery.ts';
import {
  CELL_FORMATS,
  FEEDSTOCKS,
  GRADES,
  MESH_SIZES,
  SERVICES,
  SUB_PRODUCTS,
} from './materials.ts';
import { PURITIES } from './purities.ts';

/**
 * Every reference value: kind → slug → name. The slug is what its id is made from, so it never
 * changes; the name may.
 */
export const VALUES = {
  'price-category': PRICE_CATEGORIES,
  'price-type': PRICE_TYPES,
  frequency: FREQUENCIES,
  purity: PURITIES,
  grade: GRADES,
  capacity: CAPACITIES,
  'cell-format': CELL_FORMATS,
  'mesh-size': MESH_SIZES,
  'sub-product': SUB_PRODUCTS,
  feedstock: FEEDSTOCKS,
  incoterm: INCOTERMS,
  country: COUNTRIES,
  region: REGIONS,
  'trade-type': TRADE_TYPES,
  service: SERVICES,
} as const satisfies Record<ValueKind, Readonly<Record<string, string>>>;

/** The names of one kind. */
export type NameOf<K extends keyof typeof VALUES> = (typeof VALUES)[K][keyof (typeof VALUES)[K]];
