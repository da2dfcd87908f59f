import t from 'tap';
import { seededDatabase, testDatabase } from '../../support/database/database.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import { csvRecords } from '../../support/prices/csv.ts';
import { parseExact } from '../../support/prices/oracle.ts';
import { addPrice, commit, putPoints, putRates } from '../../support/prices/sample-writes.ts';
import { SPECIFIED } from '../../support/prices/specification.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies were checked against OpenAPI.
type Json = any;

t.test('a price with VAT that is converted to another currency carries a warning', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  let warned = 0;
  for (const { slug } of SPECIFIED) {
    const { json: plain } = await service.post(slug, {});
    const withVat = plain.data
      .filter((each: Json) => each.specification.some((entry: Json) => entry.name === 'vat'))
      .map((each: Json) => [each.code, each.currency.iso]);
    for (const currency of ['USD', 'CNY']) {
      const { json } = await service.post(slug, { options: { currency } });
      const codes = withVat
        .filter(([, own]: string[]) => own !== currency)
        .map(([c]: string[]) => c);
      warned += codes.length;
      const isSample = (each: Json) => each.code === 'sample_rates';
      const warnings = json.$metadata.warnings.filter((each: Json) => !isSample(each));
      t.same(
        warnings.map((each: Json) => [each.code, each.detail.split(' ')[0]]),
        codes.map((code: string) => ['vat_included', code]),
        `${slug} in ${currency}`,
      );
      t.ok(warnings.every((each: Json) => each.pointer === '/options/currency'));
      t.ok(warnings.every((each: Json) => each.detail.includes('13% included')));
    }
    const inPounds = await service.post(slug, { options: { unitOfMeasure: 'lb' } });
    t.same(inPounds.json.$metadata.warnings, [], `${slug}: a unit alone needs no warning`);
  }
  t.ok(warned > 50, `${warned} warnings`);
});

t.test('VAT stays in the numbers, and only words that include it count', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const words = ['13% included', 'incl. 13 %', 'not included', 'excluded', '0%'];
  await commit(database.pool, async (client) => {
    await putRates(client, 'ECB', 'USD', { '2026-04-13': '1.1684' });
    await putRates(client, 'ECB', 'CNY', { '2026-04-13': '7.9827' });
    for (const [index, value] of words.entries()) {
      const specification = [{ name: index === 1 ? 'VAT' : 'vat', value, order: 1 }];
      const code = `V-${index}`;
      await addPrice(client, { code, currency: 'CNY', unit: 'tonne', specification });
      await putPoints(client, code, ['2026-04-13', null, '160000', null]);
    }
  });
  const { post } = await serviceOn(t, database);
  const { json } = await post('nickel', {
    filters: { codes: words.map((_, index) => `V-${index}`) },
    options: { currency: 'USD', includeSeries: true },
  });
  t.same(
    json.$metadata.warnings.map((each: Json) => each.detail.split(' ')[0]),
    ['V-0', 'V-1'],
  );
  for (const { series } of json.data) t.equal(series[0].mid, 23418.64, 'as in the domain facts');
});

t.test('a payable is the same to the byte, whatever is asked', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  const ask = async (slug: string, options: object): Promise<string[]> => {
    const { app, key } = service;
    const answer = await app.inject({
      method: 'POST',
      url: `/v3/prices/${slug}`,
      headers: { 'x-api-key': key },
      payload: { filters: { priceTypes: ['Payable'] }, options },
    });
    t.equal(answer.statusCode, 200);
    return answer.body.slice(answer.body.indexOf('"data":')).split(/(?=\{"code":)/);
  };
  const conversion = new RegExp(
    ',"conversion":{"status":"not-applicable","reason":"payable",' +
      '"from":{"currency":null,"unitOfMeasure":"Percent"},"to":{[^}]*},' +
      '"unitFactor":null,"source":null,"rounding":null}',
    'g',
  );
  let compared = 0;
  for (const { slug } of SPECIFIED) {
    for (const more of [
      {},
      { aggregate: { period: 'month', method: 'average' } },
      { aggregate: { period: 'week', method: 'max' } },
    ]) {
      const base = { includeSeries: true, includeSummary: true, ...more };
      const plain = await ask(slug, base);
      for (const options of [
        { currency: 'EUR', unitOfMeasure: 'lb' },
        { currency: 'KRW', decimals: 0, onUnconvertible: 'error' },
        { unitOfMeasure: 't', decimals: 1, onUnconvertible: 'omit' },
        { unitOfMeasure: '%' },
      ]) {
        const converted = await ask(slug, { ...base, ...options });
        t.same(
          converted.map((each) => each.replace(conversion, '')).join(''),
          plain.join(''),
          `${slug} ${JSON.stringify(options)}`,
        );
        compared += plain.length - 1;
      }
    }
  }
  t.ok(compared > 200, `${compared} records`);
});

/** A price in CNY, of which some days have no rate within seven days. */
let rated: Service;
t.before(async () => {
  const database = await testDatabase(t, { seeded: true });
  await commit(database.pool, async (client) => {
    await putRates(client, 'ECB', 'USD', { '2020-01-10': '1.1', '2020-01-20': '1.2' });
    await putRates(client, 'ECB', 'CNY', { '2020-01-10': '7.7' });
    await addPrice(client, { code: 'P-1', currency: 'CNY', unit: 'tonne' });
    const days = ['2020-01-09', '2020-01-10', '2020-01-17', '2020-01-18', '2020-01-20'];
    for (const date of days) await putPoints(client, 'P-1', [date, '70', '77', '84']);
  });
  rated = await serviceOn(t, database);
});

t.test('a point without a rate within seven days is null, and its record partial', async (t) => {
  const recordOf = async (filters: object, options: object): Promise<Json> => {
    const { text } = await rated.post('nickel', {
      filters: { codes: ['P-1'], ...filters },
      options: { currency: 'USD', includeSeries: true, ...options },
    });
    return parseExact(text).data[0];
  };
  const whole = await recordOf({}, {});
  t.match(whole.conversion, { status: 'partial', reason: 'no-rate', source: 'ECB' });
  t.equal(whole.currency.iso, 'USD');
  t.same(
    whole.series.map(({ low, mid, high, fx }: Json) => [low, mid, high, fx?.date]),
    [
      [null, null, null, undefined],
      ['10', '11', '12', '2020-01-10'],
      ['10', '11', '12', '2020-01-10'],
      [null, null, null, undefined],
      [null, null, null, undefined],
    ],
    'never a later rate, never one older than seven days, never legs of two days',
  );
  const within = await recordOf({ dateFrom: '2020-01-10', dateTo: '2020-01-17' }, {});
  t.match(within.conversion, { status: 'converted', reason: null }, 'of what the range holds');
  const monthly = { aggregate: { period: 'month', method: 'average' } };
  const averaged = await recordOf({}, monthly);
  t.match(averaged.conversion, { status: 'partial' });
  t.match(averaged.series, [
    { low: '10', mid: '11', high: '12', observations: '2', observationsLeftOut: '3' },
  ]);
  t.notOk('conversionReason' in averaged.series[0]);
  const summary = { includeSeries: false, includeSummary: true };
  const bad = await recordOf({}, summary);
  t.match(bad, { conversion: { status: 'partial' }, summary: { latest: { mid: null } } });
  const good = await recordOf({ dateTo: '2020-01-17' }, summary);
  t.match(good.conversion, { status: 'converted' }, 'no figure of it needs the day without a rate');
  t.match(good.summary.changes, {
    previous: { absolute: '0', percent: '0' },
    week: { percent: '0' },
  });
});

t.test('a reason belongs to the point that it explains, in JSON and in CSV', async (t) => {
  const body = { filters: { codes: ['P-1'] }, options: { currency: 'USD', includeSeries: true } };
  const { json } = await rated.post('nickel', body);
  t.same(
    json.data[0].series.map((each: Json) => each.conversionReason),
    ['no-rate', undefined, undefined, 'no-rate', 'no-rate'],
  );
  const { body: csv } = await rated.app.inject({
    method: 'POST',
    url: '/v3/prices/nickel',
    headers: { 'x-api-key': rated.key, accept: 'text/csv' },
    payload: body,
  });
  t.same(
    csvRecords(csv).map((row) => [row['mid'], row['conversionStatus'], row['conversionReason']]),
    [
      ['', 'partial', 'no-rate'],
      ['11', 'partial', ''],
      ['11', 'partial', ''],
      ['', 'partial', 'no-rate'],
      ['', 'partial', 'no-rate'],
    ],
    'in CSV',
  );
});
