// The citation of a price: a line to paste under a table or a chart.
import { ROOT } from '../api.js';
import { today } from '../dates.js';
import { linkTo } from '../link.js';

const named = (record, name) =>
  record.specification.find((each) => each.name.toLowerCase() === name)?.value ?? null;

/** The source of a price with its credit and licence, from its specification; or null. */
export function sourceOf(record) {
  const parts = ['source', 'credit', 'licence', 'license'].map((name) => named(record, name));
  return parts.filter(Boolean).join(', ') || null;
}

/** The text on VAT of a price, from its specification; or null. */
export const vatOf = (record) => named(record, 'vat');

/**
 * The citation of a price: name, code, day of the last value, revision, source and link.
 * @param metadata `$metadata` of the response; the link shows the price as of its time
 */
export function citationOf({ market, record }, metadata, view) {
  const link = linkTo({
    ...view,
    code: record.code,
    market,
    filters: {},
    prices: [],
    asOf: metadata.asOf,
  });
  const source = sourceOf(record);
  const date = record.series.at(-1)?.date;
  const parts = [
    `${record.name} (${record.code})`,
    date && `value of ${date}`,
    `revision ${metadata.revision} of ${metadata.asOf.slice(0, 10)}`,
    source && `source: ${source}`,
    `Commodity Prices Service, ${ROOT.host}`,
    `retrieved ${today()}`,
    `${new URL('explorer', ROOT).href}${link}`,
  ];
  return parts.filter(Boolean).join('; ');
}
