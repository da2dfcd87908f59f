// The colours of rises and falls, which the reader chooses.
import { Component, html } from '../ui.js';

/** Name in the storage of the browser. */
const COLOURS = 'explorer-rises';

/** Conventions of colours: most of East Asia marks rises red. */
const CONVENTIONS = [
  ['green', 'Rises green, falls red'],
  ['red', 'Rises red, falls green'],
  ['none', 'Without colours'],
];

/** The convention that this browser keeps, else green for rises. */
function keptColours() {
  try {
    return localStorage.getItem(COLOURS) ?? 'green';
  } catch {
    return 'green';
  }
}

/** Chooses the colours of rises and falls. */
export class Colours extends Component {
  state = { colours: keptColours() };

  choose = ({ target: { value: colours } }) => {
    try {
      localStorage.setItem(COLOURS, colours);
    } catch {}
    this.setState({ colours });
  };

  render(_props, { colours }) {
    document.documentElement.dataset.rises = colours;
    return html`
      <footer class="settings">
        <label class="field">
          Changes${' '}
          <select onChange=${this.choose}>
            ${CONVENTIONS.map(([id, text]) => html`<option value=${id} selected=${id === colours}>${text}</option>`)}
          </select>
        </label>
      </footer>
    `;
  }
}
