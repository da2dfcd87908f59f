// The parts that every component is made of: Preact, with templates instead of a build step.

import { NOTHING } from './texts.js';
import htm from './vendor/htm.js';
import { Component, createElement } from './vendor/preact.js';

export { Component, createPortal, createRef, render } from './vendor/preact.js';

/** A template of elements. A void element closes itself; every other one is closed by its name. */
export const html = htm.bind(createElement);

/** Joins the class names that are set. */
export const classes = (...names) => names.filter(Boolean).join(' ');

/** The query for the dark setting of the system. */
export const darkSetting = matchMedia('(prefers-color-scheme: dark)');

/** A component of a module that is loaded once it is needed: `load` gives the component. */
export class Later extends Component {
  async componentDidMount() {
    try {
      this.setState({ part: await this.props.load() });
    } catch {
      // A newer edition of the service does not have the files of this one.
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

/** A change that the service sent, with its sign. A zero has none, nor a colour. */
function signed(text) {
  if (/^-?[0.]+$/.test(text)) return { text: text.replace('-', ''), kind: '' };
  return text.startsWith('-')
    ? { text: text.replace('-', '−'), kind: 'down' }
    : { text: `+${text}`, kind: 'up' };
}

/**
 * A change with its sign: in percent to one decimal, of a payable all digits of its percentage
 * points.
 */
export function Change({ change, isPoints }) {
  const value = isPoints ? change?.absolute : change?.percent;
  if (value === null || value === undefined) return html`<span class="quiet">${NOTHING}</span>`;
  const { text, kind } = signed(isPoints ? String(value) : Number(value).toFixed(1));
  return html`<span class=${classes('change', kind)}>${text}${isPoints ? ' pp' : ' %'}</span>`;
}
