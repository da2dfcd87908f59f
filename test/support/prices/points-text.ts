import type { PointColumns } from '../../../src/conversion/columns.ts';
import { slicesOfPoints } from '../../../src/prices/write/json.ts';

/** The points of a series as JSON, separated by commas, without brackets. */
export const pointsText = (points: PointColumns): Buffer =>
  Buffer.concat([...slicesOfPoints(points)]);
