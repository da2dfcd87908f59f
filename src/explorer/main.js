// The page: its key, the view of its link, and its errors.
import {
  askJson,
  forgetKey,
  isOfKey,
  keptKey,
  Refusal,
  Unreachable,
  useKey,
  waits,
} from './api.js';
import { EMPTY, kindOf, linkTo, viewOf } from './link.js';
import { AwayNote, IgnoredNote, PastNote, WaitNote } from './notices.js';
import { Component, createPortal, html, Later, render } from './ui.js';
import { Prices } from './views/prices.js';
import { Search } from './views/search.js';
import { SignIn } from './views/sign-in.js';

/** The parts of a view by the request parameters that the service may reject. */
const PART_OF = {
  currency: 'currency',
  unitOfMeasure: 'unit',
  dateFrom: 'from',
  dateTo: 'to',
  aggregate: 'average',
  asOf: 'asOf',
};

/** The parts of a view that an error response names; null if it names other things. */
function refusedParts(error, view) {
  if (!(error instanceof Refusal) || error.status !== 400 || error.errors.length === 0) return null;
  const parts = error.errors.map(({ pointer, detail }) => {
    const name = PART_OF[pointer?.replace(/^\?/, '').split('/')[0]];
    return name && view[name] !== null ? { name, why: detail } : null;
  });
  return parts.includes(null) ? null : parts;
}

/** The lazily loaded views. */
const LATER = {
  overview: async () => (await import('./views/overview.js')).Overview,
  market: async () => (await import('./views/market.js')).MarketView,
  record: async () => (await import('./views/record.js')).RecordView,
};

/** Removes the key from the address before other code can read it. */
function takeKey() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const key = parts.get('key');
  if (key === null) return null;
  parts.delete('key');
  const rest = parts.size > 0 ? `#${parts}` : '';
  history.replaceState(null, '', `${location.pathname}${location.search}${rest}`);
  return key;
}

class Page extends Component {
  state = {
    phase: 'sign-in',
    error: null,
    markets: null,
    view: EMPTY,
    ignored: [],
    wait: null,
    away: null,
    shown: null,
    attempt: 0,
  };

  componentDidMount() {
    waits.onWait = (wait) => this.setState({ wait });
    addEventListener('hashchange', () => this.follow());
    // Loads the overview early, because most readers start there after they enter a key.
    if (location.hash.length <= 1) LATER.overview();
    const key = takeKey() ?? keptKey();
    if (key !== null) this.enter(key, key === keptKey());
  }

  /** Sets a key and requests its markets. */
  enter = async (key, isKept) => {
    if (!/^[\x21-\x7e]+$/.test(key)) {
      this.refuse(new Refusal({ detail: 'A key has letters, digits and underscores only' }));
      return;
    }
    useKey(key, isKept);
    this.setState({ phase: 'asking', error: null });
    try {
      const { data: markets } = await askJson('v3/prices');
      const { view, ignored } = viewOf(location.hash, markets);
      this.setState({ phase: 'open', markets, view, ignored, away: null, shown: new Date() });
    } catch (error) {
      if (!isOfKey(error)) return;
      if (error instanceof Unreachable || error instanceof Refusal) this.refuse(error);
      else throw error;
    }
  };

  /** Returns to the key form. Keeps the key if the service is unavailable: it may be valid. */
  refuse(error) {
    const isAway = error instanceof Unreachable || error.status === 429 || error.status >= 500;
    if (!isAway) forgetKey();
    this.setState({ phase: 'sign-in', error, markets: null, away: null });
  }

  forget = () => {
    forgetKey();
    this.setState({ phase: 'sign-in', error: null, markets: null, away: null });
  };

  /** Shows the view of the address. */
  follow() {
    const key = takeKey();
    if (key !== null) this.enter(key, false);
    else if (this.state.markets !== null) {
      const { view, ignored } = viewOf(location.hash, this.state.markets);
      this.setState({ view, ignored });
    }
  }

  /** Changes the view, and with it the address. */
  change = (change) => {
    location.hash = linkTo({ ...this.state.view, ...change });
  };

  /** Adds a note about a part of the link, once. */
  ignore = (part, why) => {
    this.setState(({ ignored }) =>
      ignored.some((each) => each.part === part) ? null : { ignored: [...ignored, { part, why }] },
    );
  };

  /** Repeats the requests of the screen. */
  again = () => this.setState(({ attempt }) => ({ attempt: attempt + 1 }));

  isReached = () => this.setState({ away: null, shown: new Date() });

  /**
   * Handles the error of a request.
   * @returns false if the component has to show the error itself
   */
  fail = (error) => {
    if (!isOfKey(error)) return true;
    if (error instanceof Unreachable) {
      this.setState(({ away }) => ({ away: away ?? new Date() }));
      return true;
    }
    if (error.status === 401) {
      this.refuse(error);
      return true;
    }
    const parts = refusedParts(error, this.state.view);
    if (parts === null) return false;
    const view = { ...this.state.view };
    const ignored = [...this.state.ignored];
    for (const { name, why } of parts) {
      if (view[name] === null) continue;
      ignored.push({ part: `${name}=${view[name]}`, why });
      view[name] = null;
    }
    this.setState({ view, ignored });
    return true;
  };

  /** Sets the title of the browser tab. */
  componentDidUpdate() {
    const { view, markets } = this.state;
    const market = markets?.find(({ slug }) => slug === view.market)?.name;
    const codes = view.prices.map(({ code }) => code).join(', ');
    const name = markets && (view.code ?? (codes || market));
    document.title = [name, 'Commodity Prices'].filter(Boolean).join(': ');
  }

  shownView() {
    const { view, markets, attempt } = this.state;
    const shared = { app: this, view, markets, attempt };
    const kind = kindOf(view);
    if (kind === 'prices') return html`<${Prices} ...${shared} />`;
    return html`<${Later} key=${kind} load=${LATER[kind]} ...${shared} />`;
  }

  render(_props, { phase, error, view, ignored, wait, away, shown, markets }) {
    const isOpen = phase === 'open';
    return html`
      ${createPortal(
        isOpen && html`<button type="button" onClick=${this.forget}>Forget key</button>`,
        document.getElementById('account'),
      )}
      ${wait && html`<${WaitNote} wait=${wait} />`}
      ${away && html`<${AwayNote} since=${away} shown=${shown} again=${this.again} />`}
      ${!isOpen && html`<${SignIn} enter=${this.enter} error=${error} isBusy=${phase === 'asking'} />`}
      ${isOpen && html`<${Search} app=${this} view=${view} markets=${markets} />`}
      ${isOpen && view.asOf && html`<${PastNote} asOf=${view.asOf} back=${() => this.change({ asOf: null })} />`}
      ${
        isOpen &&
        ignored.length > 0 &&
        html`<${IgnoredNote} ignored=${ignored} close=${() => this.setState({ ignored: [] })} />`
      }
      ${isOpen && this.shownView()}
    `;
  }
}

const place = document.getElementById('explorer');
place.replaceChildren();
render(html`<${Page} />`, place);
