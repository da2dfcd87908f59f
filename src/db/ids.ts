import { v5 } from 'uuid';
import type { ValueKind } from '../catalog/dimensions.ts';

/** Must never change: every published id is derived from it. */
const NAMESPACE = '54381723-490d-4692-90f0-31f177eb7534';

/**
 * The id of a reference row: UUID version 5 of `kind/slug` in a fixed namespace, so that a row has
 * the same id in every database: `incoterm/cif`, `currency/usd`, `unit/tonne`. The path
 * of a product begins with its market: `product/nickel/met`.
 */
export const idOf = (
  kind: ValueKind | 'currency' | 'unit' | 'product',
  ...path: string[]
): string => v5([kind, ...path].join('/'), NAMESPACE);
