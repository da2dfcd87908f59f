import { COMPUTING, type OptionName } from '../../../src/contract/schemas/options.ts';
import type { SpecifiedMarket } from '../prices/specification.ts';

type Members = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** A real day of the Gregorian calendar, YYYY-MM-DD, from 1800 to 2199. */
function isDay(value: unknown): value is string {
  const match = typeof value === 'string' && /^([0-9]{4})-([0-9]{2})-([0-9]{2})$/.exec(value);
  if (!match) return false;
  const [year = 0, month = 0, day = 0] = match.slice(1).map(Number);
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const last = month === 2 && leap ? 29 : (DAYS[month - 1] ?? 0);
  return year >= 1800 && year <= 2199 && day >= 1 && day <= last;
}

/** 1 to 128 characters, none of them a control character or half of a surrogate pair. */
const isItem = (value: unknown): boolean =>
  typeof value === 'string' && /^[^\p{Cc}\p{Cs}]{1,128}$/u.test(value);

const isList = (value: unknown, most: number): value is readonly unknown[] =>
  Array.isArray(value) && value.length <= most && value.every(isItem);

function filtersAreLegal(market: SpecifiedMarket, filters: Members): boolean {
  const { dateFrom, dateTo, codes, ...lists } = filters;
  if (Object.hasOwn(filters, 'dateFrom') && !isDay(dateFrom)) return false;
  if (Object.hasOwn(filters, 'dateTo') && !isDay(dateTo)) return false;
  if (isDay(dateFrom) && isDay(dateTo) && dateFrom > dateTo) return false;
  const names = Object.keys(lists);
  if (!names.every((name) => market.filters.includes(name) && isList(lists[name], 200))) {
    return false;
  }
  if (!Object.hasOwn(filters, 'codes')) return true;
  if (!isList(codes, 500) || codes.length === 0) return false;
  return names.every((name) => (lists[name] as readonly unknown[]).length === 0);
}

const isOneOf =
  (...words: readonly string[]) =>
  (value: unknown): boolean =>
    typeof value === 'string' && words.includes(value);

const isText = (most: number) => (value: unknown) =>
  isItem(value) && [...(value as string)].length <= most;

const INSTANT = /^(\d{4}-\d\d-\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** RFC 3339, of a real day, and past. */
function isPast(value: unknown): boolean {
  const parts = typeof value === 'string' && INSTANT.exec(value);
  if (!parts) return false;
  const [text, day = '', hours, minutes, seconds] = parts;
  const inRange = Number(hours) < 24 && Number(minutes) < 60 && Number(seconds) < 60;
  return isDay(day) && inRange && Date.parse(text) <= Date.now();
}

const isAggregate = (value: unknown): boolean =>
  isObject(value) &&
  Object.keys(value).length === 2 &&
  isOneOf('week', 'month', 'quarter', 'year')(value['period']) &&
  isOneOf('average', 'first', 'last', 'min', 'max')(value['method']);

const isFlag = (value: unknown): boolean => typeof value === 'boolean';

const isIn = (least: number, most: number) => (value: unknown) =>
  Number.isInteger(value) && Number(value) >= least && Number(value) <= most;

/** The validation rule of each option of a JSON answer. */
const OPTIONS: Readonly<Record<OptionName, (value: unknown) => boolean>> = {
  includeSeries: isFlag,
  includeSummary: isFlag,
  strict: isFlag,
  currency: isText(64),
  unitOfMeasure: isText(128),
  onUnconvertible: isOneOf('keep', 'omit', 'error'),
  decimals: isIn(0, 10),
  aggregate: isAggregate,
  asOf: isPast,
  revision: (value) => typeof value === 'string' && /^[0-9a-z]{4,18}\.[0-9]{1,18}$/.test(value),
  limit: isIn(1, 10_000),
  // No random text is a cursor.
  cursor: () => false,
  lastObservations: isIn(1, 146_100),
  decimalsAsText: isFlag,
  columns: () => false,
  layout: isOneOf('long'),
  warnings: isOneOf('header'),
  movingAverage: isIn(1, 250),
  rates: isOneOf('day', 'period-mean'),
  csvDialect: isOneOf('comma'),
  vat: isOneOf('as-published', 'exclude'),
};

const optionsAreLegal = (options: Members): boolean =>
  Object.entries(options).every(
    ([name, value]) => Object.hasOwn(OPTIONS, name) && OPTIONS[name as OptionName](value),
  ) &&
  (!Object.hasOwn(options, 'lastObservations') || options['includeSeries'] === true) &&
  (!Object.hasOwn(options, 'movingAverage') ||
    (options['includeSeries'] === true && !Object.hasOwn(options, 'aggregate'))) &&
  !(Object.hasOwn(options, 'asOf') && Object.hasOwn(options, 'revision')) &&
  (!Object.hasOwn(options, 'decimals') || COMPUTING.some((name) => Object.hasOwn(options, name)));

/**
 * True if a body keeps the rules of the contract, section Request: written from its text, with only
 * the names of the options from the service. It ignores rules that depend on the data: `strict`,
 * `onUnconvertible`, and which currencies, units and revisions there are.
 */
export function isLegalBody(market: SpecifiedMarket, body: unknown): boolean {
  if (!isObject(body)) return false;
  if (!Object.keys(body).every((name) => name === 'filters' || name === 'options')) return false;
  const { filters = {}, options = {} } = body;
  return (
    isObject(filters) &&
    isObject(options) &&
    filtersAreLegal(market, filters) &&
    optionsAreLegal(options)
  );
}
