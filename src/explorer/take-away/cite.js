// The citation of a price: a line to paste under a table or a chart.
import { ROOT } from '../api.js';
import { today } from '../dates.js';
import { linkTo } from '../link.js';
import { hasSampleRates, isSample, unitText, vatOf } from '../texts.js';

const named = (record, name) =>
  record.specification.find((each) => each.name.toLowerCase() === name)?.value ?? null;

/** The source of a price with its credit and licence, from its specification; or null. */
export function sourceOf(record) {
  const parts = ['source', 'credit', 'licence', 'license'].map((name) => named(record, name));
  return parts.filter(Boolean).join(', ') || null;
}

/** Periods of the values of a price that are means, by `observes`. */
const PERIOD_OF = { 'month-mean': 'month', 'year-mean': 'year' };

const monthName = (date) =>
  new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' }).format(
    new Date(date),
  );

/**
 * The time of a value as text: `on 2026-06-30`, `mean of May 2024`.
 * @param average the period of an average, or null
 */
function timeText({ date, periodStart }, record, average) {
  const period = average ?? PERIOD_OF[record.observes];
  const start = periodStart ?? date;
  if (!period) return ` on ${date}`;
  if (period === 'month') return `, mean of ${monthName(start)}`;
  if (period === 'year') return `, mean of ${start.slice(0, 4)}`;
  return `, mean of the ${period} from ${start}`;
}

/** The newest value that the page shows, with its unit and time: `24.4 USD/lb on 2026-06-30`. */
function valueText(entry, { average }) {
  const point = entry.newestWithRate();
  if (!point) return null;
  return `${point.mid} ${unitText(entry.record)}${timeText(point, entry.record, average)}`;
}

/** True if a view changes numbers. The record shows published ones only, the chart any. */
const changesNumbers = ({ currency, unit, average, rates, vat }) =>
  Boolean(currency || unit || average || rates || vat);

/** The link to the numbers of a view as of an instant: the chart if they are not as published. */
function linkOf({ market, record }, asOf, view) {
  const { code } = record;
  const place = changesNumbers(view)
    ? { code: null, market: null, prices: [{ market, code }] }
    : { code, market, prices: [] };
  return linkTo({ ...view, ...place, filters: {}, compare: null, asOf });
}

/**
 * The citation of a price: name, code, newest value, revision, source and link.
 * @param entry a price of `seriesOf`
 * @param metadata `$metadata` of the response; the link shows the price as of its time
 * @param view the view of the numbers
 */
export function citationOf(entry, metadata, view) {
  const { record } = entry;
  const { conversion } = record;
  const source = sourceOf(record);
  const vat = vatOf(record);
  const isConverted = ['converted', 'partial'].includes(conversion?.status);
  const parts = [
    `${record.name} (${record.code})${isConverted ? ` in ${unitText(record)}` : ''}`,
    valueText(entry, view),
    isSample(record) && 'sample data',
    vat && `VAT ${vat}`,
    conversion?.source && `exchange rates: ${conversion.source}`,
    hasSampleRates(record) && 'sample exchange rates',
    `revision ${metadata.revision} of ${metadata.asOf.slice(0, 10)}`,
    source && `source: ${source}`,
    `Commodity Prices Service, ${ROOT.host}`,
    `retrieved ${today()}`,
    `${new URL('explorer', ROOT).href}${linkOf(entry, metadata.asOf, view)}`,
  ];
  return parts.filter(Boolean).join('; ');
}
