// The text in place of a chart: the range has no value, or the service had no price at the time.
import { endOf, minuteOf } from '../dates.js';
import { html } from '../ui.js';

/** A day that no line break divides. */
const Unbroken = ({ children }) => html`<span class="day">${children}</span>`;

/** The range of a view. */
function Range({ from, to }) {
  if (from && to)
    return html`from <${Unbroken}>${from}</${Unbroken}> to <${Unbroken}>${to}</${Unbroken}>`;
  return html`${from ? 'since' : 'until'} <${Unbroken}>${from ?? to}</${Unbroken}>`;
}

/** Says that no price has a value in the range, and where its values are. */
const EmptyRange = ({ app, entries, view }) => {
  const known = entries.filter(({ record }) => record.lastAssessedAt);
  return html`
    <div class="empty" role="status">
      <p>
        <strong>
          ${view.from || view.to ? html`No value <${Range} ...${view} />.` : 'No value yet.'}
        </strong>
      </p>
      ${known.map(
        ({ record: { code, assessmentLaunchedAt, lastAssessedAt } }) => html`
          <p key=${code}>
            <code>${code}</code>: the newest value is of <${Unbroken}>${lastAssessedAt}</${Unbroken}>${
              assessmentLaunchedAt &&
              html`, assessed since <${Unbroken}>${assessmentLaunchedAt}</${Unbroken}>`
            }
          </p>
        `,
      )}
      ${
        known.length > 0 &&
        html`<button type="button" onClick=${() => app.change({ from: null, to: null })}>Show all values</button>`
      }
    </div>
  `;
};

/** Says that the service had none of the prices at the chosen time, and since when it has one. */
const NotYet = ({ app, asOf, warnings }) => {
  const [since] = warnings.flatMap(({ existsSince }) => existsSince ?? []).sort();
  return html`
    <div class="empty" role="status">
      <p><strong>The service had none of these prices at ${minuteOf(endOf(asOf))}.</strong></p>
      ${
        since &&
        html`
          <p>The first of them was loaded at ${minuteOf(since)}.</p>
          <button type="button" onClick=${() => app.change({ asOf: since })}>Show that state</button>
        `
      }
    </div>
  `;
};

/**
 * The text in place of a chart.
 * @param entries the prices that the service had at the time of the view, without values
 * @param warnings the warnings of the response
 */
export const Nothing = ({ app, view, entries, warnings }) => {
  if (entries.length > 0) return html`<${EmptyRange} app=${app} entries=${entries} view=${view} />`;
  return view.asOf === null
    ? html`<p class="empty">None of the chosen prices is here.</p>`
    : html`<${NotYet} app=${app} asOf=${view.asOf} warnings=${warnings} />`;
};
