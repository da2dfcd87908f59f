// Records of an answer as the lines of a chart: values by day, gaps, colours.
import { dayOf, monthsFrom, weekdayOf } from './dates.js';
import { unitText } from './texts.js';

const isWorkday = (day) => weekdayOf(day) % 6 !== 0;

const nextWorkday = (day) => (isWorkday(day + 1) ? day + 1 : nextWorkday(day + 1));

const daysLater = (days) => (day) => day + days;
const monthsLater = (months) => (day) => monthsFrom(day, months);

/**
 * The next day after an assessment by frequency, and the most days between two assessments that
 * follow one another: a month has 28 to 31 days, and a month end may be a Sunday.
 */
const RHYTHMS = {
  Daily: { next: nextWorkday, most: 0 },
  'Twice weekly': { next: daysLater(3), most: 5 },
  Weekly: { next: daysLater(7), most: 10 },
  Fortnightly: { next: daysLater(14), most: 20 },
  Monthly: { next: monthsLater(1), most: 46 },
  Quarterly: { next: monthsLater(3), most: 137 },
  Annual: { next: monthsLater(12), most: 549 },
};

/** The frequency of the points of an average. */
const OF_PERIOD = { week: 'Weekly', month: 'Monthly', quarter: 'Quarterly', year: 'Annual' };

/** A rhythm for a frequency that this page does not know: half more than the usual distance. */
function usualRhythm(days) {
  const distances = days.slice(1).map((day, index) => day - days[index]);
  const usual = distances.sort((a, b) => a - b)[distances.length >> 1] ?? 1;
  return { next: daysLater(usual), most: usual * 1.5 };
}

/**
 * The days without a price between the first and the last point of a series.
 * @param days the days of its points, growing
 * @param frequency the name of the frequency of the price
 * @param period the period of an average, or null
 */
function missingDays(days, frequency, period) {
  const { next, most } = RHYTHMS[OF_PERIOD[period] ?? frequency] ?? usualRhythm(days);
  const missing = [];
  for (let at = 1; at < days.length; at += 1) {
    const day = days[at];
    if (day - days[at - 1] <= most) continue;
    // A month that ends on the 30th is a day short of one that ends on the 31st.
    const slack = most === 0 ? 0 : most / 3;
    for (let each = next(days[at - 1]); each < day - slack; each = next(each)) missing.push(each);
  }
  return missing;
}

/**
 * The line of a price: its values by day. These are numbers of JavaScript, for pixels only.
 * @param record a record of an answer with its series
 * @param average the period of an average, or null
 */
export function lineOf(record, average) {
  const { series } = record;
  const days = series.map(({ date }) => dayOf(date));
  return {
    code: record.code,
    label: record.shortName ?? record.code,
    unit: unitText(record),
    days,
    mid: series.map(({ mid }) => mid),
    low: series.map(({ low }) => low),
    high: series.map(({ high }) => high),
    missing: missingDays(days, record.frequency?.name, average),
    corrected: series.flatMap(({ corrections }, at) => (corrections > 0 ? [days[at]] : [])),
  };
}

/**
 * The line as an index: its first visible value is 100. Null where that value is not above zero,
 * because a premium below zero has no ratio.
 */
export function indexed(line) {
  const base = line.mid.find((each) => each !== null);
  if (base === undefined || base <= 0) return null;
  const scaled = (values) => values.map((each) => (each === null ? null : (each / base) * 100));
  const { mid, low, high } = line;
  return { ...line, unit: 'Index', mid: scaled(mid), low: scaled(low), high: scaled(high) };
}

/**
 * The units of each panel: the first two share one, with an axis on each side; every further unit
 * has a panel of its own.
 */
export function panelsOf(lines) {
  const units = [...new Set(lines.map(({ unit }) => unit))];
  const panels = units.slice(2).map((unit) => [unit]);
  return units.length === 0 ? [] : [units.slice(0, 2), ...panels];
}

// Colours of lines, apart for light and dark. Each eight were searched for the greatest distance
// of any two of them, to a full view and to the three common colour-vision deficiencies, at a
// contrast of at least 3:1 to the background. The test of the palette measures both again.

/** Eight colours on white. */
export const LIGHT = [
  '#0d57db',
  '#eb6d11',
  '#4fa185',
  '#ac347e',
  '#4e0094',
  '#596101',
  '#ab7ce3',
  '#66232e',
];

/** Eight colours on the dark panel. */
export const DARK = [
  '#8df1f8',
  '#f19815',
  '#29b79e',
  '#b44aa8',
  '#c49aff',
  '#d0eb28',
  '#4b69fb',
  '#e13006',
];

/** Dashes on noisy daily lines read as dust: lines are solid for as long as colours are enough. */
const DASHES = [undefined, [8, 4], [2, 3]];

/** The colour and dashes of a line by its place, of at most 20. */
export const strokeOf = (place, isDark) => ({
  stroke: (isDark ? DARK : LIGHT)[place % 8],
  dash: DASHES[Math.floor(place / 8)],
});
