import type { PointColumns } from '../../../src/conversion/columns.ts';
import { ByteWriter } from '../../../src/prices/write/bytes.ts';
import { pointSlices } from '../../../src/prices/write/json.ts';

/** The points of a series as JSON in slices, separated by commas, without brackets. */
export function pointTexts(points: PointColumns): Buffer[] {
  const out = new ByteWriter('null');
  return [...pointSlices(out, points, false), out.end()];
}

/** The text of `pointTexts`. */
export const pointsText = (points: PointColumns): Buffer => Buffer.concat(pointTexts(points));
