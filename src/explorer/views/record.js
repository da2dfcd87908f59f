// The record of one price: its attributes, its specification and its corrections, with its chart.

import { minuteOf } from '../dates.js';
import { correctionsOf } from '../history.js';
import { linkTo } from '../link.js';
import { Loaded } from '../loaded.js';
import { Failed, SampleNote, Warnings } from '../notices.js';
import { NOTHING } from '../texts.js';
import { html } from '../ui.js';
import { ChartView } from './chart-view.js';
import { seriesOf } from './prices.js';
import { marketOf } from './search.js';

const valuesText = ({ low, mid, high }) =>
  low === null ? (mid ?? NOTHING) : `${mid ?? NOTHING} (${low} to ${high})`;

/** Explanation of an empty list of corrections. */
const noneText = (isSearched, isRange) => {
  if (isSearched)
    return 'Points were corrected; a bounded search did not find the replaced values.';
  return `No point ${isRange ? 'in the range shown' : 'of this price'} was ever corrected.`;
};

/**
 * @param points exact points of the price
 * @param isRange true if the points are only a part of the series
 */
class Corrections extends Loaded {
  keyOf({ market, code, asOf }) {
    return JSON.stringify([market, code, asOf, this.question()?.count]);
  }

  question() {
    const corrected = this.props.points.filter(({ corrections }) => corrections !== '0');
    if (corrected.length === 0) return null;
    const { market, code, asOf } = this.props;
    const count = corrected.reduce((sum, { corrections }) => sum + Number(corrections), 0);
    return { market, code, asOf, from: corrected[0].date, to: corrected.at(-1).date, count };
  }

  async load(_props, signal) {
    const question = this.question();
    return question === null ? { corrections: [], isWhole: true } : correctionsOf(question, signal);
  }

  render({ isRange }, { data, error }) {
    if (error) return html`<${Failed} error=${error} again=${this.reload} />`;
    if (data === null) return html`<p class="quiet">Looking for corrections…</p>`;
    const { corrections, isWhole } = data;
    if (corrections.length === 0) {
      return html`<p>${noneText(this.question() !== null, isRange)}</p>`;
    }
    return html`
      <div class="scroll" tabindex="0" role="region" aria-label="Corrections">
        <table class="list corrections">
          <thead>
            <tr>
              <th scope="col">Recorded</th>
              <th scope="col">Point of</th>
              <th scope="col">Before</th>
              <th scope="col">After</th>
            </tr>
          </thead>
          <tbody>
            ${corrections.map(
              ({ date, recordedAt, before, after }) => html`
                <tr key=${`${date} ${recordedAt}`}>
                  <td class="date">${minuteOf(recordedAt)}</td>
                  <th scope="row" class="date">${date}</th>
                  <td class="figure"><del>${valuesText(before)}</del></td>
                  <td class="figure">${valuesText(after)}</td>
                </tr>
              `,
            )}
          </tbody>
        </table>
      </div>
      ${!isWhole && html`<p class="quiet">Earlier corrections may be missing.</p>`}
    `;
  }
}

/** Members that the page shows elsewhere. */
const APART = ['name', 'series', 'summary', 'specification', 'conversion'];

/** `assessmentLaunchedAt` → `Assessment launched at`. */
const titleOf = (member) => {
  const words = member.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
};

/** A record value as text: a reference by its name and further members. */
function valueText(value) {
  if (value === null || value === undefined) return NOTHING;
  if (value === true) return 'yes';
  if (value === false) return 'no';
  if (Array.isArray(value)) return value.map(valueText).join('; ');
  if (typeof value !== 'object') return String(value);
  const { id: _id, name, order: _order, ...others } = value;
  const further = Object.entries(others)
    .filter(([, each]) => each !== null && each !== false && each !== name)
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

export class RecordView extends Loaded {
  keyOf({ view: { code, market, asOf, from, to } }) {
    return JSON.stringify([code, market, asOf, from, to]);
  }

  async load({ view }, signal) {
    const market = view.market ?? (await marketOf(view.code, signal));
    if (market === null) return { unknown: view.code };
    const prices = [{ market, code: view.code }];
    const shown = { ...view, prices, currency: null, unit: null, average: null };
    const { answers, entries } = await seriesOf(shown, signal);
    if (entries.length === 0) {
      const [{ $metadata }] = answers;
      return { unknown: view.code, warnings: $metadata.warnings };
    }
    return { market, entries, record: entries[0].exactly() };
  }

  render({ view }, { data, error }) {
    if (error) return html`<${Failed} error=${error} again=${this.reload} />`;
    if (data === null) return html`<p class="panel quiet" role="status">Asking for the price…</p>`;
    if (data.unknown) {
      return html`<div class="panel">
        <h1>No such price</h1>
        <p class="note bad" role="alert">
          No market that this key opens has a price with the code <bdi><code>${data.unknown}</code></bdi>.
        </p>
        <${Warnings} warnings=${data.warnings ?? []} />
        <p><a href=${linkTo({ ...view, code: null, market: null })}>All markets</a></p>
      </div>`;
    }
    return this.page(data);
  }

  page({ market, entries, record }) {
    const { app, view, markets } = this.props;
    const { name } = markets.find(({ slug }) => slug === market);
    const price = { market, code: record.code };
    const published = { currency: null, unit: null, average: null };
    const shown = { ...view, ...published, prices: [price], index: false };
    const rows = Object.entries(record)
      .filter(([member]) => !APART.includes(member))
      .map(([member, value]) => [titleOf(member), valueText(value)]);
    const chart = linkTo({ ...view, code: null, market: null, filters: {}, prices: [price] });
    const specification = record.specification.map((each) => [each.name, each.value]);
    return html`
      <article>
        <div class="row title">
          <a href=${linkTo({ ...view, code: null, market, filters: {} })}>${name}</a>
          <h1><bdi>${record.name}</bdi></h1>
          <a class="button" href=${chart}>Convert and take away</a>
        </div>
        <div class="columns record">
          <div>
            <section class="panel">
              <${SampleNote} records=${[record]} />
              <${ChartView} app=${app} view=${shown} entries=${entries} isRead=${true} />
            </section>
            <section class="panel">
              <h2>Corrections</h2>
              <${Corrections}
                key=${`${market} ${record.code} ${view.asOf}`}
                app=${app}
                market=${market}
                code=${record.code}
                asOf=${view.asOf}
                points=${record.series}
                isRange=${Boolean(view.from || view.to)}
              />
            </section>
          </div>
          <section class="panel">
            <h2>Specification</h2>
            ${
              specification.length > 0
                ? html`<${Attributes} rows=${specification} />`
                : html`<p class="quiet">This price has no specification.</p>`
            }
            <h2>Attributes</h2>
            <${Attributes} rows=${rows} />
          </section>
        </div>
      </article>
    `;
  }
}
