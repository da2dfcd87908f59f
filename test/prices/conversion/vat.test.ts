import t from 'tap';
import { fractionOf, rounded, roundedByRule } from '../../calculation/recompute.ts';
import {
  seededDatabase,
  type TestDatabase,
  testDatabase,
} from '../../support/database/database.ts';
import { inRevision } from '../../support/database/minimal-data.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import { csvRecords } from '../../support/prices/csv.ts';
import { addPrice, commit, putEcbRates, putPoints } from '../../support/prices/sample-writes.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies were checked against OpenAPI.
type Json = any;

type Fraction = readonly [bigint, bigint];

const times = (a: Fraction, b: Fraction): Fraction => [a[0] * b[0], a[1] * b[1]];
const over = (a: Fraction, b: Fraction): Fraction => [a[0] * b[1], a[1] * b[0]];
const plus = (a: Fraction, b: Fraction): Fraction => [a[0] * b[1] + b[0] * a[1], a[1] * b[1]];
const isEqual = (a: Fraction, b: Fraction): boolean => a[0] * b[1] === b[0] * a[1];

/** The factor 1 + a rate in percent. */
const grossOf = (rate: string): Fraction => over(plus([100n, 1n], fractionOf(rate)), [100n, 1n]);

const EXCLUDED = { includeSeries: true, decimalsAsText: true, vat: 'exclude' };

let database: TestDatabase;
let service: Service;
t.before(async () => {
  database = await testDatabase(t, { seeded: true });
  await commit(database.pool, async (client) => {
    for (const code of ['V-1', 'V-OLD', 'V-EARLY', 'V-XX', 'V-WORDS', 'V-NONE']) {
      const vat = [{ name: 'vat', value: '13% included', order: 1 }];
      const specification = code === 'V-WORDS' ? vat : [];
      await addPrice(client, { code, currency: 'CNY', unit: 'tonne', specification });
    }
    await addPrice(client, { code: 'V-PAY', currency: null, unit: 'percent' });
    await client.query(
      `update price set vat_country = 'CN' where code in ('V-1', 'V-OLD', 'V-EARLY')`,
    );
    await client.query(`update price set vat_country = 'XX' where code = 'V-XX'`);
    for (const code of ['V-1', 'V-XX', 'V-WORDS', 'V-NONE', 'V-PAY']) {
      await putPoints(
        client,
        code,
        ['2018-04-27', null, '57500', '57500.5'],
        ['2019-03-29', '57499', '57500', null],
        ['2019-04-02', null, '57500', null],
      );
    }
    await putPoints(client, 'V-OLD', ['1993-12-31', '1', '2', '3']);
    await putPoints(
      client,
      'V-EARLY',
      ['1993-11-30', null, '110', null],
      ['1993-12-31', null, '120', null],
      ['1994-01-31', null, '117', null],
    );
    await addPrice(client, { code: 'V-EURO', currency: 'EUR', unit: 'tonne' });
    await client.query(`update price set vat_country = 'ES' where code = 'V-EURO'`);
    await client.query(
      `insert into vat_rate (country, valid_from, rate) values ('ES', '2019-11-11', 21)`,
    );
    await putEcbRates(client);
    for (const day of ['2019-11-08', '2019-11-11', '2019-11-29']) {
      await putPoints(client, 'V-EURO', [day, null, '121', null]);
    }
  });
  service = await serviceOn(t, database);
});

const answerOf = async (codes: readonly string[], options: object): Promise<Json> =>
  (await service.post('nickel', { filters: { codes }, options })).json;

t.test('each point is divided by 1 + the rate of its day, which is in its receipt', async (t) => {
  const { data, $metadata } = await answerOf(['V-1'], { ...EXCLUDED, decimals: 2 });
  const [record] = data;
  t.strictSame($metadata.warnings, []);
  t.strictSame(
    record.series.map(({ date, mid, vatRate }: Json) => [date, mid, vatRate]),
    [
      ['2018-04-27', '49145.3', '17'],
      ['2019-03-29', '49568.97', '16'],
      ['2019-04-02', '50884.96', '13'],
    ],
  );
  t.strictSame(
    record.series.map(({ low, high }: Json) => [low, high]),
    [
      [null, '49145.73'],
      ['49568.1', null],
      [null, null],
    ],
  );
  t.match(record.conversion, {
    status: 'converted',
    reason: null,
    from: { currency: 'CNY', unitOfMeasure: 'Tonne' },
    to: { currency: 'CNY', unitOfMeasure: 'Tonne' },
    unitFactor: { multiply: '1', divide: '1' },
    source: null,
    vat: 'excluded',
    rounding: 'half-even, 2 decimals',
  });
});

t.test('a conversion and the exclusion of VAT are one division, rounded once', async (t) => {
  const seeded = await serviceOn(t, await seededDatabase(t));
  let compared = 0;
  for (const target of [{ currency: 'USD', unitOfMeasure: 'lb' }, { currency: 'EUR' }, {}]) {
    const options = { includeSeries: true, decimalsAsText: true, ...target };
    const published = await seeded.post('cobalt', { options });
    const plain = await seeded.post('cobalt', {
      options: { includeSeries: true, decimalsAsText: true },
    });
    const { json } = await seeded.post('cobalt', { options: { ...options, vat: 'exclude' } });
    for (const [at, record] of json.data.entries()) {
      if (record.vatCountry === null) {
        t.strictSame(record.series, published.json.data[at].series, `${record.code} stays`);
        continue;
      }
      const { unitFactor } = record.conversion;
      t.match(record.conversion, { status: 'converted', vat: 'excluded' });
      for (const [index, point] of record.series.entries()) {
        let value = fractionOf(plain.json.data[at].series[index].mid);
        value = times(value, fractionOf(unitFactor.multiply));
        value = over(value, fractionOf(unitFactor.divide));
        if (point.fx)
          value = over(times(value, fractionOf(point.fx.to)), fractionOf(point.fx.from));
        value = over(value, grossOf(point.vatRate));
        if (!isEqual(roundedByRule(value), fractionOf(point.mid))) t.fail(JSON.stringify(point));
        compared += 1;
      }
    }
    const warned = json.$metadata.warnings.map(({ code }: Json) => code);
    t.notOk(warned.includes('vat_included'), 'no number includes VAT any more');
    t.ok(warned.includes('vat_unknown'), 'others stay as published, and are named');
  }
  t.ok(compared > 1_000, `${compared} points`);
});

t.test('means, extremes, moving averages and summaries are of prices without VAT', async (t) => {
  const grossMean = (rates: readonly string[]): Fraction => {
    const values = rates.map((rate) => over([57_500n, 1n], grossOf(rate)));
    return over(values.reduce(plus), [BigInt(rates.length), 1n]);
  };
  const twoOf = (value: Fraction) => rounded(value, 2, 'half-even');
  const of = async (more: object) =>
    (await answerOf(['V-1'], { ...EXCLUDED, decimals: 2, ...more })).data[0];
  const yearly = await of({ aggregate: { period: 'year', method: 'average' } });
  t.equal(yearly.series.length, 2);
  t.ok(isEqual(twoOf(grossMean(['16', '13'])), fractionOf(yearly.series[1].mid)));
  t.notOk('vatRate' in yearly.series[1]);
  const least = await of({ aggregate: { period: 'year', method: 'min' } });
  t.equal(least.series[1].mid, '49568.97');
  const moving = await of({ movingAverage: 3 });
  const [, , third] = moving.series;
  t.ok(isEqual(twoOf(grossMean(['17', '16', '13'])), fractionOf(third.movingAverage)));
  const { summary } = await of({ includeSummary: true });
  t.equal(summary.latest.mid, '50884.96');
  t.equal(summary.changes.previous.absolute, '1315.99');
});

t.test('a price that is not known to include VAT stays as published, and says so', async (t) => {
  const codes = ['V-NONE', 'V-PAY', 'V-WORDS'];
  const plain = await answerOf(codes, { includeSeries: true, decimalsAsText: true });
  const { data, $metadata } = await answerOf(codes, EXCLUDED);
  for (const [at, record] of data.entries()) {
    t.strictSame(record.series, plain.data[at].series, record.code);
    const isPayable = record.code === 'V-PAY';
    t.match(record.conversion, {
      status: isPayable ? 'not-applicable' : 'unchanged',
      vat: 'unknown',
      rounding: null,
    });
  }
  t.match($metadata.warnings, [
    {
      code: 'vat_unknown',
      pointer: '/options/vat',
      detail: /^No VAT was excluded from .*: V-NONE, V-WORDS$/,
    },
  ]);
  const refused = await service.post('nickel', {
    filters: { codes },
    options: { ...EXCLUDED, onUnconvertible: 'error' },
  });
  t.equal(refused.status, 200, 'nothing of it cannot be converted');
});

t.test('a missing rate of VAT is reported, and never a number', async (t) => {
  const { data, $metadata } = await answerOf(['V-OLD', 'V-XX'], EXCLUDED);
  for (const record of data) {
    t.match(record.conversion, { status: 'refused', reason: 'no-vat-rate', vat: 'included' });
    t.notOk(record.series.some((point: Json) => 'vatRate' in point));
  }
  t.strictSame(
    $metadata.warnings.map(({ code, detail }: Json) => [code, detail]),
    [
      [
        'vat_rates_missing',
        'There is no rate of VAT of CN before 1994-01-01; 1 requested points need one, from ' +
          '1993-12-31 to 1993-12-31',
      ],
      [
        'vat_rates_missing',
        'There is no rate of VAT of XX at all; 3 requested points need one, from 2018-04-27 to ' +
          '2019-04-02',
      ],
    ],
  );
  await inRevision(
    database.pool,
    `insert into series (price_id, date, mid, published_at)
      values ((select id from price where code = 'V-OLD'), '1994-01-01', 117, now())`,
  );
  const later = await answerOf(['V-OLD'], EXCLUDED);
  t.match(later.data[0].conversion, { status: 'partial', reason: 'no-vat-rate', vat: 'excluded' });
  t.match(later.data[0].series, [
    { low: null, mid: null, high: null, conversionReason: 'no-vat-rate' },
    { mid: '100', vatRate: '17' },
  ]);
  t.match(later.$metadata.warnings, [{ code: 'vat_rates_missing' }]);
  const csv = await service.app.inject({
    method: 'POST',
    url: '/v3/prices/nickel',
    headers: { 'x-api-key': service.key, accept: 'text/csv' },
    payload: { filters: { codes: ['V-OLD'] }, options: { includeSeries: true, vat: 'exclude' } },
  });
  t.strictSame(
    csvRecords(csv.body).map((row) => [row['mid'], row['vatRate'], row['conversionReason']]),
    [
      ['', '', 'no-vat-rate'],
      ['100', '17', ''],
    ],
  );
});

t.test('a summary that lacks rates of VAT is reported like a series', async (t) => {
  const answered = async (more: object, options: object = {}): Promise<Json> => {
    const { json } = await service.post('nickel', {
      filters: { codes: ['V-EARLY'], ...more },
      options: { includeSummary: true, vat: 'exclude', ...options },
    });
    return { ...json.data[0], details: json.$metadata.warnings.map(({ detail }: Json) => detail) };
  };
  const early = await answered({ dateTo: '1993-12-31' });
  t.match(early.conversion, { status: 'refused', reason: 'no-vat-rate', vat: 'included' });
  t.match(early.summary, { latest: { mid: 120 }, previous: { mid: 110 } });
  t.match(early.details, [/ before 1994-01-01; 2 requested points .*1993-11-30 to 1993-12-31$/]);
  for (const more of [{}, { includeSeries: true }]) {
    const later = await answered({ dateFrom: '1994-01-31' }, more);
    t.match(later.conversion, { status: 'partial', reason: 'no-vat-rate', vat: 'excluded' });
    t.match(later.summary, { latest: { mid: 100 }, changes: { month: null } });
    t.match(later.details, [/; 1 requested points .*1993-12-31 to 1993-12-31$/]);
  }
  const all = await answered({}, { includeSeries: true });
  t.match(
    all.details,
    [/; 2 requested points /],
    'a point of the series and the summary counts once',
  );
});

t.test('a wide table marks the columns that could not be converted as requested', async (t) => {
  const headings = async (
    codes: readonly string[],
    options: object,
  ): Promise<string | undefined> => {
    const { body } = await service.app.inject({
      method: 'POST',
      url: '/v3/prices/nickel',
      headers: { 'x-api-key': service.key, accept: 'text/csv' },
      payload: { filters: { codes }, options: { includeSeries: true, layout: 'wide', ...options } },
    });
    return body.split('\r\n')[0];
  };
  const vat = 'exclude';
  t.equal(
    await headings(['V-1', 'V-XX'], { vat }),
    'date,V-1 [CNY/Tonne],V-XX [CNY/Tonne with VAT]',
  );
  t.equal(await headings(['V-XX'], { vat }), 'date,V-XX [CNY/Tonne with VAT]');
  t.equal(await headings(['V-1', 'V-NONE'], { vat }), 'date,V-1,V-NONE');
  t.equal(await headings(['V-EARLY'], { currency: 'EUR' }), 'date,V-EARLY [CNY/Tonne]');
});

t.test('a mean within whose period a rate of VAT changed is warned of', async (t) => {
  const observe = (what: string | null) =>
    inRevision(database.pool, `update price set observes = ${what} where code = 'V-1'`);
  await observe("'year-mean'");
  const warned = async (filters: object, options: object = {}) =>
    (
      await service.post('nickel', {
        filters: { codes: ['V-1'], ...filters },
        options: { ...EXCLUDED, ...options },
      })
    ).json.$metadata.warnings;
  t.match(await warned({ dateTo: '2018-12-31' }), [
    { code: 'mean_at_one_day_rate', pointer: '/options/vat', detail: /: V-1$/ },
  ]);
  t.strictSame(await warned({ dateFrom: '2020-01-01' }), [], 'none changed within a later year');
  t.equal((await warned({ dateFrom: '2020-01-01' }, { includeSummary: true })).length, 1);
  await observe("'month-mean'");
  t.strictSame(await warned({}), [], 'each rate began with a month');
  await observe('null');
  t.strictSame(await warned({}), []);
});

t.test('the reason of a missing number is the rate that it lacks', async (t) => {
  const answered = async (more: object, options: object = {}): Promise<Json> => {
    const { json } = await service.post('nickel', {
      filters: { codes: ['V-EURO'], ...more },
      options: { includeSeries: true, vat: 'exclude', currency: 'CNY', ...options },
    });
    const { conversion, series } = json.data[0];
    const reasons = series.map(({ conversionReason }: Json) => conversionReason ?? null);
    return [conversion.reason, reasons, json.$metadata.warnings.map(({ code }: Json) => code)];
  };
  const [fx, vat] = ['no-rate', 'no-vat-rate'];
  const early = { dateTo: '2019-11-15' };
  t.strictSame(await answered({}), [fx, [vat, null, fx], ['rates_missing', 'vat_rates_missing']]);
  t.strictSame(await answered(early), [vat, [vat, null], ['vat_rates_missing']]);
  for (const method of ['average', 'first', 'last', 'max']) {
    const weekly = { aggregate: { period: 'week', method } };
    t.strictSame((await answered({}, weekly))[1], [vat, null, fx], method);
    t.strictSame((await answered(early, { ...weekly, lastObservations: 2 }))[0], vat, method);
  }
});

t.test('a later change of a rate changes no number of an earlier revision', async (t) => {
  const before = await answerOf(['V-1'], EXCLUDED);
  await inRevision(database.pool, `update vat_rate set rate = 15 where rate = 16`);
  const after = await answerOf(['V-1'], EXCLUDED);
  t.equal(after.data[0].series[1].vatRate, '15');
  t.equal(after.data[0].series[1].mid, '50000');
  const past = await answerOf(['V-1'], { ...EXCLUDED, revision: before.$metadata.revision });
  t.strictSame(past.data, before.data);
});
