// The first view: each market with its number of prices and a representative price.

import { askText, exact } from '../api.js';
import { dateOf, dayOf, endOf, monthsFrom } from '../dates.js';
import { addressOf, EMPTY, linkTo } from '../link.js';
import { Loaded } from '../loaded.js';
import { Marks, Remarks } from '../notices.js';
import { lineOf } from '../series.js';
import { isPayable, unitText } from '../texts.js';
import { Change, Component, Day, figure, html, Kind, ScrollTable } from '../ui.js';
import { Colours } from './colours.js';
import { Spark } from './spark.js';
import { Today } from './today.js';

/** Number of prices from which the representative one is chosen. */
const CANDIDATES = 3;

/** The representative price: no payable if possible, the newest value, the most points in a year. */
const representative = (records) =>
  records.toSorted(
    (a, b) =>
      Number(isPayable(a)) - Number(isPayable(b)) ||
      (b.lastAssessedAt ?? '').localeCompare(a.lastAssessedAt ?? '') ||
      b.series.length - a.series.length,
  )[0];

/** The last day of a market, or the day of `asOf` if that is earlier. */
function lastKnown({ lastDate }, asOf) {
  const day = asOf?.slice(0, 10);
  return day && day < lastDate ? day : lastDate;
}

/** A market that the key can read. */
class MarketOverview extends Loaded {
  keyOf({ market, asOf }) {
    return `${market.slug} ${asOf}`;
  }

  async load({ market, asOf }, signal) {
    if (market.lastDate === null) return null;
    const address = addressOf(`v3/prices/${market.slug}`, [
      ['limit', CANDIDATES],
      ['includeSeries', 'true'],
      ['includeSummary', 'true'],
      ['dateFrom', dateOf(monthsFrom(dayOf(lastKnown(market, asOf)), -12))],
      ['asOf', asOf && endOf(asOf)],
    ]);
    const text = await askText(address, signal);
    const record = representative(JSON.parse(text).data);
    if (record) this.props.onRecord(market.slug, record);
    return record && { record, latest: exact(text).data.find(({ code }) => code === record.code) };
  }

  render({ market, asOf, among, last }, { data, isLoading, error }) {
    const { slug, name, prices } = market;
    const record = data?.record;
    const summary = data?.latest.summary;
    const latest = summary?.latest;
    const isUnknown = asOf && !record && !isLoading && !error;
    const price = record && { ...EMPTY, prices: [{ market: slug, code: record.code }], asOf };
    return html`
      <tr class=${this.isOld() ? 'stale' : ''} aria-busy=${isLoading ? 'true' : 'false'}>
        <th scope="row"><a href=${linkTo({ ...EMPTY, market: slug, asOf })}>${name}</a></th>
        <td class="number count">${prices}</td>
        <td class="wide">
          ${record ? html`<a class="plain" href=${linkTo(price)}>${record.name}</a>` : ''}
          ${record && html`<${Kind} record=${record} /><${Marks} record=${record} among=${among} />`}
          ${isUnknown && html`<span class="quiet">nothing was loaded at that time</span>`}
          ${error && html`<span class="bad" role="alert">${error.message}</span>`}
          ${isLoading && !record && html`<span class="quiet">…</span>`}
        </td>
        <td class="spark-cell">${record && html`<${Spark} line=${lineOf(record, null)} first=${monthsFrom(last, -12)} last=${last} />`}</td>
        <td class="number strong">${latest && figure(latest.mid)}</td>
        <td class="unit">${record && unitText(record)}</td>
        <td class="number">
          ${record && html`<${Change} summary=${summary} span="month" isPoints=${isPayable(record)} />`}
        </td>
        <td class="number">
          ${record && html`<${Change} summary=${summary} span="year" isPoints=${isPayable(record)} />`}
        </td>
        <td class="date latest">
          <${Day}
            date=${latest?.date}
            frequency=${record?.frequency}
            asOf=${asOf}
          />
        </td>
      </tr>
    `;
  }
}

const Closed = ({ markets }) => html`
  <section class="panel">
    <h2>Closed to this key</h2>
    <ul class="closed">
      ${markets.map(
        ({ name, scope }) =>
          html`<li>${name} <span class="quiet">needs <code>${scope}</code></span></li>`,
      )}
    </ul>
  </section>
`;

/** Explains how to load prices into an empty service. */
const Empty = () => html`
  <section class="panel">
    <h2>There are no prices yet</h2>
    <p>The operator loads them on the command line: samples of every market, or files.</p>
    <pre tabindex="0" aria-label="Commands"><code>./prices db seed
./prices load worldbank CMO-Historical-Data-Monthly.xlsx
./prices load csv prices.csv</code></pre>
  </section>
`;

/** All markets, readable or not. */
export class Overview extends Component {
  state = { records: {} };

  onRecord = (slug, record) =>
    this.setState(({ records }) => ({ records: { ...records, [slug]: record } }));

  render({ app, markets, view }, { records }) {
    const among = Object.values(records);
    const open = markets.filter(({ authorized }) => authorized);
    const closed = markets.filter(({ authorized }) => !authorized);
    const lastDates = open.flatMap((market) => lastKnown(market, view.asOf) ?? []).sort();
    const last = lastDates.length > 0 ? dayOf(lastDates.at(-1)) : null;
    const heads = [
      ['Market'],
      [view.asOf ? 'Prices today' : 'Prices', 'number'],
      ['Representative price', 'wide'],
      [last === null ? 'Year' : `Year to ${dateOf(last)}`],
      ['Mid', 'number'],
      ['Unit', 'unit'],
      ['Month', 'number'],
      ['Year', 'number'],
      ['Latest'],
    ];
    const isEmpty = open.length > 0 && open.every(({ prices }) => !prices);
    return html`
    <div>
      <h1 class="hidden">Markets</h1>
      ${isEmpty && html`<${Empty} />`}
      ${
        !isEmpty &&
        open.length > 0 &&
        !view.asOf &&
        html`<section class="panel today"><${Today} app=${app} markets=${open} /></section>`
      }
      ${
        !isEmpty &&
        open.length > 0 &&
        html`
          <section class="panel flush">
            <${Remarks} records=${among} />
            <${ScrollTable} name="Markets" kind="list overview" heads=${heads}>
              ${open.map(
                (market) => html`
                  <${MarketOverview}
                    key=${market.slug}
                    app=${app}
                    market=${market}
                    asOf=${view.asOf}
                    among=${among}
                    last=${last}
                    onRecord=${this.onRecord}
                  />
                `,
              )}
            </${ScrollTable}>
          </section>
          <p><a href=${linkTo({ ...EMPTY, corrections: 'visit' })}>Corrections</a></p>
        `
      }
      ${closed.length > 0 && html`<${Closed} markets=${closed} />`}
      <${Colours} />
    </div>
  `;
  }
}
