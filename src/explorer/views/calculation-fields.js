// The fields of the form of a calculation.
import { daysText, FORMS, isRelative, periodText } from '../periods.js';
import { Component, html } from '../ui.js';

let fields = 0;

function fieldId() {
  fields += 1;
  return `field-${fields}`;
}

/** The violations of a field, below it. */
const Faults = ({ id, all }) =>
  all.length > 0 &&
  html`<span class="fault" id=${id} role="alert">${all.map(({ detail }) => detail).join('. ')}</span>`;

/** A labelled field with its violations and a hint. */
export class Field extends Component {
  id = fieldId();

  render({ label, value, edit, faults = [], hint, wide, options, children, ...others }) {
    const described = [faults.length > 0 && `${this.id}-fault`, hint && `${this.id}-hint`];
    const shared = {
      id: this.id,
      'aria-invalid': faults.length > 0 ? 'true' : null,
      'aria-describedby': described.filter(Boolean).join(' ') || null,
    };
    const typed = (event) => edit(event.target.value);
    return html`
      <div class=${wide ? 'part wide' : 'part'}>
        <label for=${this.id}>${label}</label>
        ${
          options
            ? html`<select ...${shared} onChange=${typed}>
                ${options.map(([id, name]) => html`<option value=${id} selected=${id === (value || options[0][0])}>${name}</option>`)}
              </select>`
            : html`<input type="text" autocomplete="off" spellcheck=${false} ...${shared} ...${others} value=${value} onInput=${typed} />`
        }
        ${children}
        ${hint && html`<span class="quiet small" id=${`${this.id}-hint`} aria-live="polite">${hint}</span>`}
        <${Faults} id=${`${this.id}-fault`} all=${faults} />
      </div>
    `;
  }
}

/** Options of a select whose names are their values. */
export const optionsOf = (names) => names.map((each) => [each, each]);

/** The explanation of a period, with the days of the answer where it has this period. */
export function periodHint(text, receipt) {
  if (!text) return FORMS;
  const words = periodText(text);
  if (words === null) return FORMS;
  const from = receipt?.from ?? receipt?.sessions?.[0]?.date;
  const to = receipt?.to ?? receipt?.sessions?.at(-1)?.date;
  const isAnswered = receipt?.period === text && from && isRelative(text);
  const days = isAnswered ? `: ${daysText(from, to)}` : '';
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${days}.`;
}
