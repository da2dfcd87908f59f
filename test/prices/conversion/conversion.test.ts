import t from 'tap';
import { type TestDatabase, testDatabase } from '../../support/database/database.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import { parseExact } from '../../support/prices/oracle.ts';
import {
  addPrice,
  commit,
  type NewPoint,
  type NewPrice,
  putEcbRates,
  putPoints,
  putRates,
} from '../../support/prices/sample-writes.ts';

/** One point each, at one mid, on the Friday of the worked examples unless it says otherwise. */
const PRICES: readonly (NewPrice & { readonly mid: string; readonly date?: string })[] = [
  { code: 'W-USD-T', currency: 'USD', unit: 'tonne', mid: '16250' },
  { code: 'W-USD-LB', currency: 'USD', unit: 'pound', mid: '17.5' },
  { code: 'W-CNY-T', currency: 'CNY', unit: 'tonne', mid: '57500' },
  { code: 'W-SUNDAY', currency: 'CNY', unit: 'tonne', mid: '57500', date: '2019-11-10' },
  { code: 'W-PAYABLE', currency: null, unit: 'percent', mid: '73' },
  { code: 'W-KWH', currency: 'USD', unit: 'kilowatt-hour', mid: '61' },
  { code: 'W-MTU', currency: 'USD', unit: 'metric-ton-unit', mid: '4.7' },
  { code: 'W-DMT', currency: 'USD', unit: 'dry-metric-tonne', mid: '900' },
  { code: 'W-WMT', currency: 'USD', unit: 'wet-metric-tonne', mid: '800' },
  { code: 'W-PIECE', currency: 'USD', unit: 'piece', mid: '7' },
  { code: 'W-KRW', currency: 'KRW', unit: 'tonne', mid: '1000' },
];

let service: Service;
let pool: TestDatabase['pool'];
t.before(async () => {
  const database = await testDatabase(t, { seeded: true });
  pool = database.pool;
  await commit(database.pool, async (client) => {
    await putEcbRates(client);
    for (const { mid, date = '2019-11-08', ...price } of PRICES) {
      await addPrice(client, price);
      const point: NewPoint = [date, null, mid, null];
      await putPoints(client, price.code, point);
    }
  });
  service = await serviceOn(t, database);
});

// biome-ignore lint/suspicious/noExplicitAny: bodies were checked against OpenAPI.
type Json = any;

const ask = (codes: readonly string[], options: object) =>
  service.post('nickel', {
    filters: { codes },
    options: { includeSeries: true, onUnconvertible: 'keep', ...options },
  });

/** The record of one price, its numbers as the text that was sent. */
async function recordOf(code: string, options: object): Promise<Json> {
  const answer = await ask([code], options);
  t.equal(answer.status, 200, `${code} ${JSON.stringify(options)}`);
  return parseExact(answer.text).data[0];
}

const midOf = async (code: string, currency?: string, unitOfMeasure?: string, decimals?: number) =>
  (
    await recordOf(code, {
      ...(currency === undefined ? {} : { currency }),
      ...(unitOfMeasure === undefined ? {} : { unitOfMeasure }),
      ...(decimals === undefined ? {} : { decimals }),
    })
  ).series[0].mid;

t.test('the worked examples of the contract come out to the digit', async (t) => {
  t.equal(await midOf('W-USD-T', undefined, 'lb'), '7.37088');
  t.equal(await midOf('W-USD-LB', undefined, 't'), '38580.9');
  t.equal(await midOf('W-CNY-T', 'USD'), '8227.39');
  t.equal(await midOf('W-CNY-T', 'EUR', 'lb'), '3.38216');
  t.equal(await midOf('W-USD-LB', 'JPY', 'kg'), '4221.03');
  t.equal(await midOf('W-SUNDAY', 'USD'), '8227.39');
});

t.test(
  'a receipt names currency, unit, factor, source and rounding, and each point its rates',
  async (t) => {
    const { conversion, currency, unitOfMeasure, series } = await recordOf('W-SUNDAY', {
      currency: 'jpy',
      unitOfMeasure: 'pound',
    });
    t.same(conversion, {
      status: 'converted',
      reason: null,
      from: { currency: 'CNY', unitOfMeasure: 'Tonne' },
      to: { currency: 'JPY', unitOfMeasure: 'Pound' },
      unitFactor: { multiply: '0.45359237', divide: '1000' },
      source: 'ECB',
      rounding: 'half-even, 6 significant, at least 2 decimals',
    });
    t.same(
      [currency.iso, unitOfMeasure.symbol],
      ['JPY', 'lb'],
      'the currency and unit of the numbers',
    );
    t.equal(series[0].date, '2019-11-10');
    t.same(series[0].fx, { date: '2019-11-08', base: 'EUR', from: '7.7115', to: '120.72' });
    const toBase = await recordOf('W-USD-T', { currency: 'EUR' });
    t.same(toBase.series[0].fx, { date: '2019-11-08', base: 'EUR', from: '1.1034', to: '1' });
    t.same(toBase.conversion.unitFactor, { multiply: '1', divide: '1' });
  },
);

t.test('a unit alone takes no rate, and says so', async (t) => {
  const { conversion, currency, series } = await recordOf('W-USD-T', { unitOfMeasure: 'kg' });
  t.match(conversion, { status: 'converted', source: null, to: { currency: 'USD' } });
  t.equal(currency.iso, 'USD');
  t.notOk('fx' in series[0]);
});

t.test('only a currency makes an answer depend on rates', async (t) => {
  const revisionOf = async (options: object) => {
    const { json, headers } = await ask(['W-USD-T'], options);
    t.equal(headers['x-data-revision'], json.$metadata.revision);
    return json.$metadata.revision;
  };
  const plain = await revisionOf({});
  const converted = await revisionOf({ currency: 'EUR' });
  await commit(pool, (client) => putRates(client, 'ECB', 'INR', { '2019-11-08': '78.1' }));
  t.equal(await revisionOf({ unitOfMeasure: 'lb' }), plain);
  t.equal(await revisionOf({ includeSummary: true }), plain);
  t.not(await revisionOf({ currency: 'EUR' }), converted);
  const after = await revisionOf({ currency: 'EUR' });
  await commit(pool, (client) => putRates(client, 'FED', 'INR', { '2019-11-08': '71' }));
  await commit(pool, (client) => putRates(client, 'SAMPLE', 'INR', { '2019-11-08': '70' }));
  t.equal(await revisionOf({ currency: 'EUR' }), after, 'and no source but its own counts');
});

t.test('a price that is in the target already is untouched, whatever decimals', async (t) => {
  for (const options of [
    { currency: 'USD' },
    { unitOfMeasure: 'tonne' },
    { currency: 'usd', unitOfMeasure: 'T', decimals: 0 },
  ]) {
    const { conversion, series } = await recordOf('W-USD-T', options);
    t.match(conversion, { status: 'unchanged', reason: null, unitFactor: null, source: null });
    t.equal(series[0].mid, '16250');
  }
});

t.test('a unit goes by id, name or symbol, whatever the case', async (t) => {
  const { json } = await service.request({ method: 'GET', url: '/v3/reference/units' });
  const pound = json.data.find((each: Json) => each.symbol === 'lb');
  for (const name of [pound.id, pound.id.toUpperCase(), 'Pound', ' pOuNd ', 'lb', 'LB']) {
    t.equal(await midOf('W-USD-T', undefined, name), '7.37088', name);
  }
  t.equal(await midOf('W-USD-T', undefined, 'troy  ounce'), '0.505431');
  t.equal(await midOf('W-USD-T', undefined, 'oz t'), '0.505431');
});

t.test('decimals from 0 to 10 round once, half-even', async (t) => {
  const exact = ['7', '7.4', '7.37', '7.371', '7.3709', '7.37088', '7.370876', '7.370876'];
  for (const [decimals, wanted] of [...exact, '7.37087601', '7.370876012'].entries()) {
    t.equal(await midOf('W-USD-T', undefined, 'lb', decimals), wanted, `${decimals}`);
  }
  t.equal(await midOf('W-USD-T', undefined, 'lb', 10), '7.3708760125');
  const { conversion } = await recordOf('W-USD-T', { unitOfMeasure: 'lb', decimals: 3 });
  t.equal(conversion.rounding, 'half-even, 3 decimals');
});

t.test('units of other dimensions are refused, and the record stays as it is', async (t) => {
  for (const [code, unit] of [
    ['W-KWH', 't'],
    ['W-PIECE', 'kg'],
    ['W-MTU', 't'],
    ['W-DMT', 't'],
    ['W-DMT', 'wmt'],
    ['W-WMT', 'dmt'],
    ['W-USD-T', '%'],
    ['W-USD-T', 'kWh'],
    ['W-MTU', 'dmtu'],
  ] as const) {
    const plain = await recordOf(code, {});
    const { conversion, ...record } = await recordOf(code, {
      currency: 'EUR',
      unitOfMeasure: unit,
    });
    t.match(conversion, { status: 'refused', reason: 'incompatible-unit', source: null }, code);
    t.same(record, plain, `${code} in ${unit}`);
  }
  t.equal(await midOf('W-KWH', undefined, 'MWh'), '61000');
  t.equal(await midOf('W-MTU', undefined, 'ltu'), '4.77542');
});

t.test('a known currency without any rate is refused as such', async (t) => {
  const toWon = await recordOf('W-USD-T', { currency: 'KRW' });
  t.match(toWon.conversion, { status: 'refused', reason: 'no-rate' });
  t.same([toWon.currency.iso, toWon.series[0].mid], ['USD', '16250']);
  const fromWon = await recordOf('W-KRW', { currency: 'USD' });
  t.match(fromWon.conversion, { status: 'refused', reason: 'no-rate' });
});

t.test('onUnconvertible keeps, omits and counts, or refuses and names the codes', async (t) => {
  const codes = PRICES.map((each) => each.code);
  const options = { currency: 'EUR', unitOfMeasure: 'lb' };
  const kept = await ask(codes, options);
  const refused = kept.json.data
    .filter((each: Json) => each.conversion.status === 'refused')
    .map((each: Json) => each.code);
  t.same(refused, ['W-DMT', 'W-KRW', 'W-KWH', 'W-MTU', 'W-PIECE', 'W-WMT']);
  const won = { code: 'rates_missing', currency: 'KRW', lastDateWithRate: null };
  t.match(kept.json.$metadata.warnings, { length: 1, 0: won });
  const omitted = await ask(codes, { ...options, onUnconvertible: 'omit' });
  t.equal(omitted.json.$metadata.count, codes.length - refused.length);
  t.same(
    omitted.json.data.map((each: Json) => each.code),
    kept.json.data.map((each: Json) => each.code).filter((code: string) => !refused.includes(code)),
    'a payable is no refusal',
  );
  const [missing, ...others] = omitted.json.$metadata.warnings;
  t.match(missing, won);
  const units = refused.filter((code: string) => code !== 'W-KRW').join(', ');
  const reasons = `No exchange rate: W-KRW. Incompatible unit: ${units}`;
  t.same(others, [
    {
      code: 'unconvertible_omitted',
      pointer: '/options/onUnconvertible',
      detail: `6 left out, as they cannot be converted. ${reasons}`,
      suggestions: [],
    },
  ]);
  const error = await ask(codes, { ...options, onUnconvertible: 'error' });
  t.same([error.status, error.json.code], [400, 'unconvertible_records']);
  for (const code of refused) t.match(error.json.detail, code);
  const fine = await ask(['W-USD-T', 'W-PAYABLE'], { ...options, onUnconvertible: 'error' });
  t.equal(fine.status, 200);
});

t.test('an unknown currency or unit is a 400 that lists what there is', async (t) => {
  const options = { currency: 'XYZ', unitOfMeasure: 'stone' };
  const { status, json } = await ask(['W-USD-T'], options);
  t.same([status, json.code], [400, 'validation_failed']);
  const [currency, unit] = json.errors;
  t.match(currency, { pointer: '/options/currency', code: 'unknown_currency' });
  for (const iso of ['EUR', 'USD', 'CNY', 'JPY', 'KRW']) t.match(currency.detail, iso);
  t.match(unit, { pointer: '/options/unitOfMeasure', code: 'unknown_unit' });
  for (const name of ['Tonne (t)', 'Pound (lb)', 'Kilowatt hour (kWh)']) {
    t.ok(unit.detail.includes(name), name);
  }
  const american = await ask(['W-USD-T'], { unitOfMeasure: 'metric ton' });
  t.match(american.json.errors[0].detail, /did you mean Tonne[^?]*\? There are /);
});
