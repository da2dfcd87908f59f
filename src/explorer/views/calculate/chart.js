// The results of a series of anchors as a line.
import { dayOf } from '../../dates.js';
import { figure, html } from '../../ui.js';
import { Spark } from '../spark.js';

/** The line of results. One without a value is a gap. */
export const lineOfResults = (results) => ({
  code: 'result',
  text: 'result',
  unit: results.find(({ value }) => value !== null)?.unit ?? '',
  days: results.map(({ anchor }) => dayOf(anchor)),
  mid: results.map(({ value }) => (value === null ? null : Number(value))),
  low: results.map(() => null),
  high: results.map(() => null),
  missing: [],
  corrected: [],
});

/** The results by anchor, with the highest and the lowest one beside the line. */
export function ResultsChart({ results }) {
  const line = lineOfResults(results);
  const known = results.filter(({ value }) => value !== null);
  if (known.length < 2) return null;
  const extreme = (sign) =>
    known.reduce((a, b) => (sign * Number(b.value) > sign * Number(a.value) ? b : a));
  const text = ({ value, anchor }) =>
    html`<strong>${figure(value)}</strong> ${line.unit} <span class="day">${anchor}</span>`;
  return html`
    <figure class="results-chart">
      <figcaption class="row spread">
        <span>High ${text(extreme(1))}</span><span>Low ${text(extreme(-1))}</span>
      </figcaption>
      <${Spark} line=${line} first=${line.days[0]} last=${line.days.at(-1)} width=${800} height=${180} />
      <div class="row spread quiet small"><span>${results[0].anchor}</span><span>${results.at(-1).anchor}</span></div>
    </figure>
  `;
}
