// The record of one price: its attributes, its specification and its corrections, with its chart.

import { seriesOf } from '../answers.js';
import { askText, exact } from '../api.js';
import { anchorFor, endOf } from '../dates.js';
import { mean } from '../decimals.js';
import { addressOf, EMPTY, linkTo } from '../link.js';
import { Loaded } from '../loaded.js';
import { Failed, Remarks } from '../notices.js';
import { citationOf } from '../take-away/cite.js';
import { isPayable, NOTHING, titleOf, unitText } from '../texts.js';
import { Change, Component, figure, html, Later } from '../ui.js';
import { ChartView } from './chart-view.js';
import { Colours } from './colours.js';

/** Members that the page shows elsewhere. */
const APART = ['name', 'series', 'summary', 'specification', 'conversion', 'nextExpectedAt'];

/** The parts of a view that a record ignores: it has the numbers as published. */
const PUBLISHED = { currency: null, unit: null, average: null, vat: null, compare: null };

/** Titles of members that their names do not say. */
const TITLES = { vatCountry: 'VAT included' };

/** The value of a member: countries by name, a reference with a link to its price. */
function shownValue(member, value) {
  if (member === 'vatCountry' && value) {
    return `${new Intl.DisplayNames(['en'], { type: 'region' }).of(value)} (${value})`;
  }
  if (member !== 'reference' || !value) return valueText(value);
  const { code, earlier = [], validFrom, ...others } = value;
  return html`
    <a href=${linkTo({ ...EMPTY, code })}>${code}</a> ${Object.values(others).filter(Boolean).join(', ')}, from ${validFrom}
    ${earlier.length > 0 && ` (before: ${earlier.map((each) => each.code).join(', ')})`}
  `;
}

/** A record value as text: a reference by its name and further members. */
function valueText(value) {
  if (value === null || value === undefined) return NOTHING;
  if (value === true) return 'yes';
  if (value === false) return 'no';
  if (Array.isArray(value)) return value.map(valueText).join('; ');
  if (typeof value !== 'object') return String(value);
  const { id: _id, code, name = code, order: _order, ...others } = value;
  const further = Object.entries(others)
    .filter(([, each]) => each !== null && each !== false && each !== name && each.length !== 0)
    .map(([key, each]) => (each === true ? titleOf(key).toLowerCase() : valueText(each)));
  return [name, further.length > 0 && `(${further.join(', ')})`].filter(Boolean).join(' ');
}

const Attributes = ({ rows }) => html`
  <dl class="attributes">
    ${rows.map(
      ([name, value]) => html`
        <div key=${name}>
          <dt><bdi>${name}</bdi></dt>
          <dd><bdi>${value}</bdi></dd>
        </div>
      `,
    )}
  </dl>
`;

const corrections = async () => (await import('./corrections/of-price.js')).Corrections;
const publication = async () => (await import('./publication.js')).Publication;
const nothing = async () => (await import('./nothing.js')).Nothing;

/** Spans of the changes of a summary, with their names. */
const SPANS = [
  ['previous', 'Since the previous value'],
  ['week', 'Week'],
  ['month', 'Month'],
  ['quarter', 'Quarter'],
  ['year', 'Year'],
  ['yearToDate', 'Since the end of last year'],
];

/** The summary of a price up to the end of the range, with exact numbers. */
async function summaryOf(market, { code, to, asOf }, signal) {
  const address = addressOf(`v3/prices/${encodeURIComponent(market)}`, [
    ['codes', code],
    ['dateTo', to],
    ['includeSummary', 'true'],
    ['asOf', asOf && endOf(asOf)],
  ]);
  return exact(await askText(address, signal)).data[0]?.summary ?? null;
}

/** The points with the highest and the lowest mid of the range, the mean and the number of mids. */
function extremesOf(series) {
  const known = series.filter(({ mid }) => mid !== null);
  if (known.length === 0) return null;
  const better = (isBetter) => known.reduce((best, each) => (isBetter(each, best) ? each : best));
  return {
    high: better((each, best) => Number(each.mid) > Number(best.mid)),
    low: better((each, best) => Number(each.mid) < Number(best.mid)),
    mean: mean(known.map(({ mid }) => mid)),
    count: known.length,
  };
}

/** Changes of a price, and high, low and mean of its range. Null without any. */
function Figures({ record, summary }) {
  const range = extremesOf(record.series);
  if (!summary?.latest && range === null) return null;
  const unit = unitText(record);
  const isPoints = isPayable(record);
  return html`
    <section class="panel">
      <h2>Figures</h2>
      <dl class="attributes figures">
        ${
          summary?.latest &&
          html`<div><dt>Newest mid</dt><dd><strong>${figure(summary.latest.mid)}</strong> ${unit}, ${summary.latest.date}</dd></div>`
        }
        ${
          summary?.latest &&
          SPANS.map(
            ([span, name]) => html`
              <div key=${span}>
                <dt>${name}</dt>
                <dd><${Change} summary=${summary} span=${span} isPoints=${isPoints} isDated=${true} /></dd>
              </div>
            `,
          )
        }
        ${
          range &&
          html`
            <div><dt>High of the range</dt><dd><strong>${figure(range.high.mid)}</strong> ${unit}, ${range.high.date}</dd></div>
            <div><dt>Low of the range</dt><dd><strong>${figure(range.low.mid)}</strong> ${unit}, ${range.low.date}</dd></div>
            <div>
              <dt>Mean of the range</dt>
              <dd><strong>${figure(range.mean)}</strong> ${unit}, of ${range.count} mids, <span class="day">${record.series[0].date}</span> to <span class="day">${record.series.at(-1).date}</span></dd>
            </div>
          `
        }
      </dl>
    </section>
  `;
}

/** A citation with a button that copies it. */
class Citation extends Component {
  copy = async () => {
    const { copied } = await import('../take-away/clipboard.js');
    this.setState({ said: await copied(this.props.text) });
  };

  render({ text }, { said }) {
    return html`
      <p class="cite">${text}</p>
      <div class="row">
        <button type="button" onClick=${this.copy}>Copy citation</button>
        <span class="quiet" role="status">${said}</span>
      </div>
    `;
  }
}

/** The calculation that begins with a price: its average of a month, or the value of a payable. */
function calculationOf(record, asOf) {
  const { code } = record;
  const explicit = {
    formula: 'payable * reference * content',
    inputs: {
      payable: { code, period: 'S' },
      reference: { code: '', period: 'M-1' },
      content: { value: '18', unit: '%' },
    },
  };
  const average = { average: code, period: 'M-1' };
  const valued = { payables: [{ code }], period: 'S', referencePeriod: 'M-1' };
  const form = record.reference ? valued : isPayable(record) ? explicit : average;
  const options = asOf ? { options: { asOf: endOf(asOf) } } : {};
  return { ...form, anchor: anchorFor(record.lastAssessedAt), result: { decimals: 2 }, ...options };
}

export class RecordView extends Loaded {
  keyOf({ view: { code, market, asOf, from, to } }) {
    return JSON.stringify([code, market, asOf, from, to]);
  }

  async load({ view }, signal) {
    const market =
      view.market ?? (await (await import('./results.js')).marketOf(view.code, signal));
    if (market === null) return { unknown: view.code };
    const prices = [{ market, code: view.code }];
    const shown = { ...view, ...PUBLISHED, prices };
    const [{ answers, entries }, summary] = await Promise.all([
      seriesOf(shown, signal),
      summaryOf(market, view, signal),
    ]);
    const [{ $metadata }] = answers;
    if (entries.length === 0) return { unknown: view.code, warnings: $metadata.warnings };
    return { market, entries, summary, $metadata, record: entries[0].exactly() };
  }

  render({ view }, { data, error }) {
    if (error) return html`<${Failed} error=${error} again=${this.reload} />`;
    if (data === null) return html`<p class="panel quiet" role="status">Asking for the price…</p>`;
    const warnings = data.warnings ?? [];
    if (view.asOf && warnings.some(({ existsSince }) => existsSince)) {
      return html`<div class="panel">
        <h1><code>${data.unknown}</code></h1>
        <${Later} load=${nothing} app=${this.props.app} view=${view} entries=${[]} warnings=${warnings} />
      </div>`;
    }
    if (data.unknown) {
      return html`<div class="panel">
        <h1>No such price</h1>
        <p class="note bad" role="alert">
          No market that this key opens has a price with the code <bdi><code>${data.unknown}</code></bdi>.
        </p>
        <${Remarks} warnings=${warnings} />
        <p><a href=${linkTo({ ...view, code: null, market: null })}>All markets</a></p>
      </div>`;
    }
    return this.page(data);
  }

  page({ market, entries, record, summary, $metadata }) {
    const { app, view, markets } = this.props;
    const { name } = markets.find(({ slug }) => slug === market);
    const price = { market, code: record.code };
    const published = { ...view, ...PUBLISHED, rates: null };
    const shown = { ...published, prices: [price], index: false };
    const rows = Object.entries(record)
      .filter(([member, value]) => !APART.includes(member) && (member !== 'reference' || value))
      .map(([member, value]) => [TITLES[member] ?? titleOf(member), shownValue(member, value)]);
    const chart = linkTo({ ...view, code: null, market: null, filters: {}, prices: [price] });
    const calculation = linkTo({
      ...EMPTY,
      calculate: JSON.stringify(calculationOf(record, view.asOf)),
    });
    const specification = record.specification.map((each) => [each.name, each.value]);
    return html`
      <article>
        <div class="row title">
          <a href=${linkTo({ ...view, code: null, market, filters: {} })}>${name}</a>
          <h1><bdi>${record.name}</bdi></h1>
          <a class="button" href=${calculation}>Calculate</a>
          <a class="button" href=${chart}>Convert and take away</a>
        </div>
        <div class="columns record">
          <div>
            <section class="panel">
              <${Remarks} records=${[record]} />
              ${
                record.series.length > 0
                  ? html`<${ChartView} app=${app} view=${shown} entries=${entries} isRead=${true} />`
                  : html`<${Later} load=${nothing} app=${app} view=${view} entries=${entries} />`
              }
            </section>
            <${Figures} record=${record} summary=${summary} />
            <section class="panel">
              <h2>Citation</h2>
              <${Citation} text=${citationOf(entries[0], $metadata, published)} />
            </section>
            <section class="panel">
              <h2>Corrections</h2>
              ${
                record.series.some((point) => point.corrections !== '0')
                  ? html`<${Later}
                      load=${corrections}
                      key=${`${market} ${record.code} ${view.asOf}`}
                      app=${app}
                      market=${market}
                      code=${record.code}
                      asOf=${view.asOf}
                      points=${record.series}
                    />`
                  : html`<p>No point ${view.from || view.to ? 'in the range shown' : 'of this price'} was ever corrected.</p>`
              }
            </section>
          </div>
          <section class="panel">
            <h2>Specification</h2>
            ${
              specification.length > 0
                ? html`<${Attributes} rows=${specification} />`
                : html`<p class="quiet">This price has no specification.</p>`
            }
            <h2>Publication</h2>
            ${
              view.asOf
                ? html`<${Attributes} rows=${[['Next expected', valueText(record.nextExpectedAt)]]} />`
                : html`<${Later} load=${publication} app=${app} market=${market} code=${record.code} next=${record.nextExpectedAt} />`
            }
            <h2>Attributes</h2>
            <${Attributes} rows=${rows} />
          </section>
        </div>
        <${Colours} />
      </article>
    `;
  }
}
