// The search box over all markets that the key can read; `/` focuses it.
import { askJson } from '../api.js';
import { addressOf, hasPrice, kindOf, linkTo, PRICES_MAX } from '../link.js';
import { Component, createRef, html } from '../ui.js';

/** Maximum number of shown results. */
const LIMIT = 12;

/**
 * Requests the prices that match a text: `data` with `market`, `code`, `name` and `matched`
 * (`field`, `value`), and `suggestions` for a misspelt text.
 */
async function lookUp(text, signal) {
  const address = addressOf('v3/search', [
    ['q', text],
    ['limit', LIMIT],
  ]);
  const { data, $metadata } = await askJson(address, signal);
  return { data, suggestions: $metadata.suggestions };
}

/** The market of a code; null if no readable market has it. */
export async function marketOf(code, signal) {
  const wanted = code.toLowerCase();
  const { data } = await lookUp(code, signal);
  return data.find((each) => each.code.toLowerCase() === wanted)?.market ?? null;
}

/** Debounce of typing, in milliseconds. */
const REST_MS = 120;

/** Members of a result that its entry always shows. */
const SHOWN = ['code', 'name', 'market'];

/** Other attributes that match, such as the formula of the product. */
const foundIn = ({ matched }) =>
  matched.flatMap(({ field, value }) => (SHOWN.includes(field) ? [] : [value]));

const isTyping = ({ tagName }) => ['INPUT', 'SELECT', 'TEXTAREA'].includes(tagName);

export class Search extends Component {
  state = {
    text: '',
    foundFor: null,
    found: null,
    suggestions: [],
    isFull: false,
    error: null,
    isOpen: false,
  };
  place = createRef();
  field = createRef();
  list = createRef();

  componentDidMount() {
    addEventListener('keydown', this.focus);
    addEventListener('hashchange', this.close);
    addEventListener('pointerdown', this.leave);
  }

  componentWillUnmount() {
    removeEventListener('keydown', this.focus);
    removeEventListener('hashchange', this.close);
    removeEventListener('pointerdown', this.leave);
    this.stop();
  }

  /** Ends a search that is not done. */
  stop() {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.props.app.recovery.remove(this);
  }

  focus = (event) => {
    if (event.key !== '/' || isTyping(event.target) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.field.current.focus();
    this.field.current.select();
  };

  close = () => {
    this.stop();
    this.setState({ text: '', found: null, suggestions: [], isFull: false, error: null });
  };

  /** Hides the results when a click or the focus goes elsewhere; the focus shows them again. */
  leave = ({ target }) => {
    if (!this.place.current.contains(target)) this.setState({ isOpen: false });
  };

  /** Without a `relatedTarget` the focus goes nowhere: to no control, or to another window. */
  blur = ({ relatedTarget }) => relatedTarget && this.leave({ target: relatedTarget });

  type = (text) => {
    this.setState({ text, isFull: false, isOpen: true });
    this.stop();
    if (text.trim() === '') this.setState({ found: null, suggestions: [], error: null });
    else this.timer = setTimeout(this.reload, REST_MS);
  };

  /** Searches for the text of the field. */
  reload = async () => {
    const { app } = this.props;
    const text = this.state.text.trim();
    this.asking?.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      const { data, suggestions } = await lookUp(text, signal);
      if (signal.aborted) return;
      this.setState({ foundFor: text, found: data, suggestions, error: null });
      app.recovery.remove(this);
    } catch (error) {
      if (signal.aborted) return;
      app.fail(error, this);
      this.setState({ foundFor: text, found: [], suggestions: [], error });
    }
  };

  /** The link to a view of one price, with the options of the current view. */
  linkOf({ market, code }) {
    const { view } = this.props;
    return linkTo({ ...view, filters: {}, market: null, code: null, prices: [{ market, code }] });
  }

  add = ({ market, code }) => {
    const { app, view } = this.props;
    const has = hasPrice(view.prices, { market, code });
    if (!has && view.prices.length >= PRICES_MAX) this.setState({ isFull: true });
    else if (has) this.close();
    else app.change({ prices: [...view.prices, { market, code }] });
  };

  /** Enter opens the first result; the arrow keys move through the results. */
  key = (event) => {
    if (event.key === 'Escape') {
      this.close();
      this.field.current.focus();
      return;
    }
    const links = [...(this.list.current?.querySelectorAll('a') ?? [])];
    if (links.length === 0) return;
    // The list may still belong to an earlier text.
    const isFresh = this.state.foundFor === this.state.text.trim();
    if (event.key === 'Enter' && event.target === this.field.current && isFresh) links[0].click();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = links.indexOf(document.activeElement) + step;
    (links[next] ?? this.field.current).focus();
  };

  result(price) {
    const { view, markets } = this.props;
    const market = markets.find(({ slug }) => slug === price.market)?.name ?? price.market;
    return html`
      <li key=${`${price.market} ${price.code}`}>
        <a href=${this.linkOf(price)} onClick=${this.close}>
          <bdi>${price.name}</bdi>
          <span class="quiet"><code>${price.code}</code> ${[market, ...foundIn(price)].join(', ')}</span>
        </a>
        ${
          kindOf(view) === 'prices' &&
          html`<button type="button" aria-label=${`Add ${price.code}`} onClick=${() => this.add(price)}>Add</button>`
        }
      </li>
    `;
  }

  results({ found, suggestions, isFull, error }) {
    return html`
      <div class="results">
        ${isFull && html`<p class="bad" role="alert">At most ${PRICES_MAX} prices fit one chart; remove one first.</p>`}
        ${found.length > 0 && html`<ul ref=${this.list}>${found.map((each) => this.result(each))}</ul>`}
        ${error && html`<p class="bad" role="alert">${error.message}.</p>`}
        ${found.length === 0 && !error && html`<p class="quiet">Nothing matches in the markets that this key opens.</p>`}
        ${
          suggestions.length > 0 &&
          html`<p>
            Did you mean${' '}
            ${suggestions.map(
              (each) =>
                html`<button type="button" onClick=${() => this.type(each)}>${each}</button> `,
            )}
          </p>`
        }
      </div>
    `;
  }

  render(_props, state) {
    const { found, error, isOpen } = state;
    return html`
      <search class="search" ref=${this.place} onKeyDown=${this.key} onFocusOut=${this.blur}>
        <label class="hidden" for="search">Find a price by code, name, product, formula or place</label>
        <input
          id="search"
          ref=${this.field}
          type="search"
          autocomplete="off"
          spellcheck=${false}
          maxlength="128"
          placeholder="Find a price: code, name, product, formula, place"
          value=${state.text}
          onInput=${(event) => this.type(event.target.value)}
          onFocus=${() => this.setState({ isOpen: true })}
        />
        <kbd aria-hidden="true">/</kbd>
        <p class="hidden" role="status">
          ${found === null || error ? '' : `${found.length} results`}
        </p>
        ${isOpen && found !== null && this.results(state)}
      </search>
    `;
  }
}
