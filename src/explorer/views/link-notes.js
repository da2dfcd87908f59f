// Notes on a link: its ignored parts, and its key. Few links need them, so they are loaded later.
import { html } from '../ui.js';

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
