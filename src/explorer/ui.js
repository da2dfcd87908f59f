// Base of every component: Preact, with templates instead of a build step.

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
  async componentDidMount() {
    try {
      this.setState({ part: await this.props.load() });
    } catch {
      // A newer version of the service lacks the files of this one.
      this.setState({ isGone: true });
    }
  }

  render({ load: _load, ...props }, { part, isGone }) {
    if (isGone) {
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

/**
 * A change with its sign: in percent with one decimal, for a payable in percentage points with
 * all digits.
 */
export function Change({ change, isPoints }) {
  const value = isPoints ? change?.absolute : change?.percent;
  if (value === null || value === undefined) return html`<span class="quiet">${NOTHING}</span>`;
  const { text, kind } = signed(isPoints ? String(value) : Number(value).toFixed(1));
  return html`<span class=${classes('change', kind)}>${text}${isPoints ? ' pp' : ' %'}</span>`;
}
