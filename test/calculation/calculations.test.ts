import t from 'tap';
import { parseCsv } from '../support/prices/csv.ts';
import { commit, putPoints } from '../support/prices/sample-writes.ts';
import { calculate, calculationService, resultOf } from './support.ts';

const { service, database } = await calculationService(t);

const result = async (body: object) => resultOf(await calculate(service, body));
const input = async (members: object, anchor = '2026-06-24') =>
  (await result({ inputs: { price: members }, anchor })).inputs.price;

const NICKEL = 'CP-NI-9001';

t.test(
  'an average is over the sessions published in the period, both ends inclusive',
  async (t) => {
    const found = await input({ code: NICKEL, period: 'M-1' });
    t.match(found, {
      code: NICKEL,
      side: 'mid',
      period: 'M-1',
      from: '2026-05-01',
      to: '2026-05-31',
      statistic: 'average',
      value: 16250.17,
      exact: '97501/6',
      unit: 'USD/t',
      observations: 3,
      unitFactor: null,
      source: null,
      notUsed: [],
    });
    t.same(found.sessions[2], {
      ...{ date: '2026-05-18', published: 16350.5 },
      ...{ fx: null, vat: null, substituteFor: null },
    });
    const ends = await input({ code: NICKEL, period: '2026-05-04/2026-05-18' });
    t.equal(ends.observations, 3);
    const none = await input({ code: NICKEL, period: '2026-05-05/2026-05-17' });
    t.equal(none.observations, 1);
  },
);

t.test('statistics, sides and sessions before and after the anchor are as they say', async (t) => {
  const value = async (members: object, anchor?: string) =>
    (await input({ code: NICKEL, ...members }, anchor)).exact;
  t.equal(await value({ period: 'M-1', statistic: 'first' }), '16100');
  t.equal(await value({ period: 'M-1', statistic: 'last' }), '16350.5');
  t.equal(await value({ period: 'M-1', statistic: 'min', side: 'low' }), '16000');
  t.equal(await value({ period: 'M-1', statistic: 'max', side: 'high' }), '16450.5');
  t.equal(await value({ period: 'S' }, '2026-05-17'), '16300', 'the last on or before');
  t.equal(await value({ period: 'S' }, '2026-05-18'), '16350.5');
  t.equal(await value({ period: 'S-1' }, '2026-05-18'), '16300');
  t.equal(await value({ period: 'S+1' }, '2026-05-18'), '17100', 'the first after');
  t.equal(await value({ period: '2S+1' }, '2026-05-04'), '16325.25');
  t.equal(await value({ period: '2S' }, '2026-05-11'), '16200');
});

t.test('roundings within an input, and the middle of both rounded averages', async (t) => {
  const rounded = async (members: object) =>
    (await input({ code: NICKEL, period: 'M-1', ...members })).exact;
  t.equal(await rounded({ rounding: { average: 2 } }), '16250.17');
  t.equal(await rounded({ rounding: { average: 2, mode: 'down' } }), '16250.16');
  t.equal(await rounded({ rounding: { session: 0 } }), '16250');
  t.equal(await rounded({ rounding: { session: 0, mode: 'half-up' } }), '48751/3');
  const wide = await input({
    ...{ code: NICKEL, period: 'M-1' },
    ...{ method: 'mid-of-rounded-averages', rounding: { average: 2, mode: 'half-up' } },
  });
  t.match(wide, { exact: '16250.17', method: 'mid-of-rounded-averages' });
  t.match(wide.sessions[0], { published: 16100, low: 16000, high: 16200 });
});

t.test('each session is converted at its own day, and an average rate is an input', async (t) => {
  const copper = { code: 'CP-CU-9001', period: '2026-06' };
  const daily = await result({ inputs: { price: { ...copper, currency: 'CNY' } } });
  t.match(daily, { value: 1100, exact: '1100', unit: 'CNY/t' });
  t.match(daily.inputs.price.sessions[1], {
    date: '2026-06-02',
    published: 200,
    fx: { date: '2026-06-02', base: 'EUR', from: '1.25', to: '9.375' },
  });
  t.equal(daily.inputs.price.source, 'ECB');
  const mean = await result({
    formula: 'price * rate',
    inputs: { price: copper, rate: { rate: 'CNY/USD', period: '2026-06' } },
  });
  t.match(mean, { value: 1087.5, unit: 'CNY/t' });
  t.match(mean.inputs.rate, {
    rate: 'CNY/USD',
    exact: '7.25',
    unit: 'CNY/USD',
    observations: 2,
    source: 'ECB',
  });
});

t.test('a unit converts exactly, and an agreed factor is a number', async (t) => {
  const cobalt = { code: 'CP-CO-9001', side: 'high', period: '2019-11-08' };
  const exact = await result({ inputs: { price: { ...cobalt, unitOfMeasure: 't' } } });
  t.match(exact.inputs.price, {
    unit: 'USD/t',
    unitFactor: { multiply: '1000', divide: '0.45359237' },
  });
  const agreed = await result({
    formula: 'price * pounds',
    inputs: { price: cobalt, pounds: { value: '2204.62', unit: 'lb/t' } },
    result: { unit: 'USD/t', decimals: 2 },
  });
  t.equal(agreed.value, 36927.38);
});

t.test('a payable counts as hundredths', async (t) => {
  const found = await result({
    formula: 'payable * metal',
    inputs: {
      payable: { code: 'CP-CO-9002', period: '2019-11-08' },
      metal: { code: 'CP-CO-9001', side: 'low', period: '2019-11-08' },
    },
  });
  t.match(found, { value: 9.76, exact: '9.76', unit: 'USD/lb' });
  t.match(found.inputs.payable, { value: 0.61, unit: '1', sessions: [{ published: 61 }] });
});

t.test('a series has one result for each first day of a month, quarter or year', async (t) => {
  const series = async (every: string) => {
    const anchor = { from: '2026-02', to: '2026-07', every };
    const { json } = await calculate(service, { average: NICKEL, period: 'M-1', anchor });
    return json.data.map((each: { anchor: string; exact: string }) => [each.anchor, each.exact]);
  };
  t.same(await series('month'), [
    ['2026-02-01', null],
    ['2026-03-01', null],
    ['2026-04-01', '16200'],
    ['2026-05-01', null],
    ['2026-06-01', '97501/6'],
    ['2026-07-01', '17150'],
  ]);
  t.same(await series('quarter'), [
    ['2026-04-01', '16200'],
    ['2026-07-01', '17150'],
  ]);
});

t.test('short forms are shown as the formula that they stand for', async (t) => {
  const average = await result({ average: NICKEL, period: 'M-1', anchor: '2026-06-24' });
  t.match(average, { formula: 'price', value: 16250.17, steps: [] });
  const { rows } = await database.pool.query(
    `select p.code from price p join product on product.id = p.product_id
      where product.chemical_code = 'LiOH·H2O' and p.price_type = 'price'
        and p.unit_dimension = 'mass' order by p.code limit 1`,
  );
  const basis = await result({
    ...{ convertBasis: 'LCE', code: rows[0].code, period: 'S', anchor: '2026-06-24' },
  });
  t.equal(basis.formula, 'price * compound / atoms / perAtom');
  t.match(basis.inputs.compound, {
    exact: '41.962',
    note: 'g/mol of LiOH·H2O, IUPAC 2021 abridged standard atomic weights',
  });
  t.match(basis.inputs.perAtom, { exact: '36.944' });
});

t.test('nothing is final without a calendar, unless no price is read', async (t) => {
  const numbers = await result({
    formula: 'a * b',
    inputs: { a: { value: '2', unit: 'USD/t' }, b: { value: '3' } },
  });
  t.match(numbers, { status: 'final', reasons: [], value: 6, anchor: null });
  const rate = await result({ inputs: { r: { rate: 'CNY/USD', period: '2026-06-01' } } });
  t.match(rate, { status: 'final', reasons: [] }, 'a later rate is there');
  const later = await result({ inputs: { r: { rate: 'CNY/USD', period: '2026-06' } } });
  t.match(later, { status: 'provisional', reasons: [{ code: 'rates_not_published', input: 'r' }] });
  const past = await result({ average: NICKEL, period: '2026-05' });
  t.match(past, { status: 'unverified', reasons: [{ code: 'calendar_unknown', input: 'price' }] });
  const present = await result({ average: NICKEL, period: '2199' });
  t.match(present, { status: 'provisional', value: null });
  t.same(
    present.reasons.map(({ code }: { code: string }) => code),
    ['period_not_over', 'no_sessions', 'calendar_unknown'],
  );
  const next = await result({ average: NICKEL, period: '3S+1', anchor: '2026-06-01' });
  t.match(next, { status: 'provisional', value: 17200 });
  t.equal(next.reasons[0].code, 'sessions_not_published');
});

t.test('a value that cannot be computed is null, and its reasons name the days', async (t) => {
  const side = await result({ average: NICKEL, side: 'low', period: '2026-06' });
  t.match(side, { value: null, exact: null, steps: [], status: 'provisional' });
  t.match(side.reasons[0], { code: 'side_missing', detail: 'There is no low on 2026-06-08' });
  const rate = await result({ average: NICKEL, currency: 'CNY', period: '2026-05' });
  t.match(rate.reasons[0], { code: 'rate_missing', detail: /7 days before 2026-05-04, 2026/ });
  const before = await result({ average: NICKEL, period: '9S', anchor: '2026-06-01' });
  t.match(before, { value: null, reasons: [{ code: 'series_begins_later' }] });
});

const EXAMPLE = {
  formula: 'max(price, floor) * (1 - discount)',
  inputs: {
    price: { code: NICKEL, period: 'M-1' },
    floor: { value: '500', unit: 'USD/t' },
    discount: { value: '5', unit: '%', note: 'clause 7' },
  },
  anchor: { from: '2026-05', to: '2026-06', every: 'month' },
};

t.test('steps show each operation with its exact value and unit', async (t) => {
  const { json } = await calculate(service, { ...EXAMPLE, anchor: '2026-06-24' });
  t.same(json.data[0].steps, [
    { text: 'max(price, floor)', exact: '97501/6', unit: 'USD/t' },
    { text: '(1 - discount)', exact: '0.95', unit: '1' },
    { text: EXAMPLE.formula, exact: '1852519/120', unit: 'USD/t' },
  ]);
  const { receipt, ...short } = resultOf(
    await calculate(service, { ...EXAMPLE, anchor: '2026-06-24', options: { receipt: false } }),
  );
  t.notOk('inputs' in short || 'steps' in short);
  t.match(short, { value: 15437.66, formula: EXAMPLE.formula });
});

t.test('CSV has a row for each anchor, NDJSON a line, and numbers may be texts', async (t) => {
  const csv = await calculate(service, EXAMPLE, { accept: 'text/csv' });
  t.match(csv.headers, {
    'content-type': 'text/csv; charset=utf-8; header=present',
    'x-warnings': '[]',
    'content-disposition': /^attachment; filename="calculation-\d{4}-\d\d-\d\d\.csv"$/,
  });
  t.same(parseCsv(csv.text), [
    ...[['anchor', 'value', 'unit', 'status', 'price', 'price.observations', 'floor']].map(
      (names) => [...names, 'floor.observations', 'discount', 'discount.observations'],
    ),
    ['2026-05-01', '', 'USD/t', 'unverified', '', '0', '500', '', '0.05', ''],
    ['2026-06-01', '15437.66', 'USD/t', 'unverified', '16250.17', '3', '500', '', '0.05', ''],
  ]);
  const { json } = await calculate(service, EXAMPLE);
  const lines = await calculate(service, EXAMPLE, { accept: 'application/x-ndjson' });
  t.same(
    lines.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
    json.data,
  );
  const texts = await calculate(service, { ...EXAMPLE, options: { decimalsAsText: true } });
  t.equal(texts.json.data[1].value, '15437.66');
  t.equal(texts.json.data[1].inputs.price.sessions[0].published, '16100');
  const other = await calculate(service, EXAMPLE, { accept: 'application/vnd.apache.parquet' });
  t.equal(other.status, 406);
});

t.test('equal bytes have one ETag, and are a 304 for a client that has them', async (t) => {
  const first = await calculate(service, EXAMPLE);
  const etag = first.headers['etag'] ?? '';
  t.match(first.headers['cache-control'], 'private, no-cache');
  t.match((await calculate(service, EXAMPLE)).headers, { etag });
  const again = await calculate(service, EXAMPLE, { 'if-none-match': etag });
  t.match(again, { status: 304, text: '' });
  const csv = await calculate(service, EXAMPLE, { accept: 'text/csv', 'if-none-match': etag });
  t.equal(csv.status, 200);
});

t.test('the bytes at an old revision never change, whatever is loaded later', async (t) => {
  const before = await calculate(service, EXAMPLE);
  const { revision, asOf } = before.json.$metadata;
  await commit(database.pool, (client) =>
    putPoints(client, NICKEL, ['2026-05-18', '1', '2', '3'], ['2026-05-25', '1', '2', '3']),
  );
  const after = await calculate(service, EXAMPLE);
  t.not(after.json.$metadata.revision, revision);
  t.equal(after.json.data[1].inputs.price.observations, 4);
  for (const options of [{ revision }, { asOf }]) {
    const past = await calculate(service, { ...EXAMPLE, options });
    t.equal(past.text, before.text, JSON.stringify(options));
  }
  const nulls = { ...EXAMPLE, options: { revision: null, asOf: null } };
  t.equal((await calculate(service, nulls)).text, after.text, 'null is the newest');
});
