import { isDeepStrictEqual } from 'node:util';
import type { FilterName } from '../../catalog/dimensions.ts';
import type { Market, MarketSlug } from '../../catalog/markets.ts';
import { matchKey } from '../../catalog/match-key.ts';
import { nearest } from '../../catalog/nearest.ts';
import { type BodyCheck, isMembers } from '../../contract/request/validate.ts';
import { csvColumns, FORMATS, type Format, formatsOf } from '../../contract/schemas/formats.ts';
import { filtersOf } from '../../contract/schemas/market.ts';
import type { RequestPart } from '../../contract/schemas/problem.ts';
import { brokenRules, eitherOf, quoted, startAgain, type Violation } from '../../errors.ts';
import { boundText, type Days, dayOf } from '../../std/days.ts';
import { type PagePosition, pagePositionIn } from './cursor.ts';
import { brokenOptions, optionsOf, type PlanOptions, usedOptions } from './options.ts';

/*
 * A plan is a validated request for prices: market, days, filters, options, page and format.
 * Everything after it depends on the plan only, not on HTTP.
 */

/** One filter list: the values as sent, and their match keys. */
export interface ListFilter {
  readonly name: FilterName;
  readonly values: readonly string[];
  readonly keys: readonly string[];
}

/** The page of a request. */
interface Page {
  /** Maximum number of records; null for no limit. */
  readonly limit: number | null;
  /** The end of the previous page; null for the first page. */
  readonly after: PagePosition | null;
}

/** The part of a request with its filters, and the markets that its principal may read. */
export interface RequestOrigin {
  readonly by: RequestPart;
  readonly readableMarkets: () => readonly MarketSlug[];
}

/** The parts of a request that its body does not contain. */
interface PlanInput extends RequestOrigin {
  readonly format: Format;
}

/** A validated request. Only checks against the data can still reject it. */
export interface Plan {
  readonly market: Market;
  readonly format: Format;
  /** The requested days of the series. */
  readonly days: Days;
  /** Codes as sent; null if the request does not select by code. */
  readonly codes: ListFilter['values'] | null;
  readonly lists: readonly ListFilter[];
  readonly options: PlanOptions;
  readonly page: Page;
  /** The part of the request that the pointers of warnings refer to. */
  readonly by: RequestPart;
  /** The markets that warnings about codes may name; empty without requested codes. */
  readonly readableMarkets: readonly MarketSlug[];
}

type BodyMembers = Readonly<Record<string, unknown>>;

const FIRST_DAY = '1800-01-01';
const LAST_DAY = '2199-12-31';

/**
 * The plan of a request body.
 * @param found violations found earlier, such as those of the query
 * @throws Problem `validation_failed` with every violation of the schema and of the rules; without
 *   any, `invalid_cursor` for a cursor of another request; `validation_failed` for options of other
 *   formats
 */
export function planOf(
  market: Market,
  check: BodyCheck,
  body: unknown,
  { by, readableMarkets, format }: PlanInput = NO_PRINCIPAL,
  found: readonly Violation[] = [],
): Plan {
  const filters = membersOf(body, 'filters');
  const options = membersOf(body, 'options');
  const errors = [...found, ...check(body)];
  const brokenPointers = new Set(errors.map((each) => each.pointer));
  errors.push(...brokenFilters(market, filters, brokenPointers));
  errors.push(...brokenOptions(options, brokenPointers));
  errors.push(...brokenColumns(market, options, brokenPointers));
  if (errors.length > 0) throw brokenRules(errors);
  const codes = filters['codes'] as string[] | undefined;
  const lists = filtersOf(market).flatMap((name) => {
    const values = filters[name] as string[] | undefined;
    return values && values.length > 0 ? [listFilter(name, values)] : [];
  });
  const plan = {
    market,
    format,
    days: {
      first: boundOf(textOf(filters['dateFrom']), -Infinity),
      last: boundOf(textOf(filters['dateTo']), Infinity),
    },
    codes: codes ?? null,
    lists,
    options: optionsOf(options),
    page: { limit: (options['limit'] as number | undefined) ?? null, after: null },
    by,
    readableMarkets: codes ? readableMarkets() : [],
  };
  const cursor = options['cursor'] as string | undefined;
  const whole = cursor === undefined ? plan : planAfterCursor(plan, cursor);
  checkFormat(whole);
  return Object.freeze(whole);
}

const membersOf = (body: unknown, name: string): BodyMembers => {
  const value = isMembers(body) ? body[name] : undefined;
  return isMembers(value) ? value : {};
};

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** Maximum number of columns that a violation names. */
const NAMED_MAX = 5;

/** The violations of `columns`: unknown or repeated names, or a layout without columns. */
function brokenColumns(
  market: Market,
  options: BodyMembers,
  brokenPointers: ReadonlySet<string>,
): Violation[] {
  const { columns, layout } = options;
  const pointer = '/options/columns';
  if (typeof columns !== 'string' || brokenPointers.has(pointer)) return [];
  if (layout === 'wide') {
    const detail = 'A wide table has a column for each code; omit columns, or layout';
    return [{ pointer, code: 'unknown_field', detail }];
  }
  if (columns === 'all' || columns === 'short') return [];
  const names = columns.split(',');
  const known = csvColumns(market);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    const [first = ''] = unknown;
    const [near] = nearest(first, known, 1);
    const hint = near ? `did you mean ${near}?` : 'the row of names of columns=all lists them';
    const named = unknown.slice(0, NAMED_MAX).map(quoted).join(', ');
    const detail = `There is no column ${named}; ${hint}`;
    return [{ pointer, code: 'out_of_range', detail }];
  }
  const twice = names.find((name, place) => names.indexOf(name) < place);
  if (twice === undefined) return [];
  return [{ pointer, code: 'too_many_items', detail: `Name ${twice} once` }];
}

/** Checks the rules that a schema cannot express. Days are checked if they passed the schema. */
function brokenFilters(
  market: Market,
  filters: BodyMembers,
  brokenPointers: ReadonlySet<string>,
): Violation[] {
  const broken: Violation[] = [];
  const day = (name: string) =>
    brokenPointers.has(`/filters/${name}`) ? null : textOf(filters[name]);
  const from = day('dateFrom');
  const to = day('dateTo');
  for (const [name, bound] of Object.entries({ dateFrom: from, dateTo: to })) {
    if (bound !== null && (bound < FIRST_DAY || bound > LAST_DAY)) {
      const detail = `Must lie between ${FIRST_DAY} and ${LAST_DAY}`;
      broken.push({ pointer: `/filters/${name}`, code: 'out_of_range', detail });
    }
  }
  if (from !== null && to !== null && from > to) {
    const detail = 'dateFrom must not lie after dateTo; swap them';
    broken.push({ pointer: '/filters/dateFrom', code: 'date_order', detail });
  }
  if (filters['codes'] !== undefined) {
    for (const name of filtersOf(market)) {
      // An empty list counts as absent, so it does not conflict with codes.
      if (filters[name] === undefined || isEmptyList(filters[name])) continue;
      const detail = `codes combines only with dateFrom and dateTo; omit ${name} or codes`;
      broken.push({ pointer: `/filters/${name}`, code: 'codes_exclusive', detail });
    }
  }
  return broken;
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

const boundOf = (day: string | null, open: number): number => (day === null ? open : dayOf(day));

const listFilter = (name: FilterName, values: readonly string[]): ListFilter => ({
  name,
  values,
  keys: [...new Set(values.map(matchKey))],
});

/**
 * The plan of the page after a cursor, at the revision of the first page. This is the last check,
 * because only a valid request has the canonical text that the cursor is bound to.
 */
function planAfterCursor(plan: Plan, cursor: string): Plan {
  const after = pagePositionIn(canonicalText(plan), cursor);
  if (after === null) {
    const detail =
      'This cursor belongs to another request; repeat that request, or omit the cursor';
    throw startAgain('invalid_cursor', '/options/cursor', detail);
  }
  const { options, page } = plan;
  const began = { kind: 'revision', text: after.revision, option: 'cursor' } as const;
  const requested = options.requested.kind === 'now' ? began : options.requested;
  return { ...plan, options: { ...options, requested }, page: { ...page, after } };
}

/** Without a principal, warnings name no other market. */
const NO_PRINCIPAL: PlanInput = { by: 'body', readableMarkets: () => [], format: 'json' };

/**
 * Rejects options that do not apply to the format of the response, instead of ignoring them.
 * @throws Problem `validation_failed`
 */
function checkFormat({ options, format }: Plan): void {
  const wrong = usedOptions(options).filter((name) => !formatsOf(name).includes(format));
  if (wrong.length === 0) return;
  throw brokenRules(
    wrong.map((name) => {
      const media = formatsOf(name).map((each) => FORMATS[each].media);
      const detail = `${name} applies to ${eitherOf(media)}; omit it, or request one of these`;
      return { pointer: `/options/${name}`, code: 'unknown_field', detail };
    }),
  );
}

const DEFAULTS: Readonly<Record<string, unknown>> = { ...optionsOf({}) };

/**
 * A plan as text, without its revision, page and format. Two plans with the same text select the
 * same numbers at the same revision. Values are compared as sent, because warnings repeat them.
 * The text of a request never changes, because a cursor is bound to it: the options of version
 * 1.0.0 have fixed places, and each later option adds its name and value only if it is used.
 */
export function canonicalText({ market, days, codes, lists, options }: Plan): string {
  const { includeSeries, includeSummary, strict, onUnconvertible, ...others } = options;
  const { currency, unitOfMeasure, decimals, aggregate, ...formOptions } = others;
  const { lastObservations, decimalsAsText, columns, layout, warnings, ...rest } = formOptions;
  const { requested: _, ...later } = rest;
  return JSON.stringify([
    market.slug,
    [boundText(days.first), boundText(days.last)],
    codes,
    lists.map(({ name, values }) => [name, values]),
    [includeSeries, includeSummary, strict, onUnconvertible],
    [currency, unitOfMeasure, decimals],
    aggregate && [aggregate.period, aggregate.method],
    [lastObservations, decimalsAsText],
    [columns, layout, warnings],
    ...Object.entries(later).filter(([name, value]) => !isDeepStrictEqual(value, DEFAULTS[name])),
  ]);
}

/** The canonical text with page and format, which identifies one response at each revision. */
export function answerKey(plan: Plan): string {
  const { page, by, readableMarkets, format } = plan;
  const more = JSON.stringify([page.limit, page.after?.code, by, readableMarkets, format]);
  return `${canonicalText(plan)} ${more}`;
}
