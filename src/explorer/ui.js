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
    this.setState({ part: await this.props.load() });
  }

  render({ load: _load, ...props }, { part }) {
    return part && html`<${part} ...${props} />`;
  }
}

/** A change in percent with its sign; a payable changes by percentage points. */
export function Change({ change, isPoints }) {
  const value = isPoints ? change?.absolute : change?.percent;
  if (value === null || value === undefined) return html`<span class="quiet">${NOTHING}</span>`;
  const number = Number(value);
  const text = `${number > 0 ? '+' : ''}${number.toFixed(1)}`.replace('-', '−');
  const kind = number > 0 ? 'up' : number < 0 ? 'down' : '';
  return html`<span class=${classes('change', kind)}>${text}${isPoints ? ' pp' : ' %'}</span>`;
}
