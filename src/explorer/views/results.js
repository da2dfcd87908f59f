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
 *   number of matching prices; and `suggestions` for a misspelt text
 */
export async function lookUp(text, signal, isAll = false) {
  const address = addressOf('v3/search', [
    ['q', text],
    ['limit', isAll ? ALL : FIRST],
  ]);
  const { data, $metadata } = await askJson(address, signal);
  return { data, total: $metadata.total, suggestions: $metadata.suggestions };
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

/** The requests for the newest values of results, in groups of one market. */
function valueRequests(found, asOf) {
  return Object.entries(Object.groupBy(found, ({ market }) => market)).map(([market, prices]) => ({
    market,
    address: addressOf(`v3/prices/${encodeURIComponent(market)}`, [
      ...prices.slice(0, CODES_MAX).map(({ code }) => ['codes', code]),
      ['includeSummary', 'true'],
      ['asOf', asOf && endOf(asOf)],
      ['limit', CODES_MAX],
    ]),
  }));
}

/** The records of prices with their newest values, by market and code. */
export async function newestOf(prices, asOf, signal) {
  const records = await Promise.all(
    valueRequests(prices, asOf).map(async ({ market, address }) =>
      exact(await askText(address, signal)).data.map((record) => [
        keyOf({ market, code: record.code }),
        record,
      ]),
    ),
  );
  return new Map(records.flat());
}

/** The newest value of a price with its unit and day. */
const Latest = ({ record, asOf }) => {
  const { latest } = record.summary;
  return (
    latest &&
    html`<strong>${figure(latest.mid)}</strong> ${unitText(record)} <${Day} date=${latest.date} frequency=${record.frequency} asOf=${asOf} />`
  );
};

const Result = ({ price, record, view, markets, search }) => {
  const market = markets.find(({ slug }) => slug === price.market)?.name ?? price.market;
  return html`
    <li>
      <a href=${linkOf(view, price)} onClick=${(event) => search.choose(event, price)}>
        <span>
          <bdi>${price.name}</bdi> <${Kind} record=${price} />${' '}
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

/** The list of results. Their newest values are requested when typing rests. */
class List extends Loaded {
  keyOf({ found, view }) {
    return JSON.stringify([view.asOf, ...found.map(keyOf)]);
  }

  async load({ found, view }, signal) {
    await new Promise((done) => setTimeout(done, REST_MS));
    signal.throwIfAborted();
    return newestOf(found, view.asOf, signal);
  }

  render({ found, view, markets, search }, { data }) {
    return html`
      <ul ref=${search.list}>
        ${found.map(
          (price) => html`
            <${Result}
              key=${keyOf(price)}
              price=${price}
              record=${data?.get(keyOf(price))}
              view=${view}
              markets=${markets}
              search=${search}
            />
          `,
        )}
      </ul>
    `;
  }
}

/**
 * The results of a search.
 * @param search the search box: `list`, `close`, `add`, `type`, `showAll`
 */
export const Results = ({ app, search, view, markets, ...state }) => {
  const { found, total, suggestions, isFull, error } = state;
  return html`
    <div class="results">
      ${isFull && html`<p class="bad" role="alert">At most ${PRICES_MAX} prices fit one chart; remove one first.</p>`}
      ${found.length > 0 && html`<${List} app=${app} found=${found} view=${view} markets=${markets} search=${search} />`}
      ${
        found.length > 0 &&
        html`<p class="row spread">
          <span class="quiet">${found.length} of ${total}</span>
          ${found.length < Math.min(total, ALL) && html`<button type="button" onClick=${search.showAll}>Show all</button>`}
        </p>`
      }
      ${error && html`<p class="bad" role="alert">${error.message}.</p>`}
      ${found.length === 0 && !error && html`<p class="quiet">Nothing matches in the markets that this key opens.</p>`}
      ${
        suggestions.length > 0 &&
        html`<p>
          Did you mean${' '}
          ${suggestions.map(
            (each) =>
              html`<button type="button" onClick=${() => search.type(each)}>${each}</button> `,
          )}
        </p>`
      }
    </div>
  `;
};
