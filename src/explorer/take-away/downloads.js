// This folder has the files, programs and texts that a reader takes along from a chart. Its modules
// are loaded when one of them is chosen. This module makes the downloads: CSV, XLSX, PNG and citations.
import { ask, askText, ROOT, Unreachable } from '../api.js';
import { clockTime, endOf, minuteOf } from '../dates.js';
import { counted, hasSampleRates, isSample, remarkOf, unitText, vatOf } from '../texts.js';
import { cutPeriods } from '../views/cut-periods.js';
import { citationOf, sourceOf } from './cite.js';
import { fileAddress, fileName, joined, priceColumns, wideFile } from './files.js';
import { pictureOf } from './picture.js';
import { save } from './save.js';

/** The note on a price below the chart in a PNG. It explains the values without the page. */
function noteOf({ record }) {
  const vat = vatOf(record);
  const source = sourceOf(record);
  const lacking = record.series.filter(({ mid }) => mid === null).length;
  return [
    `${record.code}: ${record.name}, ${unitText(record)}`,
    record.priceCategory?.name.toLowerCase(),
    vat && `VAT ${vat}`,
    source && `source: ${source}`,
    lacking > 0 && `${counted(lacking, 'value')} of ${record.series.length} without a rate`,
  ]
    .filter(Boolean)
    .join('; ');
}

/** The notes below the chart in a PNG: every price, the options, the warnings and the source. */
function notesOf({ entries, answers, comparing, view, warnings }) {
  const { pair } = comparing?.pairOf(entries, view.compare) ?? {};
  const records = entries.map(({ record }) => record);
  const lines = entries.map(noteOf);
  const rates = [...new Set(records.map(({ conversion }) => conversion?.source).filter(Boolean))];
  const options = [
    view.average && `average of each ${view.average}`,
    view.currency && `in ${view.currency}`,
    view.unit && `per ${view.unit}`,
    rates.length > 0 && `exchange rates: ${rates.join(', ')}`,
    view.rates && 'means converted by the mean rates of their period',
    view.compare === 'year' && 'change from a year ago',
    pair && comparing.nameOfPair(pair, view.compare),
    view.index && 'as an index, 100 at the first value shown',
    view.asOf && `as it was known at ${minuteOf(endOf(view.asOf))}`,
  ].filter(Boolean);
  if (options.length > 0) lines.push(options.join('; '));
  lines.push(...cutPeriods(entries, view), ...warnings.map(remarkOf));
  const samples = records.filter(isSample);
  if (samples.length > 0) {
    const which = samples.length === records.length ? 'the' : `${samples.length} of these`;
    lines.push(`Sample data: ${which} prices are invented for demonstration`);
  }
  if (records.some(hasSampleRates)) lines.push('Sample exchange rates, invented for demonstration');
  const revisions = [...new Set(answers.map(({ $metadata }) => $metadata.revision))];
  return [...lines, `Commodity Prices Service, ${ROOT.host}, revision ${revisions.join(', ')}`];
}

/**
 * The CSV of all prices of a chart: wide, with its comparison or without, or the rows of each
 * market one after another.
 */
async function csvOf({ answers, entries, view }, form, kind) {
  if (form === 'wide' || form === 'compared') {
    const columns = priceColumns(entries.map(({ exactly }) => exactly()));
    if (form === 'wide') return wideFile(columns, kind);
    const { comparisonColumns } = await import('./comparison.js');
    return wideFile([...columns, ...comparisonColumns(entries, view.compare)], kind);
  }
  const records = entries.map(({ record }) => record);
  const texts = answers.map(({ address }) => askText(fileAddress(address, form, records, kind)));
  return joined(await Promise.all(texts));
}

/**
 * Saves the prices of a chart as CSV.
 * @param shown `answers`, `entries`, `comparing`, `view`, `warnings`, and `picture(isDark)` of the chart
 * @param form the columns of the file
 * @param kind `csv` or `semicolon`
 * @returns a sentence about the saved file
 */
export async function saveCsv(shown, form, kind) {
  // Reading the texts of the service has removed their byte-order marks.
  const mark = kind === 'semicolon' ? '\ufeff' : '';
  const file = new Blob([mark, await csvOf(shown, form, kind)], { type: 'text/csv' });
  const shape = { compared: `-${shown.view.compare}`, wide: '-wide' }[form] ?? '';
  const semicolons = kind === 'semicolon' ? '-semicolons' : '';
  save(file, fileName(shown.entries, `${shape}${semicolons}.csv`));
  return `Saved ${file.size} bytes at ${clockTime(new Date())}`;
}

/** Saves the prices of a chart as XLSX: a workbook for each market, as the service makes it. */
export async function saveWorkbooks({ answers, entries }, form) {
  const records = entries.map(({ record }) => record);
  const files = await Promise.all(
    answers.map(async ({ address }) => {
      const answer = await ask(fileAddress(address, form, records, 'xlsx'));
      return answer.blob().catch(() => {
        throw new Unreachable('The answer of the service broke off');
      });
    }),
  );
  for (const [at, file] of files.entries()) {
    const { market } = answers[at];
    const own = entries.filter((entry) => entry.market === market);
    save(file, fileName(own, form === 'wide' ? '-wide.xlsx' : '.xlsx'));
  }
  const what = files.length === 1 ? `${files[0].size} bytes` : `${files.length} workbooks`;
  return `Saved ${what} at ${clockTime(new Date())}`;
}

/** Saves the chart as PNG, in light colours for printing or in dark ones. */
export async function savePicture(shown, isDark) {
  const { picture, entries, view } = shown;
  const names = entries.map(({ record }) => record.name);
  const [first, ...others] = names;
  const title =
    others.length > 1
      ? `${first} and ${counted(others.length, 'more price')}`
      : names.join(' and ');
  const { lines, theme } = picture(isDark);
  const mode = { theme, log: view.log, bands: view.bands };
  const blob = await pictureOf(lines, { title, notes: notesOf(shown) }, mode);
  save(blob, fileName(entries, '.png'));
  return `Saved the picture at ${clockTime(new Date())}`;
}

/** The citation of each price, a line each. */
export const citations = ({ answers, entries, view }) =>
  entries
    .map((entry) => {
      const { $metadata } = answers.find(({ market }) => market === entry.market);
      return citationOf(entry, $metadata, view);
    })
    .join('\n');
