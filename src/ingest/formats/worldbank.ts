import type { Format } from './format.ts';
import { readShipped, shippedMapping } from './shipped.ts';

const mapping = shippedMapping('worldbank.yaml');

/**
 * The monthly workbook of the World Bank ("Pink Sheet"), as published. The times of publication of
 * its mapping are those of first publications; a correction was published with the edition that
 * brings it.
 */
export const worldbank: Format = {
  lineage: ['worldbank'],
  needsVintage: true,
  correctedAt: 'vintage',
  read: (context) => readShipped(mapping, context),
};
