// Lines that compare prices: the spread or ratio of two, and the change of each from a year ago.
import { dateOf, dayOf, monthsFrom } from './dates.js';
import { difference, percentChange, ratio } from './decimals.js';
import { lineOf, yearBaseDaysMax } from './series.js';
import { isPayable, NOTHING, unitText } from './texts.js';
import { figure, html, signed } from './ui.js';

/** Comparisons with two prices. */
const OF_TWO = ['spread', 'ratio'];

/** True if two prices are in one currency and unit. A ratio of other prices is no number. */
const areAlike = ([first, second]) => unitText(first.record) === unitText(second.record);

/**
 * The prices of a spread or ratio.
 * @returns `pair`, the first two prices or null, and `why`, the reason why they have none
 */
export function pairOf(entries, compare) {
  if (!OF_TWO.includes(compare)) return { pair: null };
  if (entries.length < 2) return { pair: null, why: `A ${compare} needs two prices.` };
  if (!areAlike(entries)) {
    return {
      pair: null,
      why: `A ${compare} needs two prices in one currency and unit: choose both above.`,
    };
  }
  return { pair: entries.slice(0, 2) };
}

/** The sentence in place of the button for a workbook. */
export const NO_WORKBOOK = 'The service has no comparisons: for Excel choose other columns.';

/** The forms of a file with the comparison: none if the prices cannot be compared. */
export const formsOf = (entries, compare) =>
  compare === 'year' || pairOf(entries, compare).pair !== null
    ? [['compared', 'Wide, comparison']]
    : [];

/** The name of a comparison of two prices. */
export function nameOfPair([first, second], compare) {
  const [name, sign] = compare === 'spread' ? ['Spread', '−'] : ['Ratio', '÷'];
  return `${name}: ${first.record.code} ${sign} ${second.record.code}`;
}

/** The days between consecutive common days, by the number of the common days before them. */
function daysBetween({ days, missing }, common) {
  const groups = new Map();
  let at = 0;
  for (const day of [...days, ...missing].sort((a, b) => a - b)) {
    while (common[at] <= day) at += 1;
    if (at === 0 || at === common.length || common[at - 1] === day) continue;
    if (!groups.has(at)) groups.set(at, []);
    groups.get(at).push(day);
  }
  return groups;
}

/**
 * The gaps of a comparison: between two common days, both prices have or lack a value. A rarer price
 * has none between its assessments, so that the line crosses the days of the other one.
 */
function gapsOf(lines, common) {
  const [first, second] = lines.map((line) => daysBetween(line, common));
  return [...first].flatMap(([at, days]) => (second.has(at) ? days : []));
}

/**
 * The line of a comparison of two prices, on the days that both have.
 * @param average the period of an average, or null
 */
export function lineOfPair(pair, compare, average) {
  const [first, second] = pair.map(({ record }) => lineOf(record, average));
  const others = new Map(second.days.map((day, at) => [day, second.mid[at]]));
  const points = first.days.flatMap((day, at) => {
    const mid = first.mid[at];
    const other = others.get(day) ?? null;
    if (mid === null || other === null || (compare === 'ratio' && other === 0)) return [];
    return [{ day, mid: compare === 'spread' ? mid - other : mid / other }];
  });
  const none = points.map(() => null);
  const days = points.map(({ day }) => day);
  return {
    code: nameOfPair(pair, compare),
    label: compare === 'spread' ? 'Spread' : 'Ratio',
    unit: compare === 'spread' ? `Spread, ${first.unit}` : 'Ratio',
    isApart: true,
    days,
    mid: points.map(({ mid }) => mid),
    low: none,
    high: none,
    missing: gapsOf([first, second], days),
    corrected: [],
  };
}

/** The exact value of a comparison at a date, as text; null if a price has no value. */
export function valueOfPair(pair, compare, date) {
  const [a, b] = pair.map((each) => each.pointOf(date)?.mid);
  return compare === 'spread' ? difference(a, b) : ratio(a, b);
}

function newestCommon([{ record }, { pointOf }]) {
  const common = record.series.findLast(
    ({ date, mid }) => mid !== null && (pointOf(date)?.mid ?? null) !== null,
  );
  return common?.date;
}

/**
 * The value about a year before each point: `entry`, which has it, its `date` and its `mid` for
 * drawing. Null without one, or if a change in percent of it has no meaning.
 */
function basesOf(entry) {
  const { record, before } = entry;
  const known = [before, entry].flatMap((each) =>
    (each?.record.series ?? []).flatMap(({ date, mid }) =>
      mid === null ? [] : [{ entry: each, date, day: dayOf(date), mid }],
    ),
  );
  const most = yearBaseDaysMax(record.frequency?.name);
  let next = 0;
  return record.series.map(({ date, mid }) => {
    const target = monthsFrom(dayOf(date), -12);
    while (next < known.length && known[next].day <= target) next += 1;
    const base = known[next - 1];
    if (mid === null || !base || target - base.day > most) return null;
    return isPayable(record) || base.mid > 0 ? base : null;
  });
}

/** The line of changes from a year ago, over the line of a price. */
export function lineOfYear(line, entry) {
  const { record } = entry;
  const mid = basesOf(entry).map((base, at) => {
    if (base === null) return null;
    return isPayable(record) ? line.mid[at] - base.mid : (line.mid[at] / base.mid - 1) * 100;
  });
  const none = mid.map(() => null);
  const unit = isPayable(record) ? 'pp from a year ago' : '% from a year ago';
  return { ...line, unit, mid, low: none, high: none, corrected: [] };
}

/** The bases of each entry by date: each move of the cursor reads them. */
const years = new WeakMap();

/**
 * The exact change of a price from its value about a year before a date, as text: in percent, of a
 * payable in percentage points. Null without such a value.
 */
export function yearChange(entry, date) {
  const { record } = entry;
  if (!years.has(entry)) {
    const bases = basesOf(entry);
    years.set(entry, new Map(record.series.map((point, at) => [point.date, bases[at]])));
  }
  const base = years.get(entry).get(date);
  if (!base) return null;
  const mids = [base.entry.pointOf(base.date).mid, entry.pointOf(date).mid];
  return isPayable(record) ? difference(mids[1], mids[0]) : percentChange(...mids);
}

/** The change of a price from a year ago at a point, as text with its unit. */
export function yearText(entry, point) {
  const change = point && yearChange(entry, point.date);
  if (!change) return null;
  return isPayable(entry.record)
    ? `${signed(change).text} pp from a year ago`
    : `${signed(Number(change).toFixed(1)).text} % from a year ago`;
}

/** The first day of the points that changes from a year ago need. */
export const yearBefore = (from) =>
  dateOf(monthsFrom(dayOf(from), -12) - yearBaseDaysMax('Annual'));

/** The spread or ratio of the first two prices at the cursor, or the newest one. */
export const PairRow = ({ pair, compare, date: chosen }) => {
  const date = chosen ?? newestCommon(pair);
  const text = date ? valueOfPair(pair, compare, date) : null;
  return html`
    <tr>
      <td class="swatch">
        <svg width="26" height="10" aria-hidden="true">
          <path d="M0 5H26" stroke="currentColor" stroke-width="3" />
        </svg>
      </td>
      <th scope="row" class="wide">${nameOfPair(pair, compare)}</th>
      <td class="code"></td>
      <td class="number"></td>
      <td class="number strong">${text === null ? NOTHING : figure(text)}</td>
      <td class="number"></td>
      <td class="unit">${compare === 'spread' && unitText(pair[0].record)}</td>
      <td class="date">${date ?? NOTHING}</td>
      <td class="remove"></td>
    </tr>
  `;
};
