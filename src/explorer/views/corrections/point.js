// The values of a point before or after a change.
import { NOTHING } from '../../texts.js';
import { figure, html } from '../../ui.js';

/** A point before or after a change. */
export const pointText = (value) => {
  if (value === null) return html`<span class="quiet">withdrawn</span>`;
  const { low, mid, high } = value;
  return low === null
    ? figure(mid ?? NOTHING)
    : html`${figure(mid ?? NOTHING)} (${figure(low)} to ${figure(high)})`;
};
