// Notes of the page: error responses, waits, ignored parts of a link, `asOf`.
import { isTransient } from './api.js';
import { clockTime, isDate, minuteOf } from './dates.js';
import { hasSampleRates, isSample } from './texts.js';
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

/**
 * Asks before the key of a link replaces the key in use.
 * @param offer the public parts of both: `link` and `current`
 */
export const KeyQuestion = ({ offer, keep, take }) => html`
  <div class="note" role="alert">
    <p>
      <strong>The link has another API key, <code>${offer.link}</code>.</strong> The page uses${' '}
      <code>${offer.current}</code>.
    </p>
    <div class="row">
      <button type="button" class="main" onClick=${keep}>Keep my key</button>
      <button type="button" onClick=${take}>Use the key of the link</button>
    </div>
  </div>
`;

/** Says that the numbers belong to the previous view. */
export const OldNote = () => html`
  <p class="note bad" role="alert">
    <strong>These numbers are of the view before.</strong> The service has not answered for the one
    that is chosen now.
  </p>
`;

/** Maximum number of ignored parts that are listed. */
const NAMED_MAX = 20;

/** The ignored parts of a link. */
export const IgnoredNote = ({ ignored, close }) => html`
  <div class="note" role="status">
    <p>
      <strong>${ignored.length === 1 ? 'A part' : 'Parts'} of the link${' '}
      ${ignored.length === 1 ? 'was' : 'were'} ignored.</strong> The rest is shown.
    </p>
    <ul>
      ${ignored.slice(0, NAMED_MAX).map(({ part, why }) => html`<li><bdi><code>${part}</code></bdi>: ${why}</li>`)}
      ${ignored.length > NAMED_MAX && html`<li>and ${ignored.length - NAMED_MAX} more</li>`}
    </ul>
    <button type="button" onClick=${close}>Close</button>
  </div>
`;

const instantText = (asOf) => (isDate(asOf) ? `the end of ${asOf} (UTC)` : minuteOf(asOf));

/** Says that the page shows data as of an earlier time. */
export const PastNote = ({ asOf, back }) => html`
  <p class="note past" role="status">
    <strong>As it was known at ${instantText(asOf)}.</strong> Later publications and corrections are
    not shown. <button type="button" onClick=${back}>Back to now</button>
  </p>
`;

/** Says which of the shown prices are samples: all of them, or those with a `SampleMark`. */
export const SampleNote = ({ records }) =>
  records.some(isSample) &&
  html`
    <p class="note sample">
      <strong>Sample data.</strong>${' '}
      ${records.every(isSample) ? 'The prices shown here' : 'The prices marked “sample”'} are
      invented for demonstration. They are not market prices.
    </p>
  `;

/** Marks a sample price among others. */
export const SampleMark = ({ record, among }) =>
  isSample(record) && !among.every(isSample) && html`<span class="mark">sample</span>`;

/** Says that prices were converted by sample exchange rates. */
export const SampleRatesNote = ({ records }) =>
  records.some(hasSampleRates) &&
  html`
    <p class="note sample">
      <strong>Sample exchange rates.</strong> The rates of <code>SAMPLE</code> are invented for
      demonstration.
    </p>
  `;

/** One remark about a currency that lacks rates in several markets. */
function joinedRates(all) {
  const [{ currency, lastDateWithRate }] = all;
  const sum = (name) => all.reduce((total, each) => total + each[name], 0);
  const days = all.flatMap((each) => [each.firstDateWithoutRate, each.lastDateWithoutRate]);
  const [from, to] = [days.filter(Boolean).sort()[0], days.filter(Boolean).sort().at(-1)];
  const span = from ? `, from ${from} to ${to}` : '';
  const parts = all.map(
    (each) => `${each.market} ${each.pointsWithoutRate} of ${each.pointsRequested}`,
  );
  const newest = lastDateWithRate
    ? `the newest one is of ${lastDateWithRate}`
    : 'there is none at all';
  const counts = `${sum('pointsWithoutRate')} of ${sum('pointsRequested')} points`;
  return `No rate of ${currency} for ${counts}${span} (${parts.join(', ')}); ${newest}`;
}

/** The warnings of several markets: equal ones once, and one for each currency that lacks rates. */
export function joinedWarnings(answers) {
  const groups = new Map();
  for (const { market, $metadata } of answers) {
    for (const warning of $metadata.warnings) {
      const { code, currency, detail, lastDateWithRate } = warning;
      const isRates = code === 'rates_missing';
      const key = isRates ? `${code} ${currency} ${lastDateWithRate}` : `${code} ${detail}`;
      groups.set(key, [...(groups.get(key) ?? []), { market, ...warning }]);
    }
  }
  return [...groups.values()].map((all) =>
    all.length > 1 && all[0].code === 'rates_missing'
      ? { ...all[0], detail: joinedRates(all) }
      : all[0],
  );
}

/** The warnings of a response. */
export const Warnings = ({ warnings }) =>
  warnings.length > 0 &&
  html`
    <details class="note" open=${warnings.length <= 3}>
      <summary>
        ${warnings.length === 1 ? 'One remark' : `${warnings.length} remarks`} of the service
      </summary>
      <ul>
        ${warnings.map(
          ({ code, detail }) => html`
            <li>
              ${detail}${' '}
              <a href="docs/problems#warning-${code}"><code>${code}</code></a>
            </li>
          `,
        )}
      </ul>
    </details>
  `;
