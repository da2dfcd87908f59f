// What a chart or a record says in place of values: the range or the time has none.
import { endOf, minuteOf } from '../dates.js';
import { html } from '../ui.js';

/** The range of a view as text. */
function rangeText({ from, to }) {
  if (from && to) return `from ${from} to ${to}`;
  return from ? `since ${from}` : `until ${to}`;
}

/** Says that no price has a value in the range, and where its values are. */
export const EmptyRange = ({ app, entries, view }) => {
  const known = entries.filter(({ record }) => record.lastAssessedAt);
  return html`
    <div class="empty" role="status">
      ${
        view.from || view.to
          ? html`<p><strong>No value ${rangeText(view)}.</strong></p>`
          : html`<p><strong>No value yet.</strong></p>`
      }
      ${known.map(
        ({ record: { code, assessmentLaunchedAt, lastAssessedAt } }) => html`
          <p>
            <code>${code}</code>: the newest value is of ${lastAssessedAt}
            ${assessmentLaunchedAt && html`, assessed since ${assessmentLaunchedAt}`}
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

/** The first time at which the service had any of the prices of an answer, or null. */
export const existsSince = (warnings) =>
  warnings.flatMap((each) => each.existsSince ?? []).sort()[0] ?? null;

/** Says that the service had none of the chosen prices at the chosen time. */
export const NotYet = ({ app, asOf, warnings }) => {
  const since = existsSince(warnings);
  return html`
  <div class="empty" role="status">
    <p>
      <strong>The service had none of these prices at ${minuteOf(endOf(asOf))}.</strong>
    </p>
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
