// The search box over all markets that the key can read; `/` focuses it. With `pick` it is a field
// of a form, which gets the chosen price; `accepts` selects the prices that it may be.
import { Unreachable } from '../api.js';
import { hasPrice, PRICES_MAX } from '../link.js';
import { Component, createRef, html } from '../ui.js';

const results = () => import('./results.js');

/** Debounce of typing, in milliseconds. */
const REST_MS = 120;

const isTyping = ({ tagName }) => ['INPUT', 'SELECT', 'TEXTAREA'].includes(tagName);

export class Search extends Component {
  state = {
    text: '',
    foundFor: null,
    found: null,
    total: 0,
    suggestions: [],
    isSimilar: false,
    isAll: false,
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
    if (this.props.pick || event.key !== '/' || isTyping(event.target)) return;
    if (event.ctrlKey || event.metaKey) return;
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

  /** Shows the results. Their code is loaded before the first letter, for a field with it. */
  open = () => {
    if (!this.props.pick) results().catch(() => {});
    this.setState({ isOpen: true });
  };

  /** Without a `relatedTarget` the focus goes nowhere: to no control, or to another window. */
  blur = ({ relatedTarget }) => relatedTarget && this.leave({ target: relatedTarget });

  type = (text) => {
    this.setState({ text, isAll: false, isFull: false, isOpen: true });
    this.stop();
    if (text.trim() === '') this.setState({ found: null, suggestions: [], error: null });
    else this.timer = setTimeout(this.reload, REST_MS);
  };

  /** Shows all results. The button for them disappears, so the focus returns to the field. */
  showAll = () => {
    this.setState({ isAll: true }, this.reload);
    this.field.current.focus();
  };

  /** Searches for the text of the field. */
  reload = async () => {
    const { app } = this.props;
    const text = this.state.text.trim();
    this.asking?.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      const { lookUp, Results } = await results().catch(() => {
        throw new Unreachable('The service cannot be reached');
      });
      // The component also shows the error of a search.
      this.setState({ Results });
      const { data, ...others } = await lookUp(text, signal, this.state.isAll);
      if (signal.aborted) return;
      const { accepts = () => true } = this.props;
      this.setState({ foundFor: text, found: data.filter(accepts), ...others, error: null });
      app.recovery.remove(this);
    } catch (error) {
      if (signal.aborted) return;
      app.fail(error, this);
      this.setState({ foundFor: text, found: [], suggestions: [], isSimilar: false, error });
    }
  };

  /** Opens a result, or hands it to the form. */
  choose = (event, price) => {
    const { pick } = this.props;
    if (pick) event.preventDefault();
    this.close();
    pick?.(price);
  };

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
    if (event.key === 'Enter' && event.target === this.field.current) {
      // Enter in a field would send the form.
      event.preventDefault();
      if (isFresh) links[0].click();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = links.indexOf(document.activeElement) + step;
    (links[next] ?? this.field.current).focus();
  };

  render(props, state) {
    const { found, error, isOpen } = state;
    const { id = 'search', label } = props;
    return html`
      <search class="search" ref=${this.place} onKeyDown=${this.key} onFocusOut=${this.blur}>
        <label class=${label ? '' : 'hidden'} for=${id}>${label ?? 'Find a price by code, name, product, formula or place'}</label>
        <input
          id=${id}
          ref=${this.field}
          type="search"
          autocomplete="off"
          spellcheck=${false}
          maxlength="128"
          placeholder="Find a price: code, name, product, formula, place"
          value=${state.text}
          onInput=${(event) => this.type(event.target.value)}
          onFocus=${this.open}
        />
        ${!label && html`<kbd aria-hidden="true">/</kbd>`}
        <p class="hidden" role="status">
          ${found === null || error ? '' : `${found.length} of ${state.total} ${state.isSimilar ? 'similar ' : ''}results`}
        </p>
        ${
          isOpen &&
          found !== null &&
          (state.Results
            ? html`<${state.Results} ...${props} ...${state} search=${this} />`
            : error && html`<p class="results bad" role="alert">${error.message}.</p>`)
        }
      </search>
    `;
  }
}
