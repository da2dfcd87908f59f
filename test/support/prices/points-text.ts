import type { PointColumns } from '../../../src/conversion/columns.ts';
import { encodePoints } from '../../../src/prices/write/json.ts';

/** The points of a series as JSON, separated by commas, without brackets. */
export const pointsText = (points: PointColumns): Buffer =>
  encodePoints(points, new Uint32Array(points.length)).subarray(1);
