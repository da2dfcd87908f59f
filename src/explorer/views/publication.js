// The publication of a price: its calendar, its next due days, and its lateness.
import { askJson } from '../api.js';
import { dateOf, dayOf, minuteOf, today } from '../dates.js';
import { addressOf } from '../link.js';
import { Loaded } from '../loaded.js';
import { RefusalNote } from '../notices.js';
import { NOTHING } from '../texts.js';
import { html } from '../ui.js';

/** Days whose due days are shown: a quarterly price has one in them. */
const DAYS = 100;

/** Due days that are shown. */
const SHOWN = 4;

const dayText = ({ date, dueAt, holiday, movedFrom }) => {
  if (dueAt === null) return html`<span class="day">${date}</span>: closed, ${holiday}`;
  return html`<span class="day">${minuteOf(dueAt)}</span>${movedFrom && ` in place of ${movedFrom}, ${holiday}`}`;
};

/** @param props `market`, `code`, and `next`, the next expected instant of the record */
export class Publication extends Loaded {
  keyOf({ market, code }) {
    return `${market} ${code}`;
  }

  async load({ market, code }, signal) {
    const first = today();
    const address = addressOf('v3/calendar', [
      ['market', market],
      ['codes', code],
      ['from', first],
      ['to', dateOf(dayOf(first) + DAYS)],
    ]);
    return (await askJson(address, signal)).data[0] ?? null;
  }

  /** Late or not, by the clock of this browser. */
  lateText(price) {
    if (price.sample) return 'Sample data, which nobody publishes';
    if (price.lateFrom === null) return 'Not known';
    const how =
      price.lateBy === 'frequency' ? ', judged by its frequency, with a generous allowance' : '';
    return Date.parse(price.lateFrom) < Date.now()
      ? html`<span class="old">since ${minuteOf(price.lateFrom)}</span>${how}`
      : `No${how}`;
  }

  render({ next }, { data, error }) {
    const days = (data?.days ?? []).filter(({ status }) => status !== 'published').slice(0, SHOWN);
    const rows = [
      ['Next expected', next ? minuteOf(next) : 'Not known'],
      ['Calendar', data && (data.calendar ?? 'None')],
      ['Late', data && this.lateText(data)],
      [
        'Next days',
        days.length > 0 &&
          html`<ul class="plain">${days.map((each) => html`<li key=${each.date}>${dayText(each)}</li>`)}</ul>`,
      ],
    ];
    return html`
      ${error && html`<${RefusalNote} error=${error} />`}
      <dl class="attributes">
        ${rows.map(
          ([name, value]) => html`
            <div key=${name}><dt>${name}</dt><dd>${value || NOTHING}</dd></div>
          `,
        )}
      </dl>
    `;
  }
}
