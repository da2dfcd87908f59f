// The page: its key, the view of its link, and its errors.
import {
  askJson,
  forgetKey,
  hasKey,
  isKey,
  isOfKey,
  isTransient,
  keptKey,
  offerKey,
  offerOf,
  Refusal,
  takeOffered,
  Unreachable,
  useKey,
  waits,
} from './api.js';
import { EMPTY, kindOf, linkTo, viewOf } from './link.js';
import { AwayNote, PastNote, WaitNote } from './notices.js';
import { Recovery } from './recovery.js';
import { Component, createPortal, html, Later, render } from './ui.js';
import { Search } from './views/search.js';

/** The parts of a view by the request parameters that the service may reject. */
const PART_OF = {
  currency: 'currency',
  unitOfMeasure: 'unit',
  dateFrom: 'from',
  dateTo: 'to',
  aggregate: 'average',
  rates: 'rates',
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

/** The lazily loaded views and notes. */
const LATER = {
  prices: async () => (await import('./views/prices.js')).Prices,
  signIn: async () => (await import('./views/sign-in.js')).SignIn,
  overview: async () => (await import('./views/overview.js')).Overview,
  market: async () => (await import('./views/market.js')).MarketView,
  calculate: async () => (await import('./views/calculate/view.js')).CalculateView,
  corrections: async () => (await import('./views/corrections/recent.js')).CorrectedView,
  record: async () => (await import('./views/record.js')).RecordView,
  ignored: async () => (await import('./views/link-notes.js')).IgnoredNote,
  question: async () => (await import('./views/link-notes.js')).KeyQuestion,
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

/** The kind of the view of the address, before its markets are known. */
function kindOfHash() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (parts.has('code')) return 'record';
  if (parts.has('price')) return 'prices';
  if (parts.has('calculate')) return 'calculate';
  if (parts.has('corrections')) return 'corrections';
  return parts.has('market') ? 'market' : 'overview';
}

class Page extends Component {
  state = {
    phase: 'start',
    error: null,
    markets: null,
    view: EMPTY,
    ignored: [],
    wait: null,
    away: null,
    shown: null,
    offer: null,
  };

  /** The parts of the page that load again after an interruption. */
  recovery = new Recovery(() => this.setState({ away: null }));

  componentDidMount() {
    waits.onWait = (wait) => this.setState({ wait });
    addEventListener('hashchange', () => this.follow());
    // Loads the view of the address while its markets are requested.
    LATER[kindOfHash()]().catch(() => {});
    const kept = keptKey();
    if (kept !== null) useKey(kept.text, kept.place);
    this.follow();
  }

  /** Sets a key and requests its markets. */
  enter = (key, place) => {
    takeOffered();
    if (!/^[\x21-\x7e]+$/.test(key)) {
      this.refuse(new Refusal({ detail: 'A key has letters, digits and underscores only' }));
      return;
    }
    useKey(key, place);
    this.begin();
  };

  /** Opens the page with the key in use. */
  begin() {
    this.setState({ phase: 'asking', error: null, markets: null, away: null, offer: null });
    this.reload();
  }

  /** Requests the markets of the key, and shows the view of the address. */
  reload = async () => {
    this.asking?.abort();
    const asking = new AbortController();
    this.asking = asking;
    try {
      const { data: markets } = await askJson('v3/prices', asking.signal);
      if (asking.signal.aborted) return;
      this.setState({ phase: 'open', markets, offer: offerOf() });
      this.show(markets);
      this.reached(this);
    } catch (error) {
      if (asking.signal.aborted || !isOfKey(error)) return;
      if (error instanceof Unreachable || error instanceof Refusal) this.refuse(error);
      else throw error;
    }
  };

  /**
   * Returns to the key form, or takes the key of a link if the key in use is not valid. Keeps the
   * key if the service is unavailable: it may be valid.
   */
  refuse(error) {
    if (isTransient(error)) {
      this.recovery.add(this, error.retryAfter);
      // The page stays open: it only checks its key, beside the key of a link.
      if (this.state.markets !== null) {
        if (error instanceof Unreachable) this.lost();
        return;
      }
    } else {
      this.recovery.remove(this);
      const offered = takeOffered();
      if (offered !== null) {
        this.enter(offered, null);
        return;
      }
      forgetKey();
    }
    this.setState({ phase: 'sign-in', error, markets: null, away: null, offer: null });
  }

  forget = () => {
    this.asking?.abort();
    this.recovery.remove(this);
    takeOffered();
    forgetKey();
    this.setState({ phase: 'sign-in', error: null, markets: null, away: null, offer: null });
  };

  /**
   * Shows the view of the address. A key in it is used if there is no other. Otherwise the reader
   * is asked, unless the service refuses the key in use.
   */
  follow() {
    const { markets } = this.state;
    const key = takeKey();
    const isOther = key !== null && !isKey(key);
    if (!hasKey()) {
      if (key !== null) this.enter(key, null);
      else this.setState({ phase: 'sign-in' });
      return;
    }
    this.isKeyIgnored = isOther && !offerKey(key);
    if (markets === null) this.begin();
    else if (isOther && !this.isKeyIgnored) this.reload();
    else this.show(markets);
  }

  show(markets) {
    const { view, ignored } = viewOf(location.hash, markets);
    if (this.isKeyIgnored) ignored.push({ part: 'key', why: 'it is not an API key' });
    this.setState({ view, ignored });
  }

  keepKey = () => {
    takeOffered();
    this.setState({ offer: null });
  };

  takeKey = () => this.enter(takeOffered(), null);

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

  /** Notes that the request of a part of the page succeeded. */
  reached = (part) => {
    this.recovery.remove(part);
    this.setState({ shown: new Date() });
  };

  /** Notes the time since which the service is away. */
  lost = () => this.setState(({ away }) => ({ away: away ?? new Date() }));

  /**
   * Handles the error of a request.
   * @param part the part of the page that loads again if the error passes, with `reload()`
   * @returns false if the component has to show the error itself
   */
  fail = (error, part) => {
    if (!isOfKey(error)) return true;
    if (part && isTransient(error)) this.recovery.add(part, error.retryAfter);
    else if (part) this.recovery.remove(part);
    if (part && error instanceof Unreachable) {
      this.lost();
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
    const { view, markets } = this.state;
    const shared = { app: this, view, markets };
    const kind = kindOf(view);
    return html`<${Later} key=${kind} load=${LATER[kind]} ...${shared} />`;
  }

  render(_props, { phase, error, view, ignored, wait, away, shown, markets, offer }) {
    const isOpen = phase === 'open';
    // The form stays while its key is checked. A key of the link or the tab needs no form.
    const isAsked = phase === 'sign-in' || (phase === 'asking' && this.isFormShown);
    this.isFormShown = isAsked;
    return html`
      ${createPortal(
        isOpen && html`<button type="button" onClick=${this.forget}>Forget key</button>`,
        document.getElementById('account'),
      )}
      ${wait && html`<${WaitNote} wait=${wait} />`}
      ${away && html`<${AwayNote} since=${away} shown=${shown} again=${this.recovery.now} />`}
      ${offer && html`<${Later} load=${LATER.question} app=${this} offer=${offer} keep=${this.keepKey} take=${this.takeKey} />`}
      ${isAsked && html`<${Later} load=${LATER.signIn} app=${this} enter=${this.enter} error=${error} isBusy=${phase === 'asking'} />`}
      ${phase === 'asking' && !isAsked && html`<p class="panel quiet">Asking for the markets…</p>`}
      ${isOpen && html`<${Search} app=${this} view=${view} markets=${markets} />`}
      ${isOpen && view.asOf && html`<${PastNote} asOf=${view.asOf} back=${() => this.change({ asOf: null })} />`}
      ${
        isOpen &&
        ignored.length > 0 &&
        html`<${Later} load=${LATER.ignored} app=${this} ignored=${ignored} close=${() => this.setState({ ignored: [] })} />`
      }
      ${isOpen && this.shownView()}
    `;
  }
}

const place = document.getElementById('explorer');
place.replaceChildren();
render(html`<${Page} />`, place);
