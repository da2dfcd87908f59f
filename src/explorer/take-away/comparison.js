// The comparison of a chart as columns of a file.
import { pairOf, valueOfPair, yearChange } from '../compare.js';
import { isPayable } from '../texts.js';
import { unitOf } from './files.js';

/** A column with the values of some dates, without the dates that have none. */
function columnOf(heading, { record }, valueAt) {
  const values = record.series.map(({ date }) => [date, valueAt(date)]);
  return { heading, values: new Map(values.filter(([, value]) => value !== null)) };
}

/**
 * The columns of a comparison: exact values by date, headed by the name and the unit. The headings
 * are plain ASCII, which every program reads.
 * @param entries the prices of the chart
 */
export function comparisonColumns(entries, compare) {
  if (compare === 'year') {
    return entries.map((entry) => {
      const unit = isPayable(entry.record) ? 'percentage points' : '%';
      const heading = `${entry.record.code} change from a year ago [${unit}]`;
      return columnOf(heading, entry, (date) => yearChange(entry, date));
    });
  }
  const { pair } = pairOf(entries, compare);
  const [first, second] = pair.map(({ record }) => record);
  const heading =
    compare === 'spread'
      ? `Spread: ${first.code} minus ${second.code} [${unitOf(first)}]`
      : `Ratio: ${first.code} divided by ${second.code} [ratio]`;
  return [columnOf(heading, pair[0], (date) => valueOfPair(pair, compare, date))];
}
