import Type from 'typebox';
import { MARKETS } from '../../catalog/markets.ts';
import {
  closed,
  Day,
  Instant,
  LastAssessedAt,
  LatestPublishedAt,
  NextExpectedAt,
  nullable,
  open,
  openWord,
  PriceCode,
  ref,
  textOrNull,
  Warning,
  word,
} from './components.ts';
import { PRINTABLE } from './options.ts';

const slugs = MARKETS.map(({ slug }) => slug);

/** Most days from `from` to `to`, both included. */
export const CALENDAR_DAYS_MAX = 366;

/** Days after today until which due days are returned, if the query names no last day. */
export const CALENDAR_DAYS = 14;

/** Most codes of a query. */
const CODES_MAX = 500;

/** The formats of due days: the value of `format`, and the media type. */
export const CALENDAR_FORMATS = {
  json: 'application/json',
  csv: 'text/csv',
  ics: 'text/calendar',
} as const;
export type CalendarFormat = keyof typeof CALENDAR_FORMATS;
export const CALENDAR_FORMAT_NAMES = Object.keys(CALENDAR_FORMATS) as CalendarFormat[];

/** The query of `GET /v3/calendar`. */
export const CalendarQuery = closed({
  market: Type.Optional(
    Type.Array(word(slugs), {
      minItems: 1,
      maxItems: MARKETS.length,
      description:
        'Prices of this market only; repeat it for several. Default: all markets that the ' +
        'credential can read',
    }),
  ),
  codes: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 64, pattern: PRINTABLE }), {
      minItems: 1,
      maxItems: CODES_MAX,
      description: 'Prices with these codes only; repeat it for several',
    }),
  ),
  from: Type.Optional(Day('First day; default: today, by UTC')),
  to: Type.Optional(
    Day(
      `Last day; default: ${CALENDAR_DAYS} days after the first; at most ${CALENDAR_DAYS_MAX} days`,
    ),
  ),
  format: Type.Optional(
    word(CALENDAR_FORMAT_NAMES, { description: 'The format, instead of `Accept`' }),
  ),
  token: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'A calendar token, for programs that subscribe to an address',
    }),
  ),
});

const DueDay = open(
  {
    date: Day('The day on which the price is due; of a closed day the day of the rule'),
    dueAt: nullable(Instant('When the price is due; null if the day is closed')),
    status: openWord(['published', 'due', 'late', 'closed'], {
      description:
        '`late`: the due instant and the grace are over without a value. `closed`: nothing is due',
    }),
    holiday: { ...textOrNull, description: 'The holiday that closes the day of the rule' },
    movedFrom: nullable(Day('The day of the rule, if a holiday moved the price')),
  },
  { $id: 'DueDay', description: 'A day on which a price is due, or would be' },
);

const DuePrice = open(
  {
    market: openWord(slugs, { description: 'Slug of the market' }),
    code: ref(PriceCode),
    name: Type.String(),
    calendar: { ...textOrNull, description: 'The name of the calendar; null without one' },
    reason: nullable(openWord(['calendar_unknown']), {
      description: 'Why days may be missing: no calendar, or days beyond those that it knows',
    }),
    nextExpectedAt: ref(NextExpectedAt),
    lastAssessedAt: ref(LastAssessedAt),
    latestPublishedAt: ref(LatestPublishedAt),
    lateFrom: nullable(Instant('From when the price is late; null where that is unknown')),
    lateBy: nullable(openWord(['calendar', 'frequency']), {
      description:
        'What `lateFrom` follows from: `frequency` is a generous allowance for a price without a ' +
        'calendar',
    }),
    sample: Type.Boolean({ description: 'Sample data, which nobody publishes' }),
    days: Type.Array(ref(DueDay), { description: 'In the order of their dates' }),
  },
  { $id: 'DuePrice', description: 'A price with its due days' },
);

/** The answer of `GET /v3/calendar`. */
export const DueDays = open(
  {
    $metadata: open({
      revision: Type.String({ description: 'Revision of the data, opaque' }),
      asOf: Instant('Commit time of that revision'),
      from: Day('First day'),
      to: Day('Last day'),
      count: Type.Integer({ minimum: 0, description: 'Number of prices' }),
      warnings: Type.Array(ref(Warning)),
    }),
    data: Type.Array(ref(DuePrice), { description: 'By market and code' }),
  },
  { $id: 'DueDays' },
);

export const CALENDAR_COMPONENTS = [DueDay, DuePrice, DueDays];

/** The columns of the CSV. Their order never changes; new columns go to the end. */
export const CALENDAR_COLUMNS = [
  ...['market', 'code', 'name', 'calendar', 'date', 'dueAt', 'status', 'holiday', 'movedFrom'],
  ...['nextExpectedAt', 'reason', 'lastAssessedAt', 'latestPublishedAt'],
  ...['lateFrom', 'lateBy', 'sample'],
] as const;
