// Conversion between a view and the fragment of the address, and the requests of a view.
import { endOf, isDate, isInstant, today } from './dates.js';

/** Maximum number of prices in a chart. */
export const PRICES_MAX = 20;

/** Maximum number of characters of a code. */
const CODE_MAX = 128;

/** Periods of averages. */
export const PERIODS = ['week', 'month', 'quarter', 'year'];

/** Comparisons of prices in a chart. */
export const COMPARISONS = ['spread', 'ratio', 'year'];

/** Spans of the corrections of all prices. */
export const SPANS = ['visit', 'week', 'month', 'since'];

/** The view without any choice. */
export const EMPTY = {
  market: null,
  filters: {},
  prices: [],
  code: null,
  from: null,
  to: null,
  currency: null,
  unit: null,
  average: null,
  rates: null,
  vat: null,
  asOf: null,
  compare: null,
  corrections: null,
  calculate: null,
  index: false,
  log: false,
  bands: true,
};

/** The kind of a view: the record of a price, prices, a calculation, corrections, a market, or all. */
export function kindOf({ code, prices, calculate, corrections, market }) {
  if (code !== null) return 'record';
  if (prices.length > 0) return 'prices';
  if (calculate !== null) return 'calculate';
  if (corrections !== null) return 'corrections';
  return market === null ? 'overview' : 'market';
}

/** Members of a view that a link has as they are, in their order. */
const TEXTS = 'from to currency unit average rates vat asOf compare corrections calculate'.split(
  ' ',
);

/** The link to a view, from `#` on. */
export function linkTo(view) {
  const parts = new URLSearchParams();
  const set = (name, value) => value !== null && value !== false && parts.append(name, value);
  set('code', view.code);
  set('market', view.market);
  for (const { market, code } of view.prices) set('price', `${market}/${code}`);
  for (const [name, values] of Object.entries(view.filters)) {
    for (const each of values) set(name, each);
  }
  for (const name of TEXTS) set(name, view[name]);
  set('index', view.index && '1');
  set('log', view.log && '1');
  if (!view.bands) set('bands', '0');
  return `#${parts}`;
}

const isFlag = (value) => value === '1' || value === '0';

/** Parts that a link has at most once: the check of their value, and the message if it fails. */
const SINGLE = {
  code: [(value) => codeFault(value) === null, 'there is no such code'],
  from: [isDate, 'there is no such day'],
  to: [isDate, 'there is no such day'],
  currency: [(value) => /^[A-Za-z]{3}$/.test(value), 'a currency has three letters, such as EUR'],
  unit: [(value) => value !== '' && value.length <= 128, 'there is no such unit'],
  average: [(value) => PERIODS.includes(value), `an average is of a ${PERIODS.join(', ')}`],
  rates: [(value) => value === 'period-mean', 'rates are period-mean, or not in the link'],
  vat: [(value) => value === 'exclude', 'it is exclude'],
  asOf: [(value) => isDate(value) || isInstant(value), 'there is no such day'],
  compare: [
    (value) => COMPARISONS.includes(value),
    `a comparison is one of ${COMPARISONS.join(', ')}`,
  ],
  calculate: [(value) => value.startsWith('{'), 'it is no calculation as JSON'],
  corrections: [(value) => SPANS.includes(value), `a span is one of ${SPANS.join(', ')}`],
  index: [isFlag, 'it is 1 or 0'],
  log: [isFlag, 'it is 1 or 0'],
  bands: [isFlag, 'it is 1 or 0'],
};

/** The error of a code, or null. One illegal code would make the service reject the request. */
function codeFault(code) {
  if (code.trim() === '') return 'a code is missing';
  if (code.length > CODE_MAX) return `a code has at most ${CODE_MAX} characters`;
  return /\p{Cc}/u.test(code) ? 'a code has no control characters' : null;
}

const FLAGS = ['index', 'log', 'bands'];

/** Parses a price of a link: `<market>/<code>`. */
function priceIn(value, markets) {
  const slash = value.indexOf('/');
  const market = value.slice(0, slash);
  return slash > 0 && markets.some(({ slug }) => slug === market)
    ? { market, code: value.slice(slash + 1) }
    : null;
}

/** True if a list contains a price. The service ignores the case of codes. */
export const hasPrice = (prices, { market, code }) =>
  prices.some((each) => each.market === market && each.code.toLowerCase() === code.toLowerCase());

function takePrice(view, value, markets) {
  const price = priceIn(value, markets);
  if (price === null) return 'there is no such market';
  const fault = codeFault(price.code);
  if (fault !== null) return fault;
  if (hasPrice(view.prices, price)) return null;
  if (view.prices.length >= PRICES_MAX) return `at most ${PRICES_MAX} prices are shown together`;
  view.prices.push(price);
  return null;
}

function takeSingle(view, name, value) {
  const [holds, fault] = SINGLE[name];
  if (!holds(value)) return fault;
  view[name] = FLAGS.includes(name) ? value === '1' : value;
  return null;
}

function takePart(view, name, value, markets) {
  if (name === 'price') return takePrice(view, value, markets);
  if (Object.hasOwn(SINGLE, name)) return takeSingle(view, name, value);
  const filters = markets.find(({ slug }) => slug === view.market)?.filters ?? [];
  if (!filters.includes(name) || name === 'codes') return 'no view has such a part';
  view.filters[name] = [...(view.filters[name] ?? []), value];
  return null;
}

/** Drops contradictory parts: an end before its beginning, an `asOf` in the future. */
function takeContradictions(view, ignored) {
  if (view.from !== null && view.to !== null && view.from > view.to) {
    ignored.push({ part: `to=${view.to}`, why: `it lies before from=${view.from}` });
    view.to = null;
  }
  if (view.asOf !== null && view.asOf.slice(0, 10) > today()) {
    ignored.push({ part: `asOf=${view.asOf}`, why: 'that day has not come' });
    view.asOf = null;
  }
  // The end of today is in the future. Today is the current data.
  if (view.asOf === today()) view.asOf = null;
}

/** Drops unreadable prices if others are readable, because their 403 would hide those. */
function takeClosed(view, markets, ignored) {
  const closed = new Map(
    markets.filter((each) => each.authorized === false).map(({ slug, scope }) => [slug, scope]),
  );
  const open = view.prices.filter(({ market }) => !closed.has(market));
  if (open.length === 0) return;
  for (const { market, code } of view.prices) {
    if (!closed.has(market)) continue;
    ignored.push({
      part: `price=${market}/${code}`,
      why: `this key lacks the scope ${closed.get(market)}`,
    });
  }
  view.prices = open;
}

/**
 * The view of a link, and the parts of the link that were ignored, each with the reason.
 * @param hash from `#` on, or empty
 * @param markets the markets of the service: `slug`, `filters`, `scope`, `authorized`
 */
export function viewOf(hash, markets) {
  const view = { ...EMPTY, filters: {}, prices: [] };
  const ignored = [];
  const parts = [...new URLSearchParams(hash.replace(/^#/, ''))];
  const market = parts.find(([name]) => name === 'market')?.[1] ?? null;
  if (market !== null) {
    if (markets.some(({ slug }) => slug === market)) view.market = market;
    else ignored.push({ part: `market=${market}`, why: 'there is no such market' });
  }
  for (const [name, value] of parts.filter(([each]) => each !== 'market')) {
    const why = takePart(view, name, value, markets);
    if (why !== null) ignored.push({ part: `${name}=${value}`, why });
  }
  takeClosed(view, markets, ignored);
  takeContradictions(view, ignored);
  if (view.currency !== null) view.currency = view.currency.toUpperCase();
  return { view, ignored };
}

// Addresses of requests. The chart and the file downloads use the same request.

const query = (parameters) =>
  parameters
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&');

/** An address of the service with parameters, given as pairs. */
export const addressOf = (path, parameters) => {
  const text = query(parameters);
  return text === '' ? path : `${path}?${text}`;
};

/** The options of a view that change numbers. */
const optionsOf = ({ currency, unit, average, rates, vat, asOf }) => [
  ['currency', currency],
  ['unitOfMeasure', unit],
  ['aggregate', average && `${average}:average`],
  ['rates', rates],
  ['vat', vat],
  ['asOf', asOf && endOf(asOf)],
];

/** The prices of a view by market, in the order of choice. */
function byMarket(prices) {
  const markets = new Map();
  for (const { market, code } of prices) {
    markets.set(market, [...(markets.get(market) ?? []), code]);
  }
  return [...markets].map(([market, codes]) => ({ market, codes }));
}

/** The requests of the chosen prices of a view, one for each market. */
export const seriesRequests = (view) =>
  byMarket(view.prices).map(({ market, codes }) => ({
    market,
    codes,
    address: addressOf(`v3/prices/${encodeURIComponent(market)}`, [
      ...codes.map((code) => ['codes', code]),
      ['dateFrom', view.from],
      ['dateTo', view.to],
      ['includeSeries', 'true'],
      ...optionsOf(view),
    ]),
  }));

/** The request of the list of a market, filtered. */
export const listRequest = ({ market, filters, currency, unit, rates, vat, asOf }, limit, cursor) =>
  addressOf(`v3/prices/${encodeURIComponent(market)}`, [
    ...Object.entries(filters).flatMap(([name, values]) => values.map((each) => [name, each])),
    ['includeSummary', 'true'],
    ...optionsOf({ currency, unit, rates, vat, asOf }),
    ['limit', limit],
    ['cursor', cursor],
  ]);
