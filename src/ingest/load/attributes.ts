import { DIMENSIONS } from '../../catalog/dimensions.ts';

/** The fields of a record that are dimensions of some market. */
export const DIMENSION_FIELDS: readonly string[] = Object.values(DIMENSIONS).map(
  (each) => each.field,
);

/** What a file may say about a price besides its code, by the names of an answer. */
export const ATTRIBUTES: readonly string[] = [
  'market',
  'name',
  'shortName',
  'product',
  'priceCategory',
  'priceType',
  'frequency',
  'currency',
  'unitOfMeasure',
  'assessmentLaunchedAt',
  'specification',
  ...DIMENSION_FIELDS,
];

/** What a file says of a point. */
export const POINT_FIELDS: readonly string[] = [
  'code',
  'date',
  'low',
  'mid',
  'high',
  'publishedAt',
];
