// The chosen prices: chart, receipts, table and downloads.

import { seriesOf } from '../answers.js';
import { clockTime, minuteOf } from '../dates.js';
import { seriesRequests } from '../link.js';
import { Loaded } from '../loaded.js';
import { Failed, OldNote, Remarks } from '../notices.js';
import { counted } from '../texts.js';
import { Fitted, Fold, html, Later } from '../ui.js';
import { ChartView } from './chart-view.js';
import { Controls, settingsText } from './controls.js';
import { Table } from './table.js';

const receipt = async () => (await import('./receipt.js')).Receipt;
const nothing = async () => (await import('./nothing.js')).Nothing;
const takeAway = async () => (await import('./take-away.js')).TakeAway;

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

/** The warnings of the responses. Equal ones of several markets are joined. */
async function warningsOf(answers) {
  if (answers.length === 1) return answers[0].$metadata.warnings;
  return (await import('../warnings.js')).joinedWarnings(answers);
}

/** Warnings that the page shows in other places. */
const SHOWN_APART = ['unmatched_value', 'sample_rates'];

const newestOf = (entries) =>
  entries.reduce((newest, { record }) => {
    const { lastAssessedAt } = record;
    return newest === null || lastAssessedAt > newest ? lastAssessedAt : newest;
  }, null);

const headingOf = (entries) =>
  entries.length === 1 ? entries[0].record.name : counted(entries.length, 'price');

/** The controls and remarks: above the chart, on a phone below it with folded controls. */
class Settings extends Fitted {
  render({ isAbove, settings, remarks }, { isPhone }) {
    if (isPhone === isAbove) return null;
    const controls = html`<${Controls} ...${settings} />`;
    return html`
      ${
        isPhone
          ? html`<${Fold} title="Range, currency, unit" inUse=${settingsText(settings.view)}>${controls}</${Fold}>`
          : controls
      }
      <${Remarks} ...${remarks} />
    `;
  }
}

export class Prices extends Loaded {
  /** Keeps the drawing function of the chart for a picture. */
  onDrawn = (picture) => {
    this.picture = picture;
  };

  keyOf({ view }) {
    return JSON.stringify([seriesRequests(view), view.compare]);
  }

  async load({ view, app }, signal) {
    const data = await seriesOf(view, signal);
    ignoreUnknown(data.answers, app.ignore);
    return { ...data, warnings: await warningsOf(data.answers), view };
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
    const { entries, answers, comparing } = data;
    const isOld = this.isOld();
    const view = this.viewOfData();
    const records = read?.data === data ? read.records : null;
    const isEmpty = entries.length === 0;
    // Without any price, the text in place of the chart says since when there is one.
    const apart = isEmpty ? [...SHOWN_APART, 'not_yet_existing'] : SHOWN_APART;
    const warnings = data.warnings.filter(({ code }) => !apart.includes(code));
    const hasPoints = entries.some(({ record }) => record.series.length > 0);
    const hasMeans = entries.some(({ record }) => record.observes !== 'day');
    const hasVat = entries.some(({ record }) => record.vatCountry !== null);
    const settings = { app, view: chosen, newest: newestOf(entries), hasMeans, hasVat };
    const remarks = { records: entries.map(({ record }) => record), warnings };
    const isConverted = view.currency !== null || view.unit !== null;
    return html`
      ${isOld && !isLoading && html`<${OldNote} />`}
      <div class=${isLoading || isOld ? 'stale' : ''} aria-busy=${isLoading || isOld ? 'true' : 'false'}>
        <section class="panel">
          <h1><bdi>${isEmpty ? 'No prices' : headingOf(entries)}</bdi></h1>
          <${Settings} isAbove=${true} settings=${settings} remarks=${remarks} />
          ${
            hasPoints
              ? html`<${ChartView} app=${app} view=${view} entries=${entries} comparing=${comparing} isRead=${records !== null} onDrawn=${this.onDrawn} />`
              : html`<${Later} load=${nothing} app=${app} view=${view} entries=${entries} warnings=${data.warnings} />`
          }
          <${Settings} isAbove=${false} settings=${settings} remarks=${remarks} />
          ${
            !isEmpty &&
            html`<p class="quiet small">
              ${answers.map(
                ({ market, $metadata }) =>
                  html`<span>${market}: revision <code>${$metadata.revision}</code> of ${minuteOf($metadata.asOf)}. </span>`,
              )}
              Asked at ${clockTime(at)}.
            </p>`
          }
        </section>
        ${isConverted && records?.[0]?.conversion && html`<${Later} load=${receipt} app=${app} records=${records} />`}
        ${hasPoints && html`<${Later} load=${takeAway} app=${app} view=${view} answers=${answers} entries=${entries} comparing=${comparing} warnings=${warnings} picture=${(isDark) => this.picture(isDark)} />`}
        ${
          hasPoints &&
          html`<section class="panel flush">
            <h2>Points</h2>
            ${records ? html`<${Table} records=${records} />` : html`<p class="quiet">Reading every digit…</p>`}
          </section>`
        }
      </div>
    `;
  }
}
