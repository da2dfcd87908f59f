import t from 'tap';
import { answerOf, type BookRequest, fill, type Twins, twinsOn } from '../../book/support.ts';
import { randomOf } from '../../conversion/support.ts';
import { testDatabase } from '../../support/database/database.ts';
import { logStatements } from '../../support/database/statement-log.ts';
import { serviceOn } from '../../support/http/service.ts';
import { addPrice, commit, putPoints, putRates } from '../../support/prices/sample-writes.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests read untyped bodies.
type Json = any;

const DAY_MS = 86_400_000;
const plus = (date: string, days: number): string =>
  new Date(Date.parse(date) + days * DAY_MS).toISOString().slice(0, 10);
const days = (from: string, to: string, step = 1): string[] => {
  const all: string[] = [];
  for (let date = from; date <= to; date = plus(date, step)) all.push(date);
  return all;
};

/** Rates end in April; those of CNY in March, and those of JPY have a hole. */
const RATES: Readonly<Record<string, readonly string[]>> = {
  USD: days('2026-01-05', '2026-04-30'),
  CNY: days('2026-01-05', '2026-03-31', 2),
  JPY: [...days('2026-01-05', '2026-01-31'), ...days('2026-03-20', '2026-04-29')],
};

interface Price {
  readonly currency: string | null;
  readonly days: readonly string[];
}

const PRICES: Readonly<Record<string, Price>> = {
  'M-CNY': { currency: 'CNY', days: days('2025-06-30', '2026-06-20', 3) },
  'M-EARLY': { currency: 'USD', days: days('2025-03-01', '2025-12-31', 9) },
  'M-EUR': { currency: 'EUR', days: days('2026-03-01', '2026-06-20', 2) },
  'M-JPY': { currency: 'JPY', days: days('2026-01-20', '2026-06-20', 5) },
  'M-LATE': { currency: 'USD', days: days('2026-05-20', '2026-06-20') },
  'M-NONE': { currency: 'USD', days: [] },
  'M-PAY': { currency: null, days: days('2026-05-20', '2026-06-20') },
  'M-USD': { currency: 'USD', days: days('2025-12-20', '2026-06-20') },
};
const CODES = Object.keys(PRICES);

let twins: Twins;
let statements: readonly string[];
t.before(async () => {
  const database = await testDatabase(t, { seeded: true });
  statements = logStatements(database.pool);
  await commit(database.pool, async (client) => {
    for (const [iso, dates] of Object.entries(RATES)) {
      const rates = Object.fromEntries(dates.map((date) => [date, '7.25']));
      await putRates(client, 'ECB', iso, rates);
    }
    for (const [code, { currency, days: dates }] of Object.entries(PRICES)) {
      await addPrice(client, { code, currency, unit: currency ? 'tonne' : 'percent' });
      await putPoints(client, code, ...dates.map((date) => [date, null, '100', null] as const));
    }
  });
  // Withdrawn points must not count.
  await commit(database.pool, (client) =>
    client.query(`delete from series where date = '2026-06-20'`),
  );
  twins = await twinsOn(t, database);
  await fill(twins);
});

/** The points of a price that are there. */
const pointsOf = (code: string): readonly string[] =>
  (PRICES[code]?.days ?? []).filter((date) => date !== '2026-06-20');

/** The same day of an earlier month, or its last. */
function monthsBack(date: string, months: number): string {
  const [year = 0, month = 0, day = 0] = date.split('-').map(Number);
  const last = new Date(Date.UTC(year, month - months, 0)).getUTCDate();
  const then = new Date(Date.UTC(year, month - 1 - months, Math.min(day, last)));
  return then.toISOString().slice(0, 10);
}

interface DateBounds {
  readonly dateFrom?: string;
  readonly dateTo?: string;
}

/** The dates of the requested points. */
function requested(code: string, range: DateBounds, options: Json): string[] {
  const { dateFrom = '0000', dateTo = '9999' } = range;
  const upTo = pointsOf(code).filter((date) => date <= dateTo);
  const series = options.includeSeries ? upTo.filter((date) => date >= dateFrom) : [];
  const latest = upTo.at(-1);
  if (!options.includeSummary || latest === undefined) return series;
  const bases = [
    ...[1, 7, 14].map((back) => plus(latest, -back)),
    ...[1, 3, 6, 12].map((months) => monthsBack(latest, months)),
    `${Number(latest.slice(0, 4)) - 1}-12-31`,
  ].map((base) => upTo.findLast((date) => date <= base));
  return [...new Set([...series, latest, ...bases.filter((date) => date !== undefined)])];
}

const near = (dates: readonly string[], date: string): string[] =>
  dates.filter((each) => each <= date && each >= plus(date, -7));

/** The currencies for whose want of a rate a date cannot be converted. */
function lackingOn(date: string, legs: readonly string[]): readonly string[] {
  const [first = [], ...others] = legs.map((iso) => near(RATES[iso] ?? [], date));
  if (first.some((each) => others.every((other) => other.includes(each)))) return [];
  const absent = legs.filter((iso) => near(RATES[iso] ?? [], date).length === 0);
  return absent.length > 0 ? absent : legs;
}

/** A requested point and the currencies that its conversion lacks, of those that it needs. */
interface NeededPoint {
  readonly date: string;
  readonly legs: readonly string[];
  readonly lacking: readonly string[];
}

/** The points without a rate of a currency, in stretches without a day that has one. */
function stretchesOf(currency: string, points: readonly NeededPoint[]) {
  const pairs = [...new Set(points.map(({ legs }) => legs.join()))].map((each) => each.split(','));
  const isLacking = (date: string) =>
    pairs.some((legs) => legs.includes(currency) && lackingOn(date, legs).includes(currency));
  const dates = points.filter(({ lacking }) => lacking.includes(currency)).map(({ date }) => date);
  const stretches: { firstDate: string; lastDate: string; points: number }[] = [];
  for (const date of dates.toSorted()) {
    const open = stretches.at(-1);
    if (open && days(open.lastDate, date).every(isLacking)) {
      stretches[stretches.length - 1] = { ...open, lastDate: date, points: open.points + 1 };
    } else stretches.push({ firstDate: date, lastDate: date, points: 1 });
  }
  return stretches;
}

/** The outcome of each price and the warnings of a request, by the contract. */
function expectedOf(range: DateBounds, options: Json) {
  const points: NeededPoint[] = [];
  const states = CODES.map((code) => {
    const currency = PRICES[code]?.currency ?? null;
    if (currency === null) return 'not-applicable';
    if (currency === options.currency) return 'unchanged';
    const legs = [currency, options.currency].filter((iso) => iso !== 'EUR');
    const own = requested(code, range, options).map((date) => {
      return { date, legs, lacking: lackingOn(date, legs) };
    });
    points.push(...own);
    const unrated = own.filter(({ lacking }) => lacking.length > 0).length;
    if (unrated === 0) return 'converted';
    return unrated === own.length ? 'refused' : 'partial';
  });
  const currencies = [...new Set(points.flatMap(({ lacking }) => lacking))].sort();
  const warnings = currencies.map((currency) => {
    const stretches = stretchesOf(currency, points);
    return {
      currency,
      firstDateWithoutRate: stretches[0]?.firstDate,
      lastDateWithoutRate: stretches.at(-1)?.lastDate,
      lastDateWithRate: RATES[currency]?.at(-1),
      pointsWithoutRate: points.filter(({ lacking }) => lacking.includes(currency)).length,
      pointsRequested: points.filter(({ legs }) => legs.includes(currency)).length,
      stretchesWithoutRate: stretches.slice(0, 5),
      moreStretches: Math.max(0, stretches.length - 5),
    };
  });
  return { states, warnings };
}

const shownOf = ({ code, pointer, detail, suggestions, ...others }: Json) => others;

/** Sends a request to the services with and without the price book; the answers must be equal. */
async function ask(
  test: Pick<typeof t, 'equal'>,
  filters: object,
  options: object,
  slug = 'nickel',
) {
  const request: BookRequest = { slug, filters, options, accept: 'application/json' };
  const [cached, plain] = await Promise.all([
    answerOf(twins.cached, request),
    answerOf(twins.plain, request),
  ]);
  test.equal(cached.body.toString(), plain.body.toString(), JSON.stringify(request));
  return {
    status: plain.status,
    json: JSON.parse(plain.body.toString().replace(/,}$/, '}')) as Json,
  };
}

const missingIn = (json: Json): Json[] =>
  json.$metadata.warnings.filter((each: Json) => each.code === 'rates_missing');

t.test('rates that end are reported, and May and June cannot be converted at all', async (t) => {
  const filters = { codes: ['M-LATE', 'M-USD'], dateFrom: '2026-05-08', dateTo: '2026-06-30' };
  const options = { currency: 'EUR', includeSeries: true };
  const answer = await ask(t, filters, options);
  t.same(missingIn(answer.json), [
    {
      code: 'rates_missing',
      pointer: '/options/currency',
      detail:
        'ECB has no rate of USD for 74 of 74 requested points: 2026-05-08 to 2026-06-19 (74); ' +
        'its newest one is of 2026-04-30, and a rate applies to its own day and the 7 days ' +
        'after it',
      suggestions: [],
      currency: 'USD',
      firstDateWithoutRate: '2026-05-08',
      lastDateWithoutRate: '2026-06-19',
      lastDateWithRate: '2026-04-30',
      pointsWithoutRate: 74,
      pointsRequested: 74,
      stretchesWithoutRate: [{ firstDate: '2026-05-08', lastDate: '2026-06-19', points: 74 }],
      moreStretches: 0,
    },
  ]);
  for (const record of answer.json.data) {
    t.match(record.conversion, { status: 'refused', reason: 'no-rate' });
    t.same([record.currency.iso, record.series[0].mid], ['USD', 100], 'as published');
  }
  for (const accept of ['text/csv', 'application/x-ndjson']) {
    const { headers } = await answerOf(twins.plain, { slug: 'nickel', filters, options, accept });
    t.same(JSON.parse(String(headers['x-warnings'])), missingIn(answer.json), accept);
  }
  const error = await ask(t, filters, { ...options, onUnconvertible: 'error' });
  t.same([error.status, error.json.code], [400, 'unconvertible_records']);
  t.match(error.json.detail, 'M-LATE, M-USD');
  const omitted = await ask(t, filters, { ...options, onUnconvertible: 'omit' });
  t.same(omitted.json.data, []);
  t.same(
    omitted.json.$metadata.warnings.map((each: Json) => each.code),
    ['rates_missing', 'unconvertible_omitted'],
  );
  const april = { ...filters, dateFrom: '2026-04-01' };
  const partial = await ask(t, april, { ...options, onUnconvertible: 'error' });
  t.equal(partial.status, 400, 'M-LATE has no point that can be converted');
  const one = { ...april, codes: ['M-USD'] };
  const fine = await ask(t, one, { ...options, onUnconvertible: 'error' });
  t.match(fine.json.data, [{ conversion: { status: 'partial' } }]);
  t.equal(missingIn(fine.json).length, 1);
});

const shared = { code: 'rates_missing', pointer: '/options/currency', suggestions: [] };
const WON = {
  ...shared,
  detail:
    'ECB has no rate of KRW at all; 26 requested points need one: 2026-04-30 to 2026-06-19 (26)',
  currency: 'KRW',
  firstDateWithoutRate: '2026-04-30',
  lastDateWithoutRate: '2026-06-19',
  lastDateWithRate: null,
  pointsWithoutRate: 26,
  pointsRequested: 26,
  stretchesWithoutRate: [{ firstDate: '2026-04-30', lastDate: '2026-06-19', points: 26 }],
  moreStretches: 0,
};

t.test('a currency without any rate is reported, with the points that need one', async (t) => {
  const filters = { codes: ['M-EUR', 'M-NONE', 'M-PAY'], dateFrom: '2026-04-30' };
  const options = { currency: 'KRW', includeSeries: true };
  const answer = await ask(t, filters, options);
  t.equal(answer.status, 200);
  t.same(answer.json.$metadata.warnings, [WON]);
  t.match(answer.json.data[0], {
    conversion: { status: 'refused', reason: 'no-rate' },
    currency: { iso: 'EUR' },
  });
  for (const accept of ['text/csv', 'application/x-ndjson']) {
    for (const twin of [twins.plain, twins.cached]) {
      const { headers } = await answerOf(twin, { slug: 'nickel', filters, options, accept });
      t.same(JSON.parse(String(headers['x-warnings'])), [WON], accept);
    }
  }
  const page = await ask(t, filters, { ...options, limit: 1 });
  t.same(page.json.$metadata.warnings, [WON], 'on a page');
  const omitted = await ask(t, filters, { ...options, onUnconvertible: 'omit' });
  t.same(
    omitted.json.data.map((each: Json) => each.code),
    ['M-PAY'],
  );
  t.match(omitted.json.$metadata.warnings, [WON, { code: 'unconvertible_omitted' }]);
  const error = await ask(t, filters, { ...options, onUnconvertible: 'error' });
  t.same([error.status, error.json.code], [400, 'unconvertible_records']);
});

t.test('a summary needs its own points, and without points the currency is named', async (t) => {
  const filters = { codes: ['M-LATE'] };
  const summary = await ask(t, filters, { currency: 'KRW', includeSummary: true });
  t.match(missingIn(summary.json).map(shownOf), [
    // Those of USD ended before the points that the summary needs.
    { currency: 'KRW', lastDateWithoutRate: '2026-06-19', lastDateWithRate: null },
    { currency: 'USD', lastDateWithoutRate: '2026-06-19', lastDateWithRate: '2026-04-30' },
  ]);
  t.match(summary.json.data, [{ summary: { latest: { mid: 100 } }, currency: { iso: 'USD' } }]);
  const none = {
    ...shared,
    detail: 'ECB has no rate of KRW at all',
    currency: 'KRW',
    firstDateWithoutRate: null,
    lastDateWithoutRate: null,
    lastDateWithRate: null,
    pointsWithoutRate: 0,
    pointsRequested: 0,
    stretchesWithoutRate: [],
    moreStretches: 0,
  };
  const plain = await ask(t, filters, { currency: 'KRW' });
  t.same(plain.json.$metadata.warnings, [none]);
  const empty = await ask(t, { codes: ['M-NONE'] }, { currency: 'KRW', includeSeries: true });
  t.same(empty.json.$metadata.warnings, [none]);
  const payable = await ask(t, { codes: ['M-PAY'] }, { currency: 'KRW', includeSeries: true });
  t.same(payable.json.$metadata.warnings, [], 'a payable needs no rate');
});

t.test('every currency is reported where the source has no rate, or does not exist', async (t) => {
  for (const FX_SOURCE of ['FED', 'NOBODY']) {
    for (const env of [{ FX_SOURCE }, { FX_SOURCE, PRICE_BOOK_BYTES: '0' }]) {
      const service = await serviceOn(t, twins.database, env);
      await service.app.book?.fill(() => twins.database.client.link.newestRevision());
      const { json } = await service.post('nickel', {
        filters: { codes: ['M-EUR', 'M-LATE'] },
        options: { currency: 'JPY', includeSeries: true },
      });
      t.match(
        missingIn(json).map(({ currency, lastDateWithRate }: Json) => [currency, lastDateWithRate]),
        // The base of a source that exists needs no rate.
        ['EUR', 'JPY', ...(FX_SOURCE === 'FED' ? [] : ['USD'])].map((iso) => [iso, null]),
        FX_SOURCE,
      );
      t.ok(missingIn(json).every((each: Json) => each.detail.startsWith(`${FX_SOURCE} has no `)));
    }
  }
});

t.test('missing rates are those of an independent calculation', async (t) => {
  const random = randomOf(20_261_125);
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  const seen = new Map<string, number>();
  for (let round = 0; round < 40; round += 1) {
    const [from, to] = [0, 0].map(() => plus('2025-11-01', Math.floor(random() * 240))).toSorted();
    const range: DateBounds = {
      ...(random() < 0.7 && from ? { dateFrom: from } : {}),
      ...(random() < 0.6 && to ? { dateTo: to } : {}),
    };
    const options = {
      currency: pick(['EUR', 'USD', 'CNY', 'JPY']),
      includeSeries: random() < 0.8,
      includeSummary: random() < 0.3,
      ...(random() < 0.3 ? { unitOfMeasure: 'lb' } : {}),
    };
    const { states, warnings } = expectedOf(range, options);
    const filters = { codes: CODES, ...range };
    const { json } = await ask(t, filters, options);
    t.same(missingIn(json).map(shownOf), warnings, JSON.stringify({ range, options }));
    const isMass = (code: string) => code !== 'M-PAY';
    t.same(
      json.data.map((each: Json) => each.conversion.status),
      // A unit alone is a conversion too.
      states.map((state, index) =>
        state === 'unchanged' && 'unitOfMeasure' in options && isMass(CODES[index] ?? '')
          ? 'converted'
          : state,
      ),
      JSON.stringify({ range, options }),
    );
    for (const state of states) seen.set(state, (seen.get(state) ?? 0) + 1);
    const refused = CODES.filter((_, index) => states[index] === 'refused');
    const limit = pick([{}, { limit: 3 }]);
    const omitted = await ask(t, filters, { ...options, ...limit, onUnconvertible: 'omit' });
    t.same(
      omitted.json.data.map((each: Json) => each.code),
      CODES.filter((code) => !refused.includes(code)).slice(0, 'limit' in limit ? 3 : 99),
    );
    t.same(missingIn(omitted.json).map(shownOf), warnings, 'the same on every page');
    const error = await ask(t, filters, { ...options, ...limit, onUnconvertible: 'error' });
    t.equal(error.status, refused.length > 0 ? 400 : 200);
  }
  t.ok(
    [...seen.values()].every((count) => count > 5) && seen.size === 5,
    JSON.stringify([...seen]),
  );
});

t.test('the first five stretches are listed, and the others counted', async (t) => {
  const first = (month: number) => `2010-${String(month).padStart(2, '0')}-01`;
  const months = Array.from({ length: 12 }, (_, index) => first(index + 1));
  await commit(twins.database.pool, async (client) => {
    await putRates(client, 'ECB', 'INR', Object.fromEntries(months.map((day) => [day, '80'])));
    await addPrice(client, { code: 'M-INR', currency: 'INR', unit: 'tonne' });
    const points = days('2010-01-01', '2010-12-31').map((day) => [day, null, '1', null] as const);
    await putPoints(client, 'M-INR', ...points);
  });
  await fill(twins);
  const { json } = await ask(
    t,
    { codes: ['M-INR', 'M-EUR'] },
    { currency: 'EUR', includeSeries: true },
  );
  const [warning] = missingIn(json);
  t.match(warning, {
    pointsWithoutRate: 365 - 12 * 8,
    pointsRequested: 365,
    moreStretches: 7,
    detail: / 2010-05-09 to 2010-05-31 \(23\) and 7 more; its newest one is of 2010-12-01,/,
  });
  t.equal(warning.stretchesWithoutRate.length, 5);
});

t.test('nothing is read where the rates cover the dates, or no rate is needed', async (t) => {
  const readsOf = async (range: DateBounds, options: object) => {
    const before = statements.length;
    await ask(t, { codes: ['M-USD'], ...range }, options);
    return statements.slice(before).filter((each) => each.includes('w.is_counted')).length;
  };
  const covered = { dateFrom: '2026-02-01', dateTo: '2026-03-31' };
  const series = { currency: 'EUR', includeSeries: true };
  t.equal(await readsOf(covered, series), 0);
  t.equal(await readsOf({}, { unitOfMeasure: 'lb', includeSeries: true }), 0);
  t.equal(await readsOf({}, { currency: 'EUR' }), 0, 'no point is asked for');
  const days = 'the days of a price, and its points by segment; and only without a book';
  t.equal(await readsOf({ dateFrom: '2026-02-01' }, series), 2, days);
  t.equal(await readsOf({}, { ...series, includeSummary: true }), 2, 'also for a summary');
});
