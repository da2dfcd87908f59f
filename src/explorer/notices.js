// Notes of the page: error responses, waits, `asOf`, remarks.
import { isTransient } from './api.js';
import { clockTime, isDate, minuteOf } from './dates.js';
import { counted, hasSampleRates, isSample, remarkOf, vatOf } from './texts.js';
import { html } from './ui.js';

/** An error response: its sentence, code and request id. */
export const RefusalNote = ({ error }) => html`
  <p class="note bad" role="alert">
    <strong>${error.message}.</strong>
    ${error.code && html` <a href="docs/problems#${error.code}"><code>${error.code}</code></a>`}
    ${error.requestId && html` <span class="quiet">request <code>${error.requestId}</code></span>`}
  </p>
`;

/** Says that the page retries, for an error that may pass. */
export const RetryText = ({ error }) =>
  isTransient(error) && html`<p class="quiet">The page asks again by itself.</p>`;

/** An error response in place of the content, with a button to retry. */
export const Failed = ({ error, again }) => html`
  <div class="panel">
    <${RefusalNote} error=${error} />
    <${RetryText} error=${error} />
    ${
      error.code === 'insufficient_scope'
        ? html`<p>Ask for a key with the scope that is named, and enter it here.</p>`
        : html`<button type="button" onClick=${again}>Try again</button>`
    }
  </div>
`;

/** Says that the page waits before a retry. */
export const WaitNote = ({ wait }) => html`
  <p class="note" role="status">
    ${wait.refusal.message}. <strong>Asking again in ${wait.seconds} s.</strong>${' '}
    <code>${wait.refusal.code}</code>
  </p>
`;

/** Says that the service is unreachable, and the time of the shown numbers. */
export const AwayNote = ({ since, shown, again }) => html`
  <p class="note bad" role="alert">
    <strong>The service cannot be reached since ${clockTime(since)}.</strong>${' '}
    ${shown ? `The page shows data of ${clockTime(shown)}.` : 'There is nothing to show yet.'}${' '}
    It asks again by itself.${' '}
    <button type="button" onClick=${again}>Try again</button>
  </p>
`;

/** Says that the numbers belong to the previous view. */
export const OldNote = () => html`
  <p class="note bad" role="alert">
    <strong>These numbers are of the view before.</strong> The service has not answered for the one
    that is chosen now.
  </p>
`;

const instantText = (asOf) => (isDate(asOf) ? `the end of ${asOf} (UTC)` : minuteOf(asOf));

/** Says that the page shows data as of an earlier time. */
export const PastNote = ({ asOf, back }) => html`
  <p class="note past" role="status">
    <strong>As it was known at ${instantText(asOf)}.</strong> Later publications and corrections are
    not shown. <button type="button" onClick=${back}>Back to now</button>
  </p>
`;

/** Marks of prices whose values are means, by `observes`. */
const MEANS = { 'month-mean': 'monthly mean', 'year-mean': 'yearly mean' };

/** Marks beside a name: a sample price among others, VAT, and values that are means. */
export const Marks = ({ record, among }) =>
  [
    isSample(record) && !among.every(isSample) && 'sample',
    vatOf(record) && `VAT ${vatOf(record)}`,
    MEANS[record.observes],
  ].map((text) => text && html`<span class="mark">${text}</span>`);

/** Remarks on sample prices and sample exchange rates, which are invented. */
function sampleRemarks(records) {
  const remarks = [];
  if (records.some(isSample)) {
    remarks.push({
      title: 'Sample data',
      detail: html`<strong>Sample data.</strong>${' '}
        ${records.every(isSample) ? 'The prices shown here' : 'The prices marked “sample”'} are
        invented for demonstration. They are not market prices.`,
    });
  }
  if (records.some(hasSampleRates)) {
    remarks.push({
      title: 'Sample exchange rates',
      detail: html`<strong>Sample exchange rates.</strong> The rates of <code>SAMPLE</code> are
        invented for demonstration.`,
    });
  }
  return remarks;
}

const warningRemarks = (warnings) =>
  warnings.map((warning) => ({
    title: remarkOf(warning),
    detail: html`${remarkOf(warning)}${' '}
      <a href="docs/problems#warning-${warning.code}"><code>${warning.code}</code></a>`,
  }));

const isOnVat = ({ code }) => code === 'vat_included';

/**
 * Remarks on one line until they are opened. The line has the titles that fit. Those on VAT are
 * first, because they are about the comparison of prices.
 * @param records the shown records
 * @param warnings the warnings of the response
 */
export function Remarks({ records = [], warnings = [] }) {
  const remarks = [
    ...warningRemarks(warnings.filter(isOnVat)),
    ...sampleRemarks(records),
    ...warningRemarks(warnings.filter((each) => !isOnVat(each))),
  ];
  if (remarks.length === 0) return null;
  return html`
    <details class="note remarks">
      <summary>
        <strong>${counted(remarks.length, 'remark')}:</strong>${' '}
        ${remarks.map(({ title }) => title).join(' · ')}
      </summary>
      <ul>
        ${remarks.map(({ detail }) => html`<li>${detail}</li>`)}
      </ul>
    </details>
  `;
}
