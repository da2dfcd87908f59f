// A market: its filters with counts, and its prices with their newest values.
import { askJson, askText, exact, onForget } from '../api.js';
import { endOf, minuteOf } from '../dates.js';
import { addressOf, linkTo, listRequest, PRICES_MAX } from '../link.js';
import { Loaded } from '../loaded.js';
import { Failed, Marks, OldNote, RefusalNote, Remarks } from '../notices.js';
import { counted, isPayable, NOTHING, placeText, titleOf, unitText } from '../texts.js';
import { Change, Day, Fold, figure, hiddenTitle, html, Kind, ScrollTable } from '../ui.js';
import { Colours } from './colours.js';

/** Number of prices on a page. */
const PAGE = 100;

/** On a narrow screen the filters are above the prices: they are folded to keep the prices in view. */
const narrow = matchMedia('(max-width: 900px)');

/** The view with a filter value toggled. */
function toggled(filters, name, value) {
  const before = filters[name] ?? [];
  const after = before.includes(value)
    ? before.filter((each) => each !== value)
    : [...before, value];
  const { [name]: _gone, ...others } = filters;
  return after.length > 0 ? { ...others, [name]: after } : others;
}

/** The member of a record that a filter selects by: `priceCategories` → `priceCategory`. */
const fieldOf = (filter) => filter.replace(/ies$/, 'y').replace(/s$/, '');

/** Maximum number of prices of a market whose counts follow the filters. */
const COUNTED_MAX = 2_000;

const isIn = (chosen, value) =>
  chosen.some((each) => each.toLowerCase() === String(value).toLowerCase());

/**
 * The number of prices for each value of a filter, among the prices that the other filters select.
 * @param rows one object for each price, with the value of each filter
 */
function countsOf(rows, filters, name) {
  const others = Object.entries(filters).filter(([other]) => other !== name);
  const counts = new Map();
  for (const row of rows) {
    if (!others.every(([other, chosen]) => isIn(chosen, row[fieldOf(other)]))) continue;
    const value = row[fieldOf(name)];
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return counts;
}

const Filter = ({ name, values, counts, chosen, toggle }) => html`
  <details open=${chosen.length > 0 || (values.length <= 6 && !narrow.matches)}>
    <summary>
      ${titleOf(name)}${' '}
      <span class="quiet">${chosen.length > 0 ? `${chosen.length} of ${values.length}` : values.length}</span>
    </summary>
    <ul>
      ${values.map(
        (value) => html`
          <li key=${value.id}>
            <label class="check">
              <input
                type="checkbox"
                checked=${chosen.includes(value.name)}
                onChange=${() => toggle(name, value.name)}
              />
              <bdi>${value.name}</bdi> <span class="count">${counts === null ? value.prices : (counts.get(value.name) ?? 0)}</span>
            </label>
          </li>
        `,
      )}
    </ul>
  </details>
`;

/**
 * The filters of a market. The count of a value is that of the prices that the other filters
 * select. In a very large market the counts cover the whole market of today.
 */
class Filters extends Loaded {
  keyOf({ market, view }) {
    return `${market} ${view.asOf}`;
  }

  async load({ market, prices, view }, signal) {
    const { data: filters } = await askJson(`v3/prices/${market}/filters`, signal);
    const fields = Object.keys(filters).map(fieldOf);
    if (prices > COUNTED_MAX) return { filters, rows: null };
    const address = addressOf(`v3/prices/${market}`, [
      ['format', 'rows'],
      ['columns', fields.join(',')],
      ['asOf', view.asOf && endOf(view.asOf)],
    ]);
    return { filters, rows: await askJson(address, signal) };
  }

  toggle = (name, value) => {
    const { app, view } = this.props;
    app.change({ filters: toggled(view.filters, name, value) });
  };

  render({ view, app }, { data, error }) {
    const rows = data?.rows ?? null;
    const filters = Object.entries(data?.filters ?? {}).filter(
      ([name, values]) => values.length > 1 || view.filters[name],
    );
    const chosen = Object.values(view.filters).flat();
    const areOfToday = view.asOf && data && rows === null;
    const title = html`<h2>Filters${areOfToday && html` <span class="quiet small">counts of today</span>`}</h2>`;
    const clear =
      chosen.length > 0 &&
      html`<button type="button" onClick=${() => app.change({ filters: {} })}>Clear</button>`;
    const lists = html`
      ${error && html`<${RefusalNote} error=${error} />`}
      ${filters.map(
        ([name, values]) => html`
          <${Filter}
            key=${name}
            name=${name}
            values=${values}
            counts=${rows && countsOf(rows, view.filters, name)}
            chosen=${view.filters[name] ?? []}
            toggle=${this.toggle}
          />
        `,
      )}
    `;
    return html`
      <aside class="panel filters" aria-label="Filters">
        ${
          narrow.matches
            ? html`<${Fold} title=${title} inUse=${chosen.join(', ')}>${clear && html`<div class="row">${clear}</div>`}${lists}</${Fold}>`
            : html`<div class="row spread">${title}${clear}</div>${lists}`
        }
      </aside>
    `;
  }
}

/** The newest value, or the reason for a missing one. */
const midText = (latest) => {
  if (!latest) return NOTHING;
  return latest.mid === null
    ? html`no rate <span class="base">yet for ${latest.date}</span>`
    : figure(latest.mid);
};

const Row = ({ market, record, records, view, isChosen, choose }) => {
  const { latest } = record.summary;
  const price = { ...view, filters: {}, market: null, prices: [{ market, code: record.code }] };
  return html`
    <tr class=${isChosen ? 'chosen' : ''}>
      <td class="tick">
        <input
          type="checkbox"
          aria-label=${`Choose ${record.code}`}
          checked=${isChosen}
          onChange=${() => choose(record.code)}
        />
      </td>
      <td class="code further">${record.code}</td>
      <th scope="row" class="wide">
        <a href=${linkTo(price)}><bdi>${record.name}</bdi></a>
        <${Kind} record=${record} /><${Marks} record=${record} among=${records} />
      </th>
      <td class="place further">${placeText(record)}</td>
      <td class="further">${record.frequency?.name}</td>
      <td class="number strong">${midText(latest)}</td>
      <td class="unit">${unitText(record)}</td>
      <td class="number" data-label="Month"><${Change} summary=${record.summary} span="month" isPoints=${isPayable(record)} /></td>
      <td class="date">
        <${Day} date=${record.lastAssessedAt} frequency=${record.frequency} asOf=${view.asOf} />
      </td>
    </tr>
  `;
};

const HEADS = [
  [hiddenTitle('Choose')],
  ['Code', 'further'],
  ['Price', 'wide'],
  ['Place', 'further'],
  ['Frequency', 'further'],
  ['Mid', 'number'],
  ['Unit', 'unit'],
  ['Month', 'number'],
  ['Latest'],
];

/** The chosen codes of each market. They outlive the list: a reader comes back from a chart. */
const ticks = new Map();
onForget(() => ticks.clear());

/** The prices of a market that match the filters, a hundred per page. */
class List extends Loaded {
  chosen = ticks.get(this.props.market) ?? [];

  keyOf({ view }) {
    return listRequest(view, PAGE, null);
  }

  async load({ view }, signal) {
    this.setState({ moreError: null });
    return this.read(view, null, signal);
  }

  async read(view, cursor, signal) {
    const { $metadata, data } = exact(await askText(listRequest(view, PAGE, cursor), signal));
    return { records: data, cursor: $metadata.nextCursor, warnings: $metadata.warnings };
  }

  more = async () => {
    const { records, cursor, warnings } = this.state.data;
    const { signal } = this.asking;
    try {
      const next = await this.read(this.props.view, cursor, signal);
      const data = { records: [...records, ...next.records], cursor: next.cursor, warnings };
      this.setState({ data, moreError: null });
    } catch (error) {
      if (signal.aborted) return;
      const isHandled = this.props.app.fail(error);
      this.setState({ moreError: isHandled ? null : error });
    }
  };

  choose = (code) => {
    const has = this.chosen.includes(code);
    if (!has && this.chosen.length >= PRICES_MAX) this.setState({ isFull: true });
    else this.keep(has ? this.chosen.filter((each) => each !== code) : [...this.chosen, code]);
  };

  keep(chosen) {
    this.chosen = chosen;
    ticks.set(this.props.market, chosen);
    this.setState({ isFull: false });
  }

  Bar() {
    const { market, view } = this.props;
    const prices = this.chosen.map((code) => ({ market, code }));
    const link = linkTo({ ...view, filters: {}, market: null, prices });
    return html`
      <div class="choice" role="status">
        ${
          this.state.isFull
            ? html`<span class="bad">At most ${PRICES_MAX} prices fit one chart; take one out first.</span>`
            : html`<span>${counted(prices.length, 'price')} chosen</span>`
        }
        <button type="button" onClick=${() => this.keep([])}>Clear</button>
        <a class="button main" href=${link}>Show chart</a>
      </div>
    `;
  }

  table(data) {
    const { market, view } = this.props;
    return html`
      <${ScrollTable} name="Prices" kind="list market stack" heads=${HEADS}>
        ${data.records.map(
          (record) => html`
            <${Row}
              key=${record.code}
              market=${market}
              record=${record}
              records=${data.records}
              view=${view}
              isChosen=${this.chosen.includes(record.code)}
              choose=${this.choose}
            />
          `,
        )}
      </${ScrollTable}>
    `;
  }

  render({ app }, { data, error, isLoading, moreError }) {
    if (error) return html`<${Failed} error=${error} again=${this.reload} />`;
    if (data === null) return html`<p class="panel quiet">Asking for prices…</p>`;
    const isFiltered = Object.keys(this.props.view.filters).length > 0;
    const isOld = this.isOld();
    const isBusy = isLoading || isOld;
    return html`
      <section class=${`panel flush ${isBusy ? 'stale' : ''}`} aria-busy=${isBusy ? 'true' : 'false'}>
        ${isOld && !isLoading && html`<${OldNote} />`}
        <${Remarks} records=${data.records} warnings=${data.warnings} />
        ${
          data.records.length === 0
            ? html`<p class="empty">
                ${emptyText(isFiltered, this.props.view.asOf)}
                ${isFiltered && html`<button type="button" onClick=${() => app.change({ filters: {} })}>Clear filters</button>`}
              </p>`
            : this.table(data)
        }
        ${moreError && html`<${RefusalNote} error=${moreError} />`}
        ${data.cursor && html`<p class="more"><button type="button" onClick=${this.more}>Show more</button></p>`}
        ${this.chosen.length > 0 && this.Bar()}
      </section>
    `;
  }
}

/** The reason for an empty list. */
function emptyText(isFiltered, asOf) {
  const time = asOf && minuteOf(endOf(asOf));
  if (isFiltered) return `No price passes these filters${asOf ? ` at ${time}` : ''}. `;
  return asOf ? `The service had no price of this market at ${time}.` : 'No price is here yet.';
}

/** A market with its filters and prices. */
export const MarketView = ({ app, view, markets }) => {
  const market = markets.find(({ slug }) => slug === view.market);
  return html`
    <div>
      <div class="row title">
        <a href=${linkTo({ ...view, market: null, filters: {} })}>Markets</a>
        <h1>${market.name}</h1>
        ${
          market.authorized &&
          html`<span class="quiet">${counted(market.prices, 'price')}, newest of ${market.lastDate ?? NOTHING}${view.asOf && ' (today)'}</span>`
        }
      </div>
      ${
        market.authorized
          ? html`
              <div class="columns">
                <${Filters} key=${`f ${market.slug}`} app=${app} view=${view} market=${market.slug} prices=${market.prices} />
                <${List} key=${market.slug} app=${app} view=${view} market=${market.slug} />
              </div>
            `
          : html`<div class="panel">
              <p class="note bad" role="alert">
                <strong>This key does not open ${market.name}.</strong> It needs the scope${' '}
                <code>${market.scope}</code>.
              </p>
            </div>`
      }
      <${Colours} />
    </div>
  `;
};
