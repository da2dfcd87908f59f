import { readShipped, shippedMapping } from '../mapping/table.ts';
import type { FileFormat } from '../records/format.ts';

const mapping = shippedMapping(new URL('worldbank.yaml', import.meta.url));

/**
 * Reads the monthly workbook of the World Bank ("Pink Sheet"), as published. Publication times in
 * its mapping are those of first publications; a correction counts as published with its edition.
 */
export const worldbank: FileFormat = {
  lineage: ['worldbank'],
  needsVintage: true,
  correctedAt: 'vintage',
  read: (context) => readShipped(mapping, context),
};
