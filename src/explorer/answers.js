// The responses of a view, with its prices in the order of choice.
import { askText, exact } from './api.js';
import { dateOf, dayOf } from './dates.js';
import { seriesRequests } from './link.js';

const isOne = (code) => (record) => record.code.toLowerCase() === code.toLowerCase();

/** A response whose exact numbers are parsed lazily, because the chart does not need them. */
function answerOf(request, text) {
  const { $metadata, data } = JSON.parse(text);
  let read = null;
  const exactly = () => {
    read ??= exact(text).data;
    return read;
  };
  return { ...request, $metadata, records: data, exactly };
}

/** A price for the chart, with its exact points by date. */
function entryOf(answer, record) {
  let points = null;
  const series = () => answer.exactly().find(isOne(record.code)).series;
  return {
    market: answer.market,
    record,
    exactly: () => answer.exactly().find(isOne(record.code)),
    pointOf: (date) => {
      points ??= new Map(series().map((point) => [point.date, point]));
      return points.get(date);
    },
    newest: () => series().at(-1),
    newestWithRate: () => series().findLast(({ mid }) => mid !== null),
  };
}

/**
 * The responses of a view.
 * @returns `answers`, the responses; `entries`, their prices in the order of choice; and
 *   `comparing`, the module that compares prices, or null without a comparison
 */
export async function seriesOf(view, signal) {
  // The request for the year before the range runs at the same time.
  const comparison = comparisonOf(view, signal);
  const requests = seriesRequests(view);
  const texts = await Promise.all(requests.map(({ address }) => askText(address, signal)));
  const answers = requests.map((request, index) => answerOf(request, texts[index]));
  const entries = view.prices.flatMap(({ market, code }) => {
    const answer = answers.find((each) => each.market === market);
    const record = answer.records.find(isOne(code));
    return record ? [entryOf(answer, record)] : [];
  });
  const { comparing, earlier } = await comparison;
  for (const entry of entries) {
    entry.before = earlier.find(isOfEntry(entry)) ?? null;
  }
  return { answers, entries, comparing };
}

const isOfEntry =
  ({ market, record }) =>
  (other) =>
    other.market === market && other.record.code === record.code;

/**
 * The module that compares prices, null without a comparison, and the prices of the year before
 * the range if changes from a year ago are shown.
 */
async function comparisonOf(view, signal) {
  if (view.compare === null) return { comparing: null, earlier: [] };
  const comparing = await import('./compare.js');
  if (view.compare !== 'year' || view.from === null) return { comparing, earlier: [] };
  const range = { from: comparing.yearBefore(view.from), to: dateOf(dayOf(view.from) - 1) };
  const { entries } = await seriesOf({ ...view, ...range, compare: null }, signal);
  return { comparing, earlier: entries };
}
