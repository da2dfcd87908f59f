import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from '../../auth/credentials.ts';
import { insufficientScope } from '../../auth/refusals.ts';
import type { Judgement } from '../../calendar/lateness.ts';
import { MARKETS, type MarketSlug, marketOf } from '../../catalog/markets.ts';
import { codeKey } from '../../catalog/match-key.ts';
import { nearest } from '../../catalog/nearest.ts';
import { allows, marketsOpenTo, scopeOf } from '../../catalog/scopes.ts';
import { flatReader, queryOf as parametersOf } from '../../contract/request/query.ts';
import {
  CALENDAR_DAYS,
  CALENDAR_DAYS_MAX,
  CALENDAR_FORMAT_NAMES,
  CALENDAR_FORMATS,
  type CalendarFormat,
  CalendarQuery,
  DueDays,
} from '../../contract/schemas/calendar.ts';
import { ref } from '../../contract/schemas/components.ts';
import { dataRevisionAt, type NewestRevision } from '../../db/newest-revision.ts';
import { revisionText } from '../../db/revisions.ts';
import { brokenRules, eitherOf, Problem, quoted, type Violation } from '../../errors.ts';
import type { Readers } from '../../prices/answer/answer.ts';
import type { Warning } from '../../prices/answer/warnings.ts';
import { type DuePrice, readPublishedDays } from '../../prices/calendar/due-prices.ts';
import { dueDaysOf, scheduleOf } from '../../prices/calendar/schedule.ts';
import { csvOf, icalendarOf, shownPrice } from '../../prices/calendar/write.ts';
import type { VocabularyReader } from '../../prices/market/vocabulary.ts';
import { dayOf, dayText } from '../../std/days.ts';
import { preferredType } from '../../std/negotiation.ts';
import { Slice } from '../../std/turns.ts';
import type { CredentialChecks } from '../hooks/auth.ts';
import { codingOf, sendTagged } from '../reply/send.ts';
import { calendarOperation, NOT_MODIFIED } from './operations.ts';

/** Most due days of an answer: each is a line or an event, of some 250 bytes. */
const ENTRIES_MAX = 10_000;

interface CalendarRequest {
  readonly market?: readonly MarketSlug[];
  readonly codes?: readonly string[];
  readonly from?: string;
  readonly to?: string;
  readonly format?: CalendarFormat;
}

const read = flatReader(CalendarQuery);

/** The days of PostgreSQL that have four digits of a year: it has no year 0. */
const DAY_MIN = dayOf('0001-01-01');
const DAY_MAX = dayOf('9999-12-31');

const isRealDay = (day: string): boolean => dayText(dayOf(day)) === day && dayOf(day) >= DAY_MIN;

/** The range of days, and its violations. */
function rangeOf({ from, to }: CalendarRequest, nowMs: number) {
  const errors: Violation[] = [];
  const real = (name: string, day: string | undefined): number | null => {
    if (day === undefined) return null;
    if (isRealDay(day)) return dayOf(day);
    const detail = 'Must be a real calendar day, written YYYY-MM-DD';
    errors.push({ pointer: `/${name}`, code: 'invalid_format', detail });
    return null;
  };
  const first = real('from', from) ?? dayOf(new Date(nowMs).toISOString().slice(0, 10));
  const last = real('to', to) ?? Math.min(first + CALENDAR_DAYS, DAY_MAX);
  if (first > last && errors.length === 0) {
    const detail =
      from === undefined ? 'to must not lie before today' : 'from must not lie after to';
    errors.push({ pointer: from === undefined ? '/to' : '/from', code: 'date_order', detail });
  }
  if (last - first >= CALENDAR_DAYS_MAX && errors.length === 0) {
    const detail = `The days from and to must be at most ${CALENDAR_DAYS_MAX} days; ask for less`;
    errors.push({ pointer: '/to', code: 'out_of_range', detail });
  }
  return { first, last, errors };
}

/** The validated query. @throws Problem `validation_failed` with every violation */
function queryOf(url: string, nowMs: number) {
  const { values, errors } = read(url);
  if (errors.length > 0) throw brokenRules(errors);
  const query = values as CalendarRequest;
  const range = rangeOf(query, nowMs);
  if (range.errors.length > 0) throw brokenRules(range.errors);
  return { query, range };
}

/** The format by the header Accept. @throws Problem `not_acceptable` that names the formats */
function acceptedFormat({ headers }: FastifyRequest): CalendarFormat {
  const offered = Object.values(CALENDAR_FORMATS);
  const media = preferredType(headers.accept, offered);
  const found = CALENDAR_FORMAT_NAMES.find((name) => CALENDAR_FORMATS[name] === media);
  if (found === undefined) throw new Problem('not_acceptable', `Accept ${eitherOf(offered)}`);
  return found;
}

const principalOf = ({ context: { principal } }: FastifyRequest): Principal => {
  if (principal === null) throw new Error('the request has no principal');
  return principal;
};

/** Rejects a named market without its scope. @throws Problem `insufficient_scope` */
function checkMarkets(
  request: FastifyRequest,
  { market = [] }: CalendarRequest,
  credentials: CredentialChecks,
): void {
  const { scopes } = principalOf(request);
  for (const slug of market) {
    if (marketOf(slug) === undefined || allows(scopes, scopeOf(slug))) continue;
    throw credentials.reportMissingScope(request, insufficientScope(scopeOf(slug)));
  }
}

const SUGGESTIONS = 3;

/** The prices of some markets, or those of them with one of the codes, by market and code. */
async function pricesOf(
  readers: Readers,
  current: NewestRevision,
  slugs: readonly MarketSlug[],
  codes: readonly string[] | undefined,
): Promise<readonly DuePrice[]> {
  const wanted = codes && new Set(codes.map(codeKey));
  const prices: DuePrice[] = [];
  for (const slug of slugs.toSorted()) {
    const all = await readers.duePrices(slug, dataRevisionAt(current, [slug]));
    prices.push(...(wanted ? all.filter((each) => wanted.has(each.codeKey)) : all));
  }
  return prices;
}

/** Most codes of a request that get suggestions: hundreds of unknown codes are no typo. */
const SUGGESTED_MAX = 5;

/**
 * The codes of some markets that are nearest to unknown ones, for the first of these. The
 * vocabularies are those of requests for prices, so that both share their cache entries.
 */
async function nearestCodes(
  unknown: readonly string[],
  slugs: readonly MarketSlug[],
  newest: NewestRevision,
  vocabularies: VocabularyReader,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const suggested = unknown.slice(0, SUGGESTED_MAX);
  const found = suggested.map((code) => ({ code, near: [] as string[] }));
  const slice = new Slice();
  for (const market of MARKETS) {
    if (suggested.length === 0 || !slugs.includes(market.slug)) continue;
    const vocabulary = await vocabularies(market, dataRevisionAt(newest, [market.slug]));
    const names = await vocabulary.codes();
    for (const { code, near } of found) {
      near.push(...names.nearest(code, SUGGESTIONS));
      await slice.yieldIfOver();
    }
  }
  return new Map(found.map(({ code, near }) => [code, nearest(code, near, SUGGESTIONS)]));
}

/** A warning for each code that no price of the readable markets has. */
const unmatched = (
  codes: readonly string[],
  isKnown: (code: string) => boolean,
  suggestions: ReadonlyMap<string, readonly string[]>,
): Warning[] =>
  codes.flatMap((code, index) => {
    if (isKnown(code)) return [];
    const near = suggestions.get(code) ?? [];
    const hint = near.length === 0 ? '' : `; did you mean ${near.join(', ')}?`;
    const detail = `No price of these markets has the code "${quoted(code)}"${hint}`;
    return [{ code: 'unmatched_value', pointer: `?codes/${index}`, detail, suggestions: near }];
  });

/** @throws Problem `validation_failed` for more due days than an answer has */
function checkEntries(entries: number): void {
  if (entries <= ENTRIES_MAX) return;
  const detail =
    `These are ${entries} due days, and an answer has ${ENTRIES_MAX}: name markets or codes, or ` +
    'ask for fewer days';
  throw brokenRules([{ pointer: '/to', code: 'out_of_range', detail }]);
}

const TYPES: Readonly<Record<CalendarFormat, string>> = {
  json: 'application/json; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
  ics: 'text/calendar; charset=utf-8; method=PUBLISH',
};

/** A request, and the markets and prices that it may read. */
interface Wanted {
  readonly query: CalendarRequest;
  readonly range: { readonly first: number; readonly last: number };
  readonly slugs: readonly MarketSlug[];
  readonly judgement: Judgement;
}

/** The ids of the sample prices of some markets. */
async function samplesOf(
  { samples }: Readers,
  current: NewestRevision,
  slugs: readonly MarketSlug[],
): Promise<ReadonlySet<number>> {
  const ids: number[] = [];
  for (const market of MARKETS) {
    if (!slugs.includes(market.slug)) continue;
    ids.push(...(await samples(market, dataRevisionAt(current, [market.slug]))));
  }
  return new Set(ids);
}

/** The due days of the wanted prices at the newest revision. */
async function readSchedule(
  { context: { work, newest } }: FastifyRequest,
  readers: Readers,
  { query, range, slugs, judgement }: Wanted,
) {
  const current = await work.until(newest);
  const data = dataRevisionAt(current, slugs);
  const db = readers.reads.db(work.signal);
  const [{ calendars }, prices] = await Promise.all([
    work.until(readers.references(readers.db, data)),
    work.until(pricesOf(readers, current, slugs, query.codes)),
  ]);
  const due = dueDaysOf(prices, calendars, range);
  checkEntries(due.entries);
  const followers = prices.filter(({ id }) => calendars.of(id) !== null).map(({ id }) => id);
  const { first, last } = range;
  const published = await readPublishedDays(db, followers, first, last, data.revision);
  const scheduled = await scheduleOf(prices, calendars, range, due, published, judgement);
  const known = new Set(prices.map((each) => each.codeKey));
  const isKnown = (code: string): boolean => known.has(codeKey(code));
  const { codes = [] } = query;
  const unknown = codes.filter((code) => !isKnown(code));
  const near = await work.until(nearestCodes(unknown, slugs, current, readers.vocabularies));
  const warnings = unmatched(codes, isKnown, near);
  const samples = await work.until(samplesOf(readers, current, slugs));
  return { data, calendars, scheduled, samples, warnings };
}

/** The bytes of an answer. */
async function bodyOf(
  format: CalendarFormat,
  { first, last }: Wanted['range'],
  { data, calendars, scheduled, samples, warnings }: Awaited<ReturnType<typeof readSchedule>>,
): Promise<string> {
  if (format === 'csv') return csvOf(scheduled, samples);
  if (format === 'ics') return icalendarOf(scheduled, calendars, data.committedAt);
  const $metadata = {
    revision: revisionText(data),
    asOf: data.committedAt,
    from: dayText(first),
    to: dayText(last),
    count: scheduled.length,
    warnings,
  };
  return JSON.stringify({ $metadata, data: scheduled.map((each) => shownPrice(each, samples)) });
}

/** Responses in the OpenAPI document. */
const ANSWERS = {
  200: {
    description: 'The due days',
    content: {
      [CALENDAR_FORMATS.json]: { schema: ref(DueDays) },
      [CALENDAR_FORMATS.csv]: { schema: { type: 'string' } },
      [CALENDAR_FORMATS.ics]: { schema: { type: 'string' } },
    },
  },
  ...NOT_MODIFIED,
};

/**
 * `GET /v3/calendar`: due days of prices, for credentials with the scope of any market.
 * @param clock the time and the grace by which days are late
 */
export function calendarRoute(
  app: FastifyInstance,
  readers: Readers,
  credentials: CredentialChecks,
  clock: () => Judgement,
): void {
  async function handler(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const judgement = clock();
    const { query, range } = queryOf(request.url, judgement.nowMs);
    checkMarkets(request, query, credentials);
    const format = query.format ?? acceptedFormat(request);
    const open = marketsOpenTo(principalOf(request).scopes);
    const slugs = query.market ? open.filter((slug) => query.market?.includes(slug)) : open;
    const wanted = { query, range, slugs, judgement };
    const schedule = await readSchedule(request, readers, wanted);
    reply.headers({
      'x-data-revision': revisionText(schedule.data),
      'content-disposition': `inline; filename="calendar-${dayText(range.first)}.${format}"`,
    });
    return sendTagged(request, reply, TYPES[format], await bodyOf(format, range, schedule));
  }

  app.get('/v3/calendar', {
    config: { access: 'some-market', takesCalendarToken: true },
    preParsing: async (request) => {
      if (!parametersOf(request.url).parameters.has('format')) acceptedFormat(request);
      codingOf(request);
    },
    schema: { ...calendarOperation, querystring: CalendarQuery, response: ANSWERS },
    handler,
  });
}
