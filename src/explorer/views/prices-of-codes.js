// Names of prices by their codes, and which of them are samples.
import { askJson } from '../api.js';
import { today } from '../dates.js';
import { addressOf } from '../link.js';
import { Loaded } from '../loaded.js';
import { html } from '../ui.js';

/** Most codes of the request, which is an address. */
const CODES_MAX = 100;

/** The prices with some codes, by their codes, as the calendar of today names them. */
export async function pricesOf(codes, signal) {
  const distinct = [...new Set(codes)].slice(0, CODES_MAX);
  if (distinct.length === 0) return new Map();
  const address = addressOf('v3/calendar', [
    ...distinct.map((code) => ['codes', code]),
    ['from', today()],
    ['to', today()],
  ]);
  const { data } = await askJson(address, signal);
  return new Map(data.map((price) => [price.code, price]));
}

/** Says that a result is computed from sample prices. @param props `app`, and `codes` of the inputs */
export class SampleNote extends Loaded {
  keyOf({ codes }) {
    return codes.join(' ');
  }

  load({ codes }, signal) {
    return pricesOf(codes, signal);
  }

  render(_props, { data }) {
    const samples = [...(data?.values() ?? [])].filter(({ sample }) => sample);
    return (
      samples.length > 0 &&
      html`<p class="note">
        <strong>Sample data:</strong> ${samples.map(({ code }) => code).join(', ')}. The prices are
        invented for demonstration, and so is the result.
      </p>`
    );
  }
}
