// Lines that compare prices: the spread or ratio of two, and the change of each from a year ago.
import { dateOf, dayOf, monthsFrom } from './dates.js';
import { difference, ratio } from './decimals.js';
import { lineOf, yearBaseDaysMax } from './series.js';
import { isPayable, NOTHING, unitText } from './texts.js';
import { figure, html, signed } from './ui.js';

/** Comparisons with two prices. */
const OF_TWO = ['spread', 'ratio'];

/** Places of a shown ratio. */
const PLACES = 4;

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

/** The name of a comparison of two prices. */
function nameOfPair([first, second], compare) {
  const [name, sign] = compare === 'spread' ? ['Spread', '−'] : ['Ratio', '÷'];
  return `${name}: ${first.record.code} ${sign} ${second.record.code}`;
}

/** The line of a comparison of two prices, on the days that both have. */
export function lineOfPair(pair, compare) {
  const [first, second] = pair.map(({ record }) => record);
  const others = new Map(second.series.map(({ date, mid }) => [date, mid]));
  const points = first.series.flatMap(({ date, mid }) => {
    const other = others.get(date) ?? null;
    if (mid === null || other === null || (compare === 'ratio' && other === 0)) return [];
    return [{ day: dayOf(date), mid: compare === 'spread' ? mid - other : mid / other }];
  });
  const none = points.map(() => null);
  return {
    code: nameOfPair(pair, compare),
    label: compare === 'spread' ? 'Spread' : 'Ratio',
    unit: compare === 'spread' ? `Spread, ${unitText(first)}` : 'Ratio',
    isApart: true,
    days: points.map(({ day }) => day),
    mid: points.map(({ mid }) => mid),
    low: none,
    high: none,
    missing: [],
    corrected: [],
  };
}

/** The exact value of a comparison at a day, or at the newest common one. */
function valueOfPair([first, second], compare, date) {
  const at = date ?? newestCommon(first, second);
  const [a, b] = [first, second].map((each) => (at ? each.pointOf(at)?.mid : null));
  const text = compare === 'spread' ? difference(a, b) : ratio(a, b, PLACES);
  return { date: at, text };
}

function newestCommon({ record }, { pointOf }) {
  const common = record.series.findLast(
    ({ date, mid }) => mid !== null && (pointOf(date)?.mid ?? null) !== null,
  );
  return common?.date;
}

/**
 * The change of each point from a year ago: in percent, for a payable in percentage points. Null
 * without an assessment about a year ago, or if the value of that is not above zero.
 * @param before the points of the year before those of the record
 */
function yearChanges(record, before) {
  const known = [...before, ...record.series]
    .filter(({ mid }) => mid !== null)
    .map(({ date, mid }) => ({ day: dayOf(date), mid }));
  const most = yearBaseDaysMax(record.frequency?.name);
  let next = 0;
  return record.series.map(({ date, mid }) => {
    const target = monthsFrom(dayOf(date), -12);
    while (next < known.length && known[next].day <= target) next += 1;
    const base = known[next - 1];
    if (mid === null || !base || target - base.day > most) return null;
    if (isPayable(record)) return mid - base.mid;
    return base.mid > 0 ? (mid / base.mid - 1) * 100 : null;
  });
}

/** The line of changes from a year ago, over the line of a price. */
export function lineOfYear(line, record, before) {
  const mid = yearChanges(record, before);
  const none = mid.map(() => null);
  const unit = isPayable(record) ? 'pp from a year ago' : '% from a year ago';
  return { ...line, unit, mid, low: none, high: none, corrected: [] };
}

/** The first day of the points that changes from a year ago need. */
export const yearBefore = (from) =>
  dateOf(monthsFrom(dayOf(from), -12) - yearBaseDaysMax('Annual'));

/** The changes from a year ago by record: each move of the cursor reads them. */
const years = new WeakMap();

/** The change of a price from a year ago at a point, as text. */
export function yearText({ record, before }, point) {
  if (!point) return null;
  if (!years.has(record)) years.set(record, lineOfYear(lineOf(record, null), record, before));
  const line = years.get(record);
  const value = line.mid[line.days.indexOf(dayOf(point.date))];
  if (value === null || value === undefined) return null;
  return `${signed(value.toFixed(1)).text} ${line.unit}`;
}

/** The spread or ratio of the first two prices at the cursor, or the newest one. */
export const PairRow = ({ pair, compare, date: chosen }) => {
  const { date, text } = valueOfPair(pair, compare, chosen);
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
