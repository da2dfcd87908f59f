// Searches, and the results of the search box.
import { askJson, askText, exact } from '../api.js';
import { endOf } from '../dates.js';
import { addressOf, kindOf, linkTo, PRICES_MAX } from '../link.js';
import { Loaded } from '../loaded.js';
import { unitText } from '../texts.js';
import { Day, figure, html, Kind } from '../ui.js';

/** Number of results that are shown first. */
const FIRST = 12;

/** Maximum number of results of the service. */
const ALL = 500;

/**
 * Requests the prices that match a text.
 * @param isAll true for all results, false for the first ones
 * @returns `data` with `market`, `code`, `name` and `matched` (`field`, `value`); `total`, the
 *   number of matching prices; `isSimilar`, true if none matches the text as it is written; and
 *   `suggestions` for a misspelt text
 */
export async function lookUp(text, signal, isAll = false) {
  const address = addressOf('v3/search', [
    ['q', text],
    ['limit', isAll ? ALL : FIRST],
  ]);
  const { data, $metadata } = await askJson(address, signal);
  const { total, approximate: isSimilar, suggestions } = $metadata;
  return { data, total, isSimilar, suggestions };
}

/** The market of a code; null if no readable market has it. */
export async function marketOf(code, signal) {
  const wanted = code.toLowerCase();
  const { data } = await lookUp(code, signal);
  return data.find((each) => each.code.toLowerCase() === wanted)?.market ?? null;
}

/** Members of a result that its entry always shows. */
const SHOWN = ['code', 'name', 'market'];

/** Other attributes that match, such as the formula of the product. */
const foundIn = ({ matched }) =>
  matched.flatMap(({ field, value }) => (SHOWN.includes(field) ? [] : [value]));

/** The link to a view of one price, with the options of the current view. */
const linkOf = (view, { market, code }) =>
  linkTo({
    ...view,
    filters: {},
    market: null,
    code: null,
    calculate: null,
    prices: [{ market, code }],
  });

/** Maximum number of codes in a request: more would make its address too long. */
const CODES_MAX = 100;

/** Debounce of the requests for values, in milliseconds. */
const REST_MS = 300;

const keyOf = ({ market, code }) => `${market} ${code}`;

/** The requests for the newest values of prices: of one market each, and of a bounded number. */
const valueRequests = (prices, asOf) =>
  Object.entries(Object.groupBy(prices, ({ market }) => market)).flatMap(([market, its]) =>
    Array.from({ length: Math.ceil(its.length / CODES_MAX) }, (_, at) => ({
      market,
      address: addressOf(`v3/prices/${encodeURIComponent(market)}`, [
        ...its.slice(at * CODES_MAX, (at + 1) * CODES_MAX).map(({ code }) => ['codes', code]),
        ['includeSummary', 'true'],
        ['asOf', asOf && endOf(asOf)],
        ['limit', CODES_MAX],
      ]),
    })),
  );

/** The records of a request for newest values, each after its market and code. */
async function recordsOf({ market, address }, signal) {
  const { data } = exact(await askText(address, signal));
  return data.map((record) => [keyOf({ market, code: record.code }), record]);
}

/** The records of prices with their newest values, by market and code. */
export async function newestOf(prices, asOf, signal) {
  const requests = valueRequests(prices, asOf).map((each) => recordsOf(each, signal));
  return new Map((await Promise.all(requests)).flat());
}

/** The newest value of a price with its unit and day. */
const Latest = ({ record, asOf }) => {
  const { latest } = record.summary;
  return (
    latest &&
    html`<strong>${figure(latest.mid)}</strong> ${unitText(record)} <${Day} date=${latest.date} frequency=${record.frequency} asOf=${asOf} />`
  );
};

const Result = ({ price, record, view, markets, isSimilar, search }) => {
  const market = markets.find(({ slug }) => slug === price.market)?.name ?? price.market;
  return html`
    <li>
      <a href=${linkOf(view, price)} onClick=${(event) => search.choose(event, price)}>
        <span>
          <bdi>${price.name}</bdi> <${Kind} record=${price} />${' '}
          ${isSimilar && html`<span class="mark">similar</span> `}
          <span class="quiet"><code>${price.code}</code> ${[market, ...foundIn(price)].join(', ')}</span>
        </span>
        <span class="latest">
          ${record ? html`<${Latest} record=${record} asOf=${view.asOf} />` : html`<span class="unit">${unitText(price)}</span>`}
        </span>
      </a>
      ${
        kindOf(view) === 'prices' &&
        html`<button type="button" aria-label=${`Add ${price.code}`} onClick=${() => search.add(price)}>Add</button>`
      }
    </li>
  `;
};

/**
 * The list of results. Their newest values are requested when typing rests, and appear as each
 * market answers: a market that fails delays no other, and its repetition requests only what is
 * missing.
 */
class List extends Loaded {
  records = new Map();

  keyOf({ found, view }) {
    return JSON.stringify([view.asOf, ...found.map(keyOf)]);
  }

  async load({ found, view }, signal) {
    if (view.asOf !== this.asOf) this.records.clear();
    this.asOf = view.asOf;
    await new Promise((done) => setTimeout(done, REST_MS));
    signal.throwIfAborted();
    const missing = found.filter((price) => !this.records.has(keyOf(price)));
    const requests = valueRequests(missing, view.asOf).map((each) => this.read(each, signal));
    const failed = (await Promise.allSettled(requests)).find(({ reason }) => reason);
    if (failed) throw failed.reason;
  }

  async read(request, signal) {
    const records = await recordsOf(request, signal);
    signal.throwIfAborted();
    for (const [key, record] of records) this.records.set(key, record);
    this.forceUpdate();
  }

  render({ found, view, markets, isSimilar, search }) {
    return html`
      <ul ref=${search.list}>
        ${found.map(
          (price) => html`
            <${Result}
              key=${keyOf(price)}
              price=${price}
              record=${this.records.get(keyOf(price))}
              view=${view}
              markets=${markets}
              isSimilar=${isSimilar}
              search=${search}
            />
          `,
        )}
      </ul>
    `;
  }
}

/** Says that the results only resemble the text, and offers texts that match. */
const SimilarNote = ({ found, foundFor, suggestions, search }) => html`
  <p>
    ${found.length > 0 && html`Nothing matches “${foundFor}” as it is written; these are similar. `}
    ${suggestions.length > 0 && 'Did you mean '}
    ${suggestions.map(
      (each) => html`<button type="button" onClick=${() => search.type(each)}>${each}</button> `,
    )}
  </p>
`;

/**
 * The results of a search.
 * @param search the search box: `list`, `close`, `add`, `type`, `showAll`
 */
export const Results = ({ app, search, view, markets, ...state }) => {
  const { found, total, suggestions, isSimilar, isFull, error } = state;
  const shared = { found, isSimilar, search };
  return html`
    <div class="results">
      ${isFull && html`<p class="bad" role="alert">At most ${PRICES_MAX} prices fit one chart; remove one first.</p>`}
      ${error && html`<p class="bad" role="alert">${error.message}.</p>`}
      ${found.length === 0 && !error && html`<p class="quiet">Nothing matches in the markets that this key opens.</p>`}
      ${
        (isSimilar || suggestions.length > 0) &&
        html`<${SimilarNote} ...${shared} foundFor=${state.foundFor} suggestions=${suggestions} />`
      }
      ${found.length > 0 && html`<${List} app=${app} ...${shared} view=${view} markets=${markets} />`}
      ${
        found.length > 0 &&
        html`<p class="row spread">
          <span class="quiet">${found.length} of ${total}</span>
          ${found.length < Math.min(total, ALL) && html`<button type="button" onClick=${search.showAll}>Show all</button>`}
        </p>`
      }
    </div>
  `;
};
