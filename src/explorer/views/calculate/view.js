// A calculation: its form, and its result by the service. Nothing is computed here.
import { askText, exact } from '../../api.js';
import { bodyIn, bodyOf, draftFrom, draftOf, isComplete, TEMPLATES } from '../../calculation.js';
import { EMPTY, linkTo } from '../../link.js';
import { Loaded } from '../../loaded.js';
import { Failed } from '../../notices.js';
import { classes, createRef, html } from '../../ui.js';
import { CalculationForm } from './form.js';
import { ResultBody, ResultHead } from './result.js';

/** A screen on which the form stands below the result. */
const narrow = matchMedia('(max-width: 900px)');

const STYLE = new URL('../../calculation.css', import.meta.url).href;

const ADDRESS = 'v3/calculations';

/** The refusal of a calculation: each place with the reason, which its field has too. */
const Refused = ({ error, again }) =>
  error.errors?.length > 0
    ? html`
        <div class="note bad" role="alert">
          <strong>The service refuses this calculation.</strong>
          <ul>
            ${error.errors.map(({ pointer, detail }) => html`<li><code>${pointer.slice(1).replaceAll('/', ' ')}</code> ${detail}</li>`)}
          </ul>
        </div>
      `
    : html`<${Failed} error=${error} again=${again} />`;

export class CalculateView extends Loaded {
  state = { ...this.state, draft: this.draftOf(this.props.view.calculate), at: null };
  top = createRef();

  keyOf({ view }) {
    return view.calculate;
  }

  draftOf(text) {
    const body = bodyIn(text);
    return Object.keys(body).length === 0 ? draftFrom('average') : draftOf(body);
  }

  componentDidUpdate(before) {
    const { calculate } = this.props.view;
    // The address has another calculation than the one that the form has sent: a link, or Back.
    if (before.view.calculate !== calculate && calculate !== this.sent) {
      this.setState({ draft: this.draftOf(calculate), data: null, error: null });
    }
    super.componentDidUpdate(before);
  }

  async load({ view }, signal) {
    const body = bodyIn(view.calculate);
    if (!isComplete(body)) return null;
    const answer = exact(await askText(ADDRESS, signal, { body: JSON.stringify(body) }));
    if (this.sent === view.calculate) this.top.current?.scrollIntoView({ block: 'nearest' });
    return { body, ...answer };
  }

  /** An empty form begins with the search. On a phone the keyboard would hide it. */
  componentDidMount() {
    super.componentDidMount();
    if (!isComplete(bodyIn(this.props.view.calculate)) && !narrow.matches) {
      this.top.current.parentElement.querySelector('.calculation .search input')?.focus();
    }
  }

  edit = (change) => this.setState(({ draft }) => ({ draft: { ...draft, ...change } }));

  /** Puts the draft into the address, which asks the service. */
  submit = () => {
    const text = JSON.stringify(bodyOf(this.state.draft));
    if (text === this.props.view.calculate) {
      this.reload();
      return;
    }
    this.sent = text;
    this.props.app.change({ calculate: text });
  };

  /** Replaces the form by a template, which keeps the first price and the anchor. */
  useTemplate = (id) => {
    const { inputs, anchor, series } = this.state.draft;
    const kept = inputs.find(({ members }) => members.code);
    if (!kept || id === 'payable') this.edit(draftFrom(id));
    else {
      const price = { market: kept.name, code: kept.members.code };
      this.edit({ ...draftFrom(id, price), anchor, series });
    }
  };

  /** The result, its refusal, or what to do. */
  head(isBusy, isChanged) {
    const { data, error, at } = this.state;
    if (error) {
      return html`<${Refused} error=${error} again=${this.reload} />`;
    }
    if (data) {
      return html`
        ${isChanged && html`<p class="note" role="status">The form has changed: calculate again.</p>`}
        <${ResultHead} app=${this.props.app} answer=${data} at=${at} />
      `;
    }
    return isBusy
      ? html`<p class="panel quiet">Asking for the result…</p>`
      : html`<p class="quiet">
          Choose a price, a period and the day it counts from. The service computes the result
          exactly, and shows what it is computed from.
        </p>`;
  }

  render({ app, view, markets }, { data, error, draft, isLoading, at }) {
    // A link may have a short form, which the form writes with inputs.
    const textOf = (form) => JSON.stringify(bodyOf(form));
    const isChanged = data !== null && textOf(draft) !== textOf(this.draftOf(view.calculate));
    const isBusy = isLoading && isComplete(bodyIn(view.calculate));
    return html`
      <div aria-busy=${isBusy ? 'true' : 'false'}>
        <link rel="stylesheet" href=${STYLE} />
        <div class="row title">
          <a href=${linkTo(EMPTY)}>Markets</a>
          <h1>Calculate</h1>
          <div class="segments" role="group" aria-label="Templates">
            ${TEMPLATES.map(
              ([id, name]) => html`
                <button type="button" onClick=${() => this.useTemplate(id)}>${name}</button>
              `,
            )}
          </div>
        </div>
        <div class=${classes(isBusy && 'stale')} ref=${this.top}>
          ${this.head(isBusy, isChanged)}
        </div>
        <div class="columns calculation">
          <${CalculationForm}
            app=${app}
            view=${view}
            markets=${markets}
            draft=${draft}
            edit=${this.edit}
            submit=${this.submit}
            violations=${error?.errors ?? []}
            answer=${isChanged ? null : data}
            isBusy=${isBusy}
          />
          <div class=${classes(isBusy && 'stale')}>
            ${
              !error &&
              data &&
              html`<${ResultBody} app=${app} answer=${data} at=${at} choose=${(next) => this.setState({ at: next })} />`
            }
          </div>
        </div>
      </div>
    `;
  }
}
