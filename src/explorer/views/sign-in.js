// The form for the API key.
import { RefusalNote, RetryText } from '../notices.js';
import { Component, createRef, html } from '../ui.js';

/** The key form, with the error of the previous key. */
export class SignIn extends Component {
  field = createRef();
  kept = createRef();

  componentDidMount() {
    this.field.current.focus();
  }

  enter = (event) => {
    event.preventDefault();
    const key = this.field.current.value.trim();
    // Clears the field, so that the document never contains the key.
    this.field.current.value = '';
    if (key !== '') this.props.enter(key, this.kept.current.checked);
  };

  render({ error, isBusy }) {
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
        <label class="check">
          <input type="checkbox" ref=${this.kept} /> Remember in this tab
        </label>
        <p class="quiet">
          The key stays in the memory of this page. It goes to this service in a header and to
          nobody else.
        </p>
      </form>
    `;
  }
}
