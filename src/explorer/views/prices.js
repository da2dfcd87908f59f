// The chosen prices: chart, receipts, table and downloads.

import { askText, exact } from '../api.js';
import { minuteOf } from '../dates.js';
import { seriesRequests } from '../link.js';
import { Loaded } from '../loaded.js';
import {
  Failed,
  joinedWarnings,
  OldNote,
  SampleNote,
  SampleRatesNote,
  Warnings,
} from '../notices.js';
import { counted } from '../texts.js';
import { html, Later } from '../ui.js';
import { ChartView } from './chart-view.js';
import { Controls } from './controls.js';
import { Receipt, Table } from './table.js';

const takeAway = async () => (await import('./take-away.js')).TakeAway;

const isOne = (code) => (record) => record.code.toLowerCase() === code.toLowerCase();

/** A response whose exact numbers are parsed lazily, because the chart does not need them. */
function answerOf(request, text) {
  const { $metadata, data } = JSON.parse(text);
  let read = null;
  const exactly = () => {
    read ??= exact(text).data;
    return read;
  };
  return { ...request, $metadata, records: data, exactly };
}

/** A price for the chart, with its exact points by date. */
function entryOf(answer, record) {
  let points = null;
  const series = () => answer.exactly().find(isOne(record.code)).series;
  return {
    market: answer.market,
    record,
    exactly: () => answer.exactly().find(isOne(record.code)),
    pointOf: (date) => {
      points ??= new Map(series().map((point) => [point.date, point]));
      return points.get(date);
    },
    newest: () => series().at(-1),
  };
}

/** The responses of a view, with the prices in the order of choice. */
export async function seriesOf(view, signal) {
  const requests = seriesRequests(view);
  const texts = await Promise.all(requests.map(({ address }) => askText(address, signal)));
  const answers = requests.map((request, index) => answerOf(request, texts[index]));
  const entries = view.prices.flatMap(({ market, code }) => {
    const answer = answers.find((each) => each.market === market);
    const record = answer.records.find(isOne(code));
    return record ? [entryOf(answer, record)] : [];
  });
  return { answers, entries };
}

/** Reports unknown codes as ignored parts of the link. */
function ignoreUnknown(answers, ignore) {
  for (const { market, codes, $metadata } of answers) {
    for (const { code, pointer, detail } of $metadata.warnings) {
      const [, index] = /^\?codes\/(\d+)$/.exec(pointer) ?? [];
      if (index === undefined || code !== 'unmatched_value') continue;
      ignore(`price=${market}/${codes[index]}`, detail);
    }
  }
}

/** Warnings with a note of their own. */
const SAID = ['unmatched_value', 'sample_rates'];

const newestOf = (entries) =>
  entries.reduce((newest, { record }) => {
    const { lastAssessedAt } = record;
    return newest === null || lastAssessedAt > newest ? lastAssessedAt : newest;
  }, null);

const titleOf = (entries) =>
  entries.length === 1 ? entries[0].record.name : counted(entries.length, 'price');

export class Prices extends Loaded {
  keyOf({ view }) {
    return JSON.stringify(seriesRequests(view));
  }

  async load({ view, app }, signal) {
    const data = await seriesOf(view, signal);
    ignoreUnknown(data.answers, app.ignore);
    return { ...data, view };
  }

  /**
   * Parses exact records after the first paint, because parsing delays the chart. The second
   * animation frame starts after the first one is painted.
   */
  componentDidUpdate(before, state) {
    super.componentDidUpdate(before, state);
    const { data } = this.state;
    if (data && data !== this.reading) {
      this.reading = data;
      const read = () => setTimeout(() => this.readExactly(data));
      requestAnimationFrame(() => requestAnimationFrame(read));
    }
  }

  readExactly(data) {
    if (data !== this.state.data) return;
    this.setState({ exact: { data, records: data.entries.map(({ exactly }) => exactly()) } });
  }

  /** The view of the loaded data, with the chosen scale. */
  viewOfData() {
    const { view } = this.props;
    const { index, log, bands } = view;
    return this.isOld() ? { ...this.state.data.view, index, log, bands } : view;
  }

  render({ app, view: chosen }, { data, at, error, isLoading, exact: read }) {
    if (error) return html`<${Failed} error=${error} again=${this.reload} />`;
    if (data === null) return html`<p class="panel quiet" role="status">Asking for prices…</p>`;
    const { entries, answers } = data;
    const isOld = this.isOld();
    const view = this.viewOfData();
    const records = read?.data === data ? read.records : null;
    const warnings = joinedWarnings(answers).filter(({ code }) => !SAID.includes(code));
    const isEmpty = entries.length === 0;
    const isConverted = view.currency !== null || view.unit !== null;
    return html`
      ${isOld && !isLoading && html`<${OldNote} />`}
      <div class=${isLoading || isOld ? 'stale' : ''} aria-busy=${isLoading || isOld ? 'true' : 'false'}>
        <section class="panel">
          <h1><bdi>${isEmpty ? 'No prices' : titleOf(entries)}</bdi></h1>
          <${Controls} app=${app} view=${chosen} newest=${newestOf(entries)} />
          <${Warnings} warnings=${warnings} />
          <${SampleNote} records=${entries.map(({ record }) => record)} />
          <${SampleRatesNote} records=${entries.map(({ record }) => record)} />
          ${
            isEmpty
              ? html`<p class="empty">None of the chosen prices ${view.asOf ? 'was known at that time' : 'is here'}.</p>`
              : html`<${ChartView} app=${app} view=${view} entries=${entries} isRead=${records !== null} onDrawn=${(
                  chart,
                ) => {
                  this.chart = chart;
                }} />`
          }
          <p class="quiet small">
            ${answers.map(
              ({ market, $metadata }) =>
                html`<span>${market}: revision <code>${$metadata.revision}</code> of ${minuteOf($metadata.asOf)}. </span>`,
            )}
            Asked at ${at.toTimeString().slice(0, 8)}.
          </p>
        </section>
        ${isConverted && records?.[0]?.conversion && html`<${Receipt} records=${records} />`}
        ${!isEmpty && html`<${Later} load=${takeAway} app=${app} view=${view} answers=${answers} entries=${entries} chart=${() => this.chart} />`}
        ${
          !isEmpty &&
          html`<section class="panel flush">
            <h2>Points</h2>
            ${records ? html`<${Table} records=${records} />` : html`<p class="quiet">Reading every digit…</p>`}
          </section>`
        }
      </div>
    `;
  }
}
