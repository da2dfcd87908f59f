// Notes of the page: refusals, waits, ignored parts of a link, moments of the past.
import { clockTime, isDate, minuteOf } from './dates.js';
import { html } from './ui.js';

/** A refusal of the service: its sentence, with the code and the request id. */
export const RefusalNote = ({ error }) => html`
  <p class="note bad" role="alert">
    <strong>${error.message}.</strong>
    ${error.code && html` <a href="docs/problems#${error.code}"><code>${error.code}</code></a>`}
    ${error.requestId && html` <span class="quiet">request <code>${error.requestId}</code></span>`}
  </p>
`;

/** A refusal in place of what was asked for, with a way to ask again. */
export const Failed = ({ error, app }) => html`
  <div class="panel">
    <${RefusalNote} error=${error} />
    ${
      error.code === 'insufficient_scope'
        ? html`<p>Ask for a key with the scope that is named, and enter it here.</p>`
        : html`<button type="button" onClick=${() => app.again()}>Try again</button>`
    }
  </div>
`;

/** Says that the page waits as the service asked it to. */
export const WaitNote = ({ wait }) => html`
  <p class="note" role="status">
    ${wait.refusal.message}. <strong>Asking again in ${wait.seconds} s.</strong>${' '}
    <code>${wait.refusal.code}</code>
  </p>
`;

/** Says that the service is away, and of when the numbers on the screen are. */
export const AwayNote = ({ since, shown, again }) => html`
  <p class="note bad" role="alert">
    <strong>The service cannot be reached since ${clockTime(since)}.</strong>${' '}
    ${shown ? `What you see is of ${clockTime(shown)}.` : 'There is nothing to show yet.'}${' '}
    <button type="button" onClick=${again}>Try again</button>
  </p>
`;

/** Says that numbers are those of another view than the page is set to. */
export const OldNote = () => html`
  <p class="note bad" role="alert">
    <strong>These numbers are of the view before.</strong> The service has not answered for the one
    that is chosen now.
  </p>
`;

/** Ignored parts that are named one by one. */
const NAMED_MAX = 20;

/** The parts of a link that the page could not follow. */
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

const momentText = (asOf) => (isDate(asOf) ? `the end of ${asOf} (UTC)` : minuteOf(asOf));

/** Says that the page replays the past. */
export const PastNote = ({ asOf, back }) => html`
  <p class="note past" role="status">
    <strong>As it was known at ${momentText(asOf)}.</strong> Later publications and corrections are
    not shown. <button type="button" onClick=${back}>Back to now</button>
  </p>
`;

/** The warnings of an answer. */
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
