import t from 'tap';
import { testDatabase } from '../../support/database/database.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import { csvRecords } from '../../support/prices/csv.ts';
import { parseExact } from '../../support/prices/oracle.ts';
import { differenceOf } from '../../support/prices/rows.ts';
import { addPrice, commit, putPoints, putRates } from '../../support/prices/sample-writes.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies were checked against OpenAPI.
type Json = any;

const MEAN = 'M-MONTH';
const YEAR = 'M-YEAR';
const DAILY = 'M-DAY';
const PAYABLE = 'M-PAY';

/** Rates of the working days of 2025 up to 2 April 2026: 1.25, and twice another one. */
function usdRates(): Record<string, string> {
  const rates: Record<string, string> = {};
  for (let time = Date.UTC(2025, 0, 1); time <= Date.UTC(2026, 3, 2); time += 86_400_000) {
    const date = new Date(time);
    if (date.getUTCDay() % 6 !== 0) rates[date.toISOString().slice(0, 10)] = '1.25';
  }
  return { ...rates, '2025-03-10': '2.5', '2026-02-10': '1.6' };
}

/** The service with the price book, and without. */
let services: readonly Service[];
/** The revisions before means were stated, and after one was stated wrongly. */
let before: string;
let wrong: string;
t.before(async () => {
  const database = await testDatabase(t, { seeded: true });
  await commit(database.pool, async (client) => {
    await putRates(client, 'ECB', 'USD', usdRates());
    for (const code of [MEAN, YEAR, DAILY]) {
      await addPrice(client, { code, currency: 'USD', unit: 'tonne' });
      await putPoints(
        client,
        code,
        ['2026-02-28', '800', '1000', '1200'],
        ['2026-03-31', null, '1000', null],
        ['2026-04-30', null, '1000', null],
      );
    }
    for (const code of [MEAN, YEAR]) {
      await putPoints(client, code, ['2025-12-31', null, '1000', null]);
    }
    await addPrice(client, { code: PAYABLE, currency: null, unit: 'percent' });
    await putPoints(client, PAYABLE, ['2026-02-28', null, '75', null]);
  });
  services = [
    await serviceOn(t, database),
    await serviceOn(t, database, { PRICE_BOOK_BYTES: '0' }),
  ];
  const newest = async (): Promise<string> =>
    (await (services[0] as Service).post('nickel', {})).json.$metadata.revision;
  before = await newest();
  const state = (observes: string, ...codes: readonly string[]) =>
    commit(database.pool, (client) =>
      client.query('update price set observes = $2 where code = any($1)', [codes, observes]),
    );
  await state('year-mean', MEAN, YEAR);
  wrong = await newest();
  await state('month-mean', MEAN, PAYABLE);
});

const CODES = [MEAN, YEAR, DAILY, PAYABLE];
const ask = (service: Service, options: object, codes: readonly string[] = CODES) =>
  service.post('nickel', {
    filters: { codes, dateFrom: '2026-01-01' },
    options: { currency: 'EUR', ...options },
  });

const recordOf = ({ json }: { json: Json }, code: string): Json =>
  json.data.find((each: Json) => each.code === code);

const codesIn = ({ json }: { json: Json }): string[] =>
  json.$metadata.warnings.map((each: Json) => each.code);

t.test('a price says what its values are, at each revision', async (t) => {
  for (const service of services) {
    const now = await ask(service, {});
    t.same(
      CODES.map((code) => recordOf(now, code).observes),
      ['month-mean', 'year-mean', 'day', 'month-mean'],
    );
    const past = await ask(service, { revision: before });
    t.same(
      CODES.map((code) => recordOf(past, code).observes),
      ['day', 'day', 'day', 'day'],
    );
    t.notOk(codesIn(past).includes('mean_at_one_day_rate'), 'nor were they known to be means');
    const between = await ask(service, { revision: wrong });
    t.same(
      CODES.map((code) => recordOf(between, code).observes),
      ['year-mean', 'year-mean', 'day', 'day'],
      'as superseded since',
    );
    const { json } = await service.request({
      method: 'GET',
      url: `/v3/changes?market=nickel&after=revision:${wrong}`,
    });
    t.match(json.data, [
      { code: MEAN, before: { observes: 'year-mean' }, after: { observes: 'month-mean' } },
      { code: PAYABLE, before: { observes: 'day' }, after: { observes: 'month-mean' } },
    ]);
  }
});

t.test('a mean that is converted at the rate of a day has a warning', async (t) => {
  for (const service of services) {
    const answer = await ask(service, { includeSeries: true });
    const [warning, ...more] = answer.json.$metadata.warnings.filter(
      (each: Json) => each.code === 'mean_at_one_day_rate',
    );
    t.same(more, [], 'one for the request');
    t.match(warning, { pointer: '/options/currency', suggestions: [] });
    t.match(warning.detail, /2 converted prices .*: M-MONTH, M-YEAR\. Set options\.rates/);
    t.same(recordOf(answer, MEAN).series[0].fx.date, '2026-02-27');
    t.notOk('rates' in recordOf(answer, MEAN).conversion);
    const others = [
      await ask(service, {}, [DAILY, PAYABLE]),
      await ask(service, { currency: 'usd' }),
      await ask(service, { rates: 'period-mean' }),
      await service.post('nickel', {
        filters: { codes: CODES },
        options: { unitOfMeasure: 'lb' },
      }),
    ];
    for (const each of others) t.notOk(codesIn(each).includes('mean_at_one_day_rate'));
    const { json } = await service.request({
      method: 'GET',
      url: `/v3/prices/nickel?codes=${MEAN}&currency=EUR`,
    });
    t.match(json.$metadata.warnings, [{ code: 'mean_at_one_day_rate', pointer: '?currency' }]);
  }
});

t.test('means are converted by the mean of the rate days, others by the day', async (t) => {
  for (const service of services) {
    const answer = await ask(service, { includeSeries: true, rates: 'period-mean' });
    const mean = recordOf(answer, MEAN);
    // 19 days at 1 ÷ 1.25 and one at 1 ÷ 1.6, of 20: 0.79125.
    const fxMean = { firstDate: '2026-02-02', lastDate: '2026-02-27', days: 20, rate: '0.79125' };
    t.match(mean.series[0], { low: 633, mid: 791.25, high: 949.5, fxMean });
    t.notOk('fx' in mean.series[0]);
    t.match(mean.series[1], { mid: 800, fxMean: { days: 22, rate: '0.8' } });
    t.match(mean.series[2], { mid: null, conversionReason: 'no-rate' });
    t.notOk('fxMean' in mean.series[2]);
    t.match(mean.conversion, { status: 'partial', source: 'ECB', rates: 'period-mean' });
    const daily = recordOf(answer, DAILY);
    t.same(daily.series[0].fx, { date: '2026-02-27', base: 'EUR', from: '1.25', to: '1' });
    t.notOk('rates' in daily.conversion);
    t.same(recordOf(answer, PAYABLE).conversion.status, 'not-applicable');
    // The year is not over: nothing of the price is converted.
    t.match(recordOf(answer, YEAR).conversion, { status: 'refused', reason: 'no-rate' });
  }
});

t.test('a month and a year that end on one day have rates of their own', async (t) => {
  for (const service of services) {
    const { json } = await service.post('nickel', {
      filters: { codes: [MEAN, YEAR], dateTo: '2025-12-31' },
      options: { currency: 'EUR', includeSeries: true, rates: 'period-mean', decimals: 10 },
    });
    const fxMeans = json.data.map(({ series }: Json) => series[0].fxMean);
    // 260 days at 0.8 and one at 0.4, of 261.
    const rate = '0.7984674330';
    t.same(fxMeans, [
      { firstDate: '2025-12-01', lastDate: '2025-12-31', days: 23, rate: '0.8' },
      { firstDate: '2025-01-01', lastDate: '2025-12-31', days: 261, rate: rate.slice(0, -1) },
    ]);
    t.same(json.$metadata.warnings, []);
  }
});

t.test('a period that is not over is reported, and never has the mean of a part', async (t) => {
  for (const service of services) {
    const codes = [MEAN];
    const answer = await ask(service, { includeSeries: true, rates: 'period-mean' }, codes);
    const [warning] = answer.json.$metadata.warnings;
    t.match(warning, {
      code: 'rates_missing',
      currency: 'USD',
      pointsWithoutRate: 1,
      pointsRequested: 3,
      firstDateWithoutRate: '2026-04-30',
      lastDateWithRate: '2026-04-02',
    });
    t.match(warning.detail, 'the mean of a month or year needs a rate of its last day or later');
    t.notMatch(warning.detail, '7 days after it');
    const both = await ask(service, { includeSeries: true, rates: 'period-mean' }, [MEAN, DAILY]);
    t.match(both.json.$metadata.warnings[0].detail, '7 days after it; the mean of a month');
    const omitted = await ask(service, {
      includeSeries: true,
      rates: 'period-mean',
      onUnconvertible: 'omit',
    });
    t.same(recordOf(omitted, YEAR), undefined);
    t.match(codesIn(omitted), ['rates_missing', 'unconvertible_omitted']);
  }
});

t.test('a summary and an aggregate of means use mean rates', async (t) => {
  for (const service of services) {
    const { json } = await service.post('nickel', {
      filters: { codes: [MEAN], dateFrom: '2026-01-01', dateTo: '2026-03-31' },
      options: {
        ...{ currency: 'EUR', rates: 'period-mean', includeSeries: true, includeSummary: true },
        aggregate: { period: 'quarter', method: 'average' },
      },
    });
    const [{ summary, series }] = json.data;
    t.match(summary.latest, { date: '2026-03-31', mid: 800 });
    t.match(summary.previous, { date: '2026-02-28', mid: 791.25 });
    t.match(summary.changes.previous, { absolute: 8.75 });
    t.match(series, [{ mid: 795.625, observations: 2 }]);
    t.notOk('fxMean' in series[0]);
  }
});

t.test('every table has the receipt of a mean, each in columns of its own', async (t) => {
  const options = { currency: 'EUR', includeSeries: true, rates: 'period-mean' };
  for (const service of services) {
    const inject = (accept: string) =>
      service.app.inject({
        method: 'POST',
        url: '/v3/prices/nickel',
        headers: { 'x-api-key': service.key, accept },
        payload: { filters: { codes: CODES, dateFrom: '2026-01-01' }, options },
      });
    const { data } = parseExact((await inject('application/json')).body);
    const csv = (await inject('text/csv')).body;
    t.equal(differenceOf(csv, data), null);
    const row = csvRecords(csv).find(
      (each) => each['code'] === MEAN && each['date'] === '2026-02-28',
    );
    t.match(row, {
      observes: 'month-mean',
      fxDate: '',
      fxMeanRate: '0.79125',
      fxMeanFirstDate: '2026-02-02',
      fxMeanLastDate: '2026-02-27',
      fxMeanDays: '20',
    });
    const rows = JSON.parse((await inject('application/json;profile=rows')).body);
    t.match(
      rows.filter((each: Json) => each.code === MEAN).map((each: Json) => each.fxMeanDays),
      [20, 22, null],
    );
  }
});
