// The form for the API key.
import { RefusalNote, RetryText } from '../notices.js';
import { Component, createRef, html } from '../ui.js';

/** The places that may remember the key. */
const PLACES = [
  [null, 'Forget with this page'],
  ['tab', 'Remember in this tab'],
  ['device', 'Remember on this device'],
];

/** The key form, with the error of the previous key. */
export class SignIn extends Component {
  field = createRef();
  state = { place: null };

  componentDidMount() {
    this.field.current.focus();
  }

  enter = (event) => {
    event.preventDefault();
    const key = this.field.current.value.trim();
    // Clears the field, so that the document never contains the key.
    this.field.current.value = '';
    if (key !== '') this.props.enter(key, this.state.place);
  };

  render({ error, isBusy }, { place: chosen }) {
    return html`
      <form class="panel sign-in" onSubmit=${this.enter}>
        <h1>Prices of battery raw materials and metals</h1>
        <p>
          Every value with its range, its gaps, its corrections and the way it was converted. Enter
          your API key to see the markets that it opens.
        </p>
        ${error && html`<${RefusalNote} error=${error} /><${RetryText} error=${error} />`}
        <label for="key">API key</label>
        <div class="row">
          <input
            id="key"
            ref=${this.field}
            type="password"
            autocomplete="off"
            spellcheck=${false}
            placeholder="cps_live_…"
            required
          />
          <button type="submit" class="main" disabled=${isBusy}>
            ${isBusy ? 'Asking…' : 'Show prices'}
          </button>
        </div>
        <fieldset class="plain">
          <legend class="hidden">How long the key is remembered</legend>
          ${PLACES.map(
            ([place, text]) => html`
              <label class="check">
                <input
                  type="radio"
                  name="place"
                  checked=${place === chosen}
                  onChange=${() => this.setState({ place })}
                />
                ${text}
              </label>
            `,
          )}
        </fieldset>
        ${
          chosen === 'device' &&
          html`<p class="note past" role="status">
            <strong>Anyone who uses this browser can then use the key,</strong> and so can software that
            reads its files. Choose this on a device of your own only. <strong>Forget key</strong> removes it.
          </p>`
        }
        <p class="quiet">
          The key goes to this service in a header and to nobody else.
        </p>
      </form>
    `;
  }
}
