// Base of every component: Preact, with templates instead of a build step.

import { dayOf, monthsFrom, today } from './dates.js';
import { BASE_DAYS_MAX, oldAge } from './series.js';
import { counted, NOTHING } from './texts.js';
import htm from './vendor/htm.js';
import { Component, createElement } from './vendor/preact.js';

export { Component, createPortal, createRef, render } from './vendor/preact.js';

/** Template tag for elements. Void elements are self-closing; all others need an end tag. */
export const html = htm.bind(createElement);

/** Joins the class names that are set. */
export const classes = (...names) => names.filter(Boolean).join(' ');

/** Media query of the dark theme. */
export const darkSetting = matchMedia('(prefers-color-scheme: dark)');

/** A lazily loaded component; `load` imports it. */
export class Later extends Component {
  componentDidMount() {
    this.reload();
  }

  componentWillUnmount() {
    this.props.app.recovery.remove(this);
  }

  reload = async () => {
    const { load, app } = this.props;
    try {
      this.setState({ part: await load() });
      app.recovery.remove(this);
    } catch {
      // The service is away, or a newer version of it lacks the files of this one.
      this.setState({ isGone: true });
      app.recovery.add(this);
    }
  };

  render({ load: _load, ...props }, { part, isGone }) {
    if (isGone && !part) {
      return html`<p class="note bad" role="alert">
        The page has changed or the service is away: reload.
        <button type="button" onClick=${() => location.reload()}>Reload</button>
      </p>`;
    }
    return part && html`<${part} ...${props} />`;
  }
}

/** Media query of a phone. */
const PHONE = matchMedia('(max-width: 560px)');

/** A component with tasks, whose state `said` is a sentence about the last one. */
export class Tasks extends Component {
  /** Runs a task that returns the sentence about its success. @param begins the sentence before */
  async act(begins, task) {
    this.setState({ said: begins });
    try {
      this.setState({ said: await task() });
    } catch (error) {
      this.setState({ said: error.message });
      this.props.app.fail(error);
    }
  }

  /** The button that shows or hides programs, by the state `hasPrograms`. */
  codeButton({ hasPrograms } = this.state) {
    return html`
      <button
        type="button"
        aria-expanded=${hasPrograms ? 'true' : 'false'}
        onClick=${() => this.setState({ hasPrograms: !hasPrograms })}
      >
        Code
      </button>
    `;
  }
}

/** A component with `state.isPhone`. It renders again when the screen becomes narrow or wide. */
export class Fitted extends Component {
  state = { isPhone: PHONE.matches };

  fit = () => this.setState({ isPhone: PHONE.matches });

  componentDidMount() {
    PHONE.addEventListener('change', this.fit);
  }

  componentWillUnmount() {
    PHONE.removeEventListener('change', this.fit);
  }
}

/**
 * A table in a region that scrolls, also by the keyboard.
 * @param name the accessible name of the region
 * @param kind class names of the table; `stack` makes each row a block on a phone
 * @param heads titles of the columns, each with its class names
 */
export const ScrollTable = ({ name, kind, heads, isTall = false, children }) => html`
  <div class=${classes('scroll', isTall && 'tall')} tabindex="0" role="region" aria-label=${name}>
    <table class=${kind}>
      <thead>
        <tr>${heads.map(([title, its]) => html`<th scope="col" class=${its}>${title}</th>`)}</tr>
      </thead>
      <tbody>${children}</tbody>
    </table>
  </div>
`;

/** A column title for screen readers only. */
export const hiddenTitle = (text) => html`<span class="hidden">${text}</span>`;

/** Controls that are folded on a narrow screen. The summary names those in use. */
export const Fold = ({ title, inUse, children }) => html`
  <details class="fold">
    <summary>${title}${inUse && html`: <span class="quiet">${inUse}</span>`}</summary>
    ${children}
  </details>
`;

const GROUPED = /^-?\d{4,}(?=\.|$)/;

/**
 * A number with a gap between thousands. The gap is a style, so a copied number has exactly the
 * digits that the service sent.
 */
export function figure(text) {
  const whole = GROUPED.exec(text)?.[0];
  if (whole === undefined) return text;
  const first = whole.length % 3 || 3;
  const groups = [whole.slice(0, first), ...(whole.slice(first).match(/\d{3}/g) ?? [])];
  // A sign is no group of its own.
  if (groups[0] === '-') groups.splice(0, 2, groups[0] + groups[1]);
  const last = groups.length - 1;
  return groups.map((each, at) => {
    const digits = at === last ? each + text.slice(whole.length) : each;
    return at === 0 ? digits : html`<span class="group">${digits}</span>`;
  });
}

/** An age in days as text: `12 days old`, `5 months old`. */
function ageText(days) {
  if (days < 60) return counted(days, 'day');
  return days < 731
    ? counted(Math.floor(days / 30.4), 'month')
    : counted(Math.floor(days / 365.25), 'year');
}

/** The day of the newest value, with its age if that is old for the frequency of the price. */
export function Day({ date, frequency, asOf }) {
  if (!date) return NOTHING;
  const age = oldAge(date, frequency?.name, asOf?.slice(0, 10) ?? today());
  return html`<span class="day">${date}</span>
    ${age !== null && html` <span class="old">${ageText(age)} old</span>`}`;
}

/** The category of a price beside its name: a premium of 320 EUR/t looks like a price. */
export const Kind = ({ record }) =>
  record.priceCategory && html`<span class="kind">${record.priceCategory.name}</span>`;

/** A change with its sign, and the class name of its colour. A zero has neither. */
export function signed(text) {
  if (/^-?[0.]+$/.test(text)) return { text: text.replace('-', ''), kind: '' };
  return text.startsWith('-')
    ? { text: text.replace('-', '−'), kind: 'down' }
    : { text: `+${text}`, kind: 'up' };
}

/** Months of the spans that lists name. */
const MONTHS = { month: 1, year: 12 };

/** True if the base of a change is much earlier than its span says, as of a quarterly price. */
const isFar = (latest, { baseDate }, span) =>
  monthsFrom(dayOf(latest.date), -MONTHS[span]) - dayOf(baseDate) > BASE_DAYS_MAX;

/**
 * A change with its sign: in percent with one decimal, for a payable in percentage points with
 * all digits. The base day is shown if it is much earlier than the span says.
 * @param summary the summary of a record
 * @param span `month` or `year`; with `isDated` any span, always with its base day
 */
export function Change({ summary: { latest, changes }, span, isPoints, isDated = false }) {
  const change = changes[span];
  const value = isPoints ? change?.absolute : change?.percent;
  if (value === null || value === undefined) return html`<span class="quiet">${NOTHING}</span>`;
  const { text, kind } = signed(isPoints ? String(value) : Number(value).toFixed(1));
  return html`
    <span class=${classes('change', kind)}>${text}${isPoints ? ' pp' : ' %'}</span>
    ${(isDated || isFar(latest, change, span)) && html` <span class="base">since ${change.baseDate}</span>`}
  `;
}
