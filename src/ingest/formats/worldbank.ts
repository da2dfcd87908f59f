import { readShipped, shippedMapping } from '../mapping/table.ts';
import type { FileFormat } from '../records/format.ts';

const mapping = shippedMapping(new URL('worldbank.yaml', import.meta.url));

/**
 * The monthly workbook of the World Bank ("Pink Sheet"), as published. The times of publication of
 * its mapping are those of first publications; a correction was published with the edition that
 * brings it.
 */
export const worldbank: FileFormat = {
  lineage: ['worldbank'],
  needsVintage: true,
  correctedAt: 'vintage',
  read: (context) => readShipped(mapping, context),
};
