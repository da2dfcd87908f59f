// Chart lines from the records of a response: values by day, gaps, colours.
import { dayOf, monthsFrom, weekdayOf } from './dates.js';
import { unitText } from './texts.js';

const isWorkday = (day) => weekdayOf(day) % 6 !== 0;

const nextWorkday = (day) => (isWorkday(day + 1) ? day + 1 : nextWorkday(day + 1));

const daysLater = (days) => (day) => day + days;
const monthsLater = (months) => (day) => monthsFrom(day, months);

/**
 * By frequency: the expected day of the next assessment, and the maximum days between consecutive
 * assessments. A month has 28 to 31 days, and its end may be a Sunday.
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

/** Days after which the newest value is old: about two intervals and a few holidays. */
const OLD_DAYS = {
  Daily: 7,
  'Twice weekly': 10,
  Weekly: 16,
  Fortnightly: 32,
  Monthly: 75,
  Quarterly: 200,
  Annual: 731,
};

/**
 * The age of the newest value of a price in days, or null if it is usual for the frequency.
 * @param date the day of the value
 * @param until the day on which it is shown
 */
export function oldAge(date, frequency, until) {
  const days = dayOf(until) - dayOf(date);
  return days > (OLD_DAYS[frequency] ?? Number.POSITIVE_INFINITY) ? days : null;
}

/** Days that the base of a change may lie before the day that its span names: a few holidays. */
export const BASE_DAYS_MAX = 14;

/** Days that the base of a change may lie before the day a year ago: an interval of the price. */
export const yearBaseDaysMax = (frequency) =>
  Math.max(BASE_DAYS_MAX, RHYTHMS[frequency]?.most ?? RHYTHMS.Monthly.most);

/** The frequency of the points of an average. */
const OF_PERIOD = { week: 'Weekly', month: 'Monthly', quarter: 'Quarterly', year: 'Annual' };

/** The rhythm of an unknown frequency: gaps start at one and a half times the median distance. */
function usualRhythm(days) {
  const distances = days.slice(1).map((day, index) => day - days[index]);
  const usual = distances.sort((a, b) => a - b)[distances.length >> 1] ?? 1;
  return { next: daysLater(usual), most: usual * 1.5 };
}

/**
 * The days without a price between the first and the last point of a series.
 * @param days the days of its points, ascending
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
 * The line of a price: its values by day, as JavaScript numbers for drawing only.
 * @param record a record of a response with its series
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
 * The line as an index whose first visible value is 100. Null if that value is not above zero:
 * a ratio to a negative premium has no meaning.
 */
export function indexed(line) {
  const base = line.mid.find((each) => each !== null);
  if (base === undefined || base <= 0) return null;
  const scaled = (values) => values.map((each) => (each === null ? null : (each / base) * 100));
  const { mid, low, high } = line;
  return { ...line, unit: 'Index', mid: scaled(mid), low: scaled(low), high: scaled(high) };
}

/**
 * The units of each panel. The first two units share a panel with two axes. Every further unit,
 * and every unit of lines with `isApart`, has its own panel.
 */
export function panelsOf(lines) {
  const unitsOf = (some) => [...new Set(some.map(({ unit }) => unit))];
  const units = unitsOf(lines.filter(({ isApart }) => !isApart));
  const apart = unitsOf(lines.filter(({ isApart }) => isApart));
  const panels = [...units.slice(2), ...apart].map((unit) => [unit]);
  return units.length === 0 ? [] : [units.slice(0, 2), ...panels];
}

// Line colours of the light and the dark theme. Each palette maximizes the smallest distance of
// two colours, for normal vision and the three common colour-vision deficiencies, at a contrast
// of at least 3:1 to the background. The palette test measures both.

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

/** Dashes are used only when colours run out, because dashed daily lines are hard to read. */
const DASHES = [undefined, [8, 4], [2, 3]];

/** The colour and dashes of a line by its index, below 20. */
export const strokeOf = (place, isDark) => ({
  stroke: (isDark ? DARK : LIGHT)[place % 8],
  dash: DASHES[Math.floor(place / 8)],
});
