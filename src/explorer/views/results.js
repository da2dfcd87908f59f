// Searches, and the results of the search box.
import { askJson } from '../api.js';
import { addressOf, kindOf, linkTo, PRICES_MAX } from '../link.js';
import { html, Kind } from '../ui.js';

/** Maximum number of shown results. */
const LIMIT = 12;

/**
 * Requests the prices that match a text: `data` with `market`, `code`, `name` and `matched`
 * (`field`, `value`), and `suggestions` for a misspelt text.
 */
export async function lookUp(text, signal) {
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

/** Members of a result that its entry always shows. */
const SHOWN = ['code', 'name', 'market'];

/** Other attributes that match, such as the formula of the product. */
const foundIn = ({ matched }) =>
  matched.flatMap(({ field, value }) => (SHOWN.includes(field) ? [] : [value]));

/** The link to a view of one price, with the options of the current view. */
const linkOf = (view, { market, code }) =>
  linkTo({ ...view, filters: {}, market: null, code: null, prices: [{ market, code }] });

const Result = ({ price, view, markets, search }) => {
  const market = markets.find(({ slug }) => slug === price.market)?.name ?? price.market;
  return html`
      <li>
        <a href=${linkOf(view, price)} onClick=${search.close}>
          <bdi>${price.name}</bdi> <${Kind} record=${price} />
          <span class="quiet"><code>${price.code}</code> ${[market, ...foundIn(price)].join(', ')}</span>
        </a>
        ${
          kindOf(view) === 'prices' &&
          html`<button type="button" aria-label=${`Add ${price.code}`} onClick=${() => search.add(price)}>Add</button>`
        }
      </li>
    `;
};

/**
 * The results of a search.
 * @param search the search box: `list`, `close`, `add`, `type`
 */
export const Results = ({ search, view, markets, found, suggestions, isFull, error }) => html`

      <div class="results">
        ${isFull && html`<p class="bad" role="alert">At most ${PRICES_MAX} prices fit one chart; remove one first.</p>`}
        ${
          found.length > 0 &&
          html`<ul ref=${search.list}>${found.map(
            (price) =>
              html`<${Result} key=${`${price.market} ${price.code}`} price=${price} view=${view} markets=${markets} search=${search} />`,
          )}</ul>`
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
