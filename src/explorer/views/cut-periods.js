// Averages of periods that the range of a chart cuts. The module is loaded with the first averages.
import { html } from '../ui.js';

/**
 * Notes on the first and last period of averages, of which the range has only a part.
 * @param entries the prices of the chart
 * @param view `average`, `from` and `to`
 */
export function cutPeriods(entries, { average, from, to }) {
  if (!average) return [];
  const all = entries.flatMap(({ record }) => record.series);
  const isFirstCut = from !== null && all.some(({ periodStart }) => periodStart < from);
  const isLastCut = to !== null && all.some(({ periodEnd }) => periodEnd > to);
  return [
    isFirstCut && `The average of the first ${average} has only its values from ${from} on.`,
    isLastCut && `The average of the last ${average} has only its values until ${to}.`,
  ].filter(Boolean);
}

/** The notes below the prices of a chart. */
export const CutNotes = ({ entries, view }) =>
  cutPeriods(entries, view).map((note) => html`<p class="note" role="status">${note}</p>`);
