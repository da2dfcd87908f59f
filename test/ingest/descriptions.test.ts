import t from 'tap';
import { undoBatch } from './ledger/undo-support.ts';
import {
  CORRECTING,
  errorsOf,
  fixture,
  loadFile,
  loadingDatabase,
  loadText,
  pricesOf,
} from './support/loading.ts';

t.test('a description that says the same again changes nothing, in either format', async (t) => {
  const { client } = await loadingDatabase(t);
  await loadFile(client, 'csv', fixture('prices.csv'));
  const same = [
    '{"price": {"code": "xx-ni-1", "shortName": "Ni prem", "incoterm": "fca", "currency": "USD"}}',
    '{"price": {"code": "XX-NI-2", "currency": null, "purity": null}}',
  ];
  const report = await loadText(t, client, 'ndjson', same.join('\n'));
  t.match(report, { status: 'unchanged', counts: { pricesChanged: 0 } });
});

t.test('a description changes only with permission, and its past is kept', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await loadFile(client, 'csv', fixture('prices.csv'));
  const change = 'code,name,incoterm\nXX-NI-1,Nickel cathode,\n';
  const refused = await loadText(t, client, 'csv', change);
  t.strictSame(errorsOf(refused), [
    [2, 'name', 'correction_not_allowed'],
    [2, 'incoterm', 'correction_not_allowed'],
  ]);
  const report = await loadText(t, client, 'csv', change, CORRECTING);
  t.match(report, { status: 'applied', counts: { pricesChanged: 1, pricesAdded: 0 } });
  t.match(await pricesOf(pool), [
    { name: 'Nickel cathode', incoterm: null, short_name: 'Ni prem', purity: '99.8% Ni min' },
    {},
    {},
  ]);
  const { rows } = await pool.query('select name from price_history');
  t.strictSame(rows, [{ name: 'Nickel cathode, premium "full plate"' }]);
});

t.test('the country of included VAT is stated in either format, never for a payable', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const header =
    'code,market,name,product,priceCategory,priceType,frequency,currency,unitOfMeasure,vatCountry';
  const price = (code: string, country: string) =>
    `${code},nickel,Nickel,Nickel briquette,Spot,Price,Monthly,USD,tonne,${country}`;
  const payable = 'XX-V-3,nickel,Nickel,Nickel briquette,Spot,Payable,Monthly,,Percent,';
  const rows = [price('XX-V-1', 'cn'), price('XX-V-2', ''), payable];
  t.match(await loadText(t, client, 'csv', [header, ...rows].join('\n')), { status: 'applied' });
  const stated = async () => {
    const { rows } = await pool.query(
      "select vat_country from price where code like 'XX-V-%' order by code",
    );
    return rows.map((row) => row.vat_country);
  };
  t.strictSame(await stated(), ['CN', null, null]);
  const wrong = [price('XX-V-4', 'China'), payable.replace('V-3', 'V-5').concat('CN')];
  t.strictSame(errorsOf(await loadText(t, client, 'csv', [header, ...wrong].join('\n'))), [
    [2, 'vatCountry', 'unknown_value'],
    [3, 'vatCountry', 'invalid_price'],
  ]);
  const of = (code: string) => `{"price": {"code": "${code}", "vatCountry": "DE"}}`;
  t.strictSame(errorsOf(await loadText(t, client, 'ndjson', of('XX-V-3'), CORRECTING)), [
    [1, 'vatCountry', 'invalid_price'],
  ]);
  const changed = await loadText(t, client, 'ndjson', of('XX-V-1'), CORRECTING);
  t.match(changed, {
    status: 'applied',
    preview: { changedPrices: { shown: [{ before: 'CN', after: 'DE' }] } },
  });
  await undoBatch(client, changed.batch);
  t.strictSame(await stated(), ['CN', null, null], 'an undo brings the old one back');
});

t.test('what the values are is stated in either format, a day if nothing is', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const header =
    'code,market,name,product,priceCategory,priceType,frequency,currency,unitOfMeasure,observes';
  const price = (code: string, observes: string) =>
    `${code},nickel,Nickel,Nickel briquette,Spot,Price,Monthly,USD,tonne,${observes}`;
  const rows = [price('XX-O-1', 'month-mean'), price('XX-O-2', ''), price('XX-O-3', 'day')];
  t.match(await loadText(t, client, 'csv', [header, ...rows].join('\n')), { status: 'applied' });
  const stated = async () => {
    const { rows } = await pool.query(
      "select observes from price where code like 'XX-O-%' order by code",
    );
    return rows.map(({ observes }) => observes);
  };
  t.strictSame(await stated(), ['month-mean', 'day', 'day']);
  const wrong = await loadText(t, client, 'csv', [header, price('XX-O-4', 'month')].join('\n'));
  t.strictSame(errorsOf(wrong), [[2, 'observes', 'unknown_value']]);
  const change = '{"price": {"code": "XX-O-2", "observes": "year-mean"}}';
  t.strictSame(errorsOf(await loadText(t, client, 'ndjson', change)), [
    [1, 'observes', 'correction_not_allowed'],
  ]);
  const changed = await loadText(t, client, 'ndjson', change, CORRECTING);
  t.match(changed, {
    status: 'applied',
    preview: { changedPrices: { shown: [{ before: 'day', after: 'year-mean' }] } },
  });
  t.strictSame(await stated(), ['month-mean', 'year-mean', 'day']);
  await undoBatch(client, changed.batch);
  t.strictSame(await stated(), ['month-mean', 'day', 'day'], 'an undo brings the old one back');
});

t.test(
  'market, type, currency and unit of a price never change, not even with permission',
  async (t) => {
    const { client } = await loadingDatabase(t);
    await loadFile(client, 'csv', fixture('prices.csv'));
    const text = 'code,priceType,currency,unitOfMeasure\nXX-NI-1,Payable,EUR,lb\n';
    t.strictSame(errorsOf(await loadText(t, client, 'csv', text, CORRECTING)), [
      [2, 'priceType', 'immutable'],
      [2, 'currency', 'immutable'],
      [2, 'unitOfMeasure', 'immutable'],
    ]);
  },
);

t.test(
  'names that do not exist are refused with the nearest ones, so that a typo adds nothing',
  async (t) => {
    const { client } = await loadingDatabase(t);
    const header =
      'code,market,name,product,priceCategory,priceType,frequency,currency,unitOfMeasure' +
      ',incoterm,purity';
    const load = (row: string) => loadText(t, client, 'csv', `${header}\n${row}\n`);
    const typos = await load(
      'Z-1,nickel,Z,Nickle briquette,Spott,Price,Weekley,USD,tonn,CIFF,99.8% Ni mn',
    );
    t.strictSame(
      typos.errors.map(({ column, code, message }) => [column, code, message]),
      [
        [
          'product',
          'unknown_product',
          'There is no such product; did you mean "Nickel briquette"?',
        ],
        ['priceCategory', 'unknown_value', 'There is no such priceCategory; did you mean "Spot"?'],
        ['frequency', 'unknown_value', 'There is no such frequency; did you mean "Weekly"?'],
        ['unitOfMeasure', 'unknown_unit', typos.errors[3]?.message],
        ['purity', 'unknown_value', typos.errors[4]?.message],
        [
          'incoterm',
          'unknown_value',
          'There is no such incoterm; did you mean "CIF" or "CFR" or "CIP"?',
        ],
      ],
    );
    t.match(typos.errors[3]?.message, 'did you mean "Tonne"');
    t.match(typos.errors[4]?.message, 'did you mean "99.8% Ni min"');
    const cases = {
      'Z-1,nickle,Z,Nickel briquette,Spot,Price,Weekly,USD,t,,': ['market', 'unknown_market'],
      'Z-1,,Z,Nickel briquette,Spot,Price,Weekly,USD,t,,': ['market', 'missing_value'],
      'Z-1,nickel,,Nickel briquette,Spot,Price,Weekly,USD,t,,': ['name', 'missing_value'],
      'Z-1,nickel,Z,Bauxite,Spot,Price,Weekly,USD,t,,': ['product', 'unknown_product'],
      'Z-1,nickel,Z,Nickel briquette,Spot,Fee,Weekly,USD,t,,': ['priceType', 'unknown_value'],
      'Z-1,nickel,Z,Nickel briquette,Spot,Price,Weekly,XAX,t,,': ['currency', 'unknown_currency'],
      'Z-1,nickel,Z,Nickel briquette,Spot,Price,Weekly,,t,,': ['currency', 'invalid_price'],
      'Z-1,nickel,Z,Nickel briquette,Spot,Price,Weekly,USD,%,,': ['unitOfMeasure', 'invalid_price'],
      'Z-1,nickel,Z,Nickel briquette,Spot,Payable,Weekly,USD,%,,': ['currency', 'invalid_price'],
      'Z-1,nickel,Z,Nickel briquette,Spot,Payable,Weekly,,t,,': ['unitOfMeasure', 'invalid_price'],
      'Z-1,aluminium,Z,Bauxite,Spot,Price,Weekly,USD,t,,99.8% Ni min': [
        'purity',
        'unsupported_field',
      ],
      'Z\u00fc,nickel,Z,Nickel briquette,Spot,Price,Weekly,USD,t,,': ['code', 'invalid_code'],
    };
    for (const [row, [column, code]] of Object.entries(cases)) {
      t.strictSame(errorsOf(await load(row)), [[2, column, code]], row);
    }
  },
);

t.test('a market that does not exist hides nothing else that is wrong with its row', async (t) => {
  const { client } = await loadingDatabase(t);
  const header =
    'code,market,name,product,priceCategory,priceType,frequency,currency,unitOfMeasure,purity';
  const load = (row: string) => loadText(t, client, 'csv', `${header}\n${row}\n`);
  t.strictSame(errorsOf(await load('Z-1,nickle,,,Spott,Price,Weekley,XAX,tonn,99.8%')), [
    [2, 'market', 'unknown_market'],
    [2, 'name', 'missing_value'],
    [2, 'product', 'missing_value'],
    [2, 'priceCategory', 'unknown_value'],
    [2, 'frequency', 'unknown_value'],
    [2, 'currency', 'unknown_currency'],
    [2, 'unitOfMeasure', 'unknown_unit'],
    [2, 'purity', 'unknown_value'],
  ]);
  const payable = await load('Z-1,nickle,Z,Anything,Spot,Payable,Weekly,USD,t,');
  t.strictSame(errorsOf(payable), [
    [2, 'market', 'unknown_market'],
    [2, 'currency', 'invalid_price'],
    [2, 'unitOfMeasure', 'invalid_price'],
  ]);
  const changed = 'code,name,frequency\nZ-9,A name,Weekley\n';
  t.strictSame(
    errorsOf(await loadText(t, client, 'csv', changed)),
    [
      [2, 'market', 'missing_value'],
      [2, 'frequency', 'unknown_value'],
    ],
    'members that may be missing are not reported',
  );
});

t.test('one file may repeat a description, but not contradict it', async (t) => {
  const { client } = await loadingDatabase(t);
  const header =
    'code,date,mid,market,name,product,priceCategory,priceType,frequency,currency,unitOfMeasure';
  const row = (date: string, name: string) =>
    `Z-1,${date},1,nickel,${name},Nickel briquette,Spot,Price,Weekly,USD,t`;
  const contradicting = [header, row('2026-01-01', 'A'), row('2026-01-08', 'B'), ''].join('\n');
  t.strictSame(errorsOf(await loadText(t, client, 'csv', contradicting)), [
    [3, 'name', 'conflicting'],
  ]);
  const repeating = [header, row('2026-01-01', 'A'), row('2026-01-08', 'A'), ''].join('\n');
  t.match(await loadText(t, client, 'csv', repeating), {
    status: 'applied',
    counts: { rows: 2, inserted: 2, pricesAdded: 1 },
  });
});
