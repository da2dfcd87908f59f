// Base of every component: Preact, with templates instead of a build step.

import { dayOf, monthsFrom } from './dates.js';
import { NOTHING } from './texts.js';
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

/** A change with its sign. A zero has neither sign nor colour. */
function signed(text) {
  if (/^-?[0.]+$/.test(text)) return { text: text.replace('-', ''), kind: '' };
  return text.startsWith('-')
    ? { text: text.replace('-', '−'), kind: 'down' }
    : { text: `+${text}`, kind: 'up' };
}

/** Months of the spans that lists name. */
const MONTHS = { month: 1, year: 12 };

/** Days that the base of a change may lie before the day that its span names: a few holidays. */
const BASE_DAYS_MAX = 14;

/** True if the base of a change is much earlier than its span says, as of a quarterly price. */
const isFar = (latest, { baseDate }, span) =>
  monthsFrom(dayOf(latest.date), -MONTHS[span]) - dayOf(baseDate) > BASE_DAYS_MAX;

/**
 * A change with its sign: in percent with one decimal, for a payable in percentage points with
 * all digits. The base day is shown where it is not about the span back.
 * @param summary the summary of a record
 * @param span `month` or `year`
 */
export function Change({ summary: { latest, changes }, span, isPoints }) {
  const change = changes[span];
  const value = isPoints ? change?.absolute : change?.percent;
  if (value === null || value === undefined) return html`<span class="quiet">${NOTHING}</span>`;
  const { text, kind } = signed(isPoints ? String(value) : Number(value).toFixed(1));
  return html`
    <span class=${classes('change', kind)}>${text}${isPoints ? ' pp' : ' %'}</span>
    ${isFar(latest, change, span) && html`<span class="base">since ${change.baseDate}</span>`}
  `;
}
