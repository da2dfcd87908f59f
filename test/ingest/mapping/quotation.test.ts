import t from 'tap';
import { loadingDatabase, loadText, seriesOf } from '../support/loading.ts';
import { num, sheetOf } from '../support/sheets.ts';
import { loadTable, placesOf } from './support.ts';

const described = (code: string, currency: string | null, unit: string) =>
  JSON.stringify({
    price: {
      code,
      market: 'copper',
      name: `Price ${code}`,
      product: 'Copper cathode, grade A',
      priceCategory: 'Spot',
      priceType: currency === null ? 'Payable' : 'Price',
      frequency: 'Weekly',
      currency,
      unitOfMeasure: unit,
    },
  });

/** A database with a price in US dollars per pound, one in pounds per tonne, and a payable. */
async function pricedDatabase(test: Parameters<typeof loadingDatabase>[0]) {
  const database = await loadingDatabase(test);
  const lines = [
    described('LB', 'USD', 'lb'),
    described('T', 'GBP', 't'),
    described('PAY', null, 'Percent'),
  ];
  await loadText(test, database.client, 'ndjson', lines.join('\n'));
  return database;
}

const mappingOf = (code: string, published: string) => `
code: { constant: ${code} }
date: { column: Date }
mid: Price
published: ${published}
`;
const rows = (...values: string[]) =>
  ['Date,Price', ...values.map((value, index) => `2026-01-${index + 10},"${value}"`)].join('\n');

const mids = async (pool: Parameters<typeof seriesOf>[0], code: string) =>
  (await seriesOf(pool, code)).map(([, , mid]) => mid);

t.test('hundredths become the currency of the price, exactly', async (t) => {
  const { client, pool } = await pricedDatabase(t);
  const cents = mappingOf('LB', '{ currency: USc, unit: pound }');
  const report = await loadTable(t, client, cents, rows('348.34', '5.79', '22.00', '0.0000000001'));
  t.strictSame(placesOf(report), [[5, 'Price', '0.000000000001', 'too_precise']]);
  const loaded = await loadTable(t, client, cents, rows('348.34', '5.79', '22.00', '-1'));
  t.match(loaded, { status: 'applied', counts: { rows: 4 } });
  t.strictSame(await mids(pool, 'LB'), ['3.4834', '0.0579', '0.22', '-0.01']);
  const pence = mappingOf('T', '{ currency: GBp, unit: t }');
  t.match(await loadTable(t, client, pence, rows('12.5')), { status: 'applied' });
  t.strictSame(await mids(pool, 'T'), ['0.125']);
});

t.test('another currency or unit than that of the price is refused, naming both', async (t) => {
  const { client, pool } = await pricedDatabase(t);
  const cases: [string, string, string, RegExp][] = [
    ['T', '{ currency: USc, unit: t }', 'currency_mismatch', /T is in GBP per Tonne, .* USc per t/],
    [
      'LB',
      '{ currency: USD, unit: t }',
      'unit_mismatch',
      /LB is in USD per Pound, .* USD per t; units are/,
    ],
    ['LB', '{ unit: kg }', 'unit_mismatch', /the file states kg/],
    ['LB', '{ unit: stone }', 'unknown_unit', /There is no such unit/],
    ['PAY', '{ currency: USD }', 'currency_mismatch', /PAY is in Percent/],
    ['LB', '{ unit: "%" }', 'unit_mismatch', /LB is in USD per Pound/],
  ];
  for (const [code, published, error, message] of cases) {
    const report = await loadTable(t, client, mappingOf(code, published), rows('1'));
    t.match(report, { status: 'refused', errors: [{ line: 2, code: error, message }] }, published);
  }
  t.strictSame(await mids(pool, 'LB'), []);
  const fresh = `${mappingOf('NEW', '{ currency: EUR, unit: kg }')}
prices:
  - ${described('NEW', 'USD', 'lb').replace('{"price":', '').replace(/}$/, '')}
`;
  t.match(await loadTable(t, client, fresh, rows('1')), {
    status: 'refused',
    errors: [{ code: 'currency_mismatch' }, { code: 'unit_mismatch' }],
  });
  const right = fresh.replace('EUR, unit: kg', 'USD, unit: Pound');
  t.match(await loadTable(t, client, right, rows('1')), { status: 'applied' });
});

t.test('currency and unit may stand in columns, but a price has one of each', async (t) => {
  const { client, pool } = await pricedDatabase(t);
  const mapping = `
code: { column: Code }
date: { column: Date }
mid: Price
published:
  currency: { column: Cur, translate: { US cents: USc, pence: GBp, GBP: GBP } }
  unit: { column: Unit }
`;
  const table = (...lines: string[]) => ['Code,Date,Price,Cur,Unit', ...lines].join('\n');
  const good = table(
    'LB,2026-01-10,250,US cents,lb',
    'T,2026-01-10,90000,pence,t',
    'T,2026-01-11,901,GBP,tonne',
  );
  const report = await loadTable(t, client, mapping, good);
  t.strictSame(placesOf(report), [[4, null, 'GBP per tonne', 'conflicting']]);
  t.match(await loadTable(t, client, mapping, good.replace('tonne', 't')), { status: 'applied' });
  t.strictSame(await mids(pool, 'T'), ['900', '901']);
  const wrong = table(
    'LB,2026-02-10,1,dollars,lb',
    'LB,2026-02-11,1,,lb',
    'LB,2026-02-12,1,US cents,',
    'LB,2026-02-13,,what,ever',
  );
  t.strictSame(
    placesOf(await loadTable(t, client, mapping, wrong)).map(([line, column, , code]) => [
      line,
      column,
      code,
    ]),
    [
      [2, 'Cur', 'unit_mismatch'],
      [3, 'Cur', 'unit_mismatch'],
      [4, 'Unit', 'unit_mismatch'],
    ],
  );
});

t.test('percentages are read with their sign and from cells that show one', async (t) => {
  const { client, pool } = await pricedDatabase(t);
  const percent = mappingOf('PAY', '{ unit: "%" }');
  t.match(await loadTable(t, client, percent, rows('98.5%', '97 %', '96')), {
    status: 'applied',
    errors: [],
  });
  const workbook = sheetOf({
    A1: 'Date',
    B1: 'Price',
    A2: '2026-01-13',
    B2: num('0.98499999999999999', '0.0%'),
    A3: '2026-01-14',
    B3: num('97.25'),
  });
  t.match(await loadTable(t, client, percent, workbook), { status: 'applied', errors: [] });
  t.strictSame(await mids(pool, 'PAY'), ['98.5', '97', '96', '98.5', '97.25']);
  const plain = percent.replace(/published.*/, '');
  t.strictSame(placesOf(await loadTable(t, client, plain, rows('98.5%'))), [
    [2, 'Price', '98.5%', 'invalid_number'],
  ]);
});
