// Names and markets of prices.
import { askJson } from '../api.js';
import { today } from '../dates.js';
import { addressOf } from '../link.js';

/** Most codes of the request, which is an address. */
const CODES_MAX = 100;

/** The prices with some codes, as the calendar of today names them. */
export async function pricesOf(codes, signal) {
  const distinct = [...new Set(codes)].slice(0, CODES_MAX);
  if (distinct.length === 0) return [];
  const address = addressOf('v3/calendar', [
    ...distinct.map((code) => ['codes', code]),
    ['from', today()],
    ['to', today()],
  ]);
  return (await askJson(address, signal)).data;
}
