import t from 'tap';
import { inRevision } from '../../support/database/minimal-data.ts';
import {
  errorsOf,
  fileOf,
  loadFile,
  loadingDatabase,
  loadText,
  seriesOf,
} from '../support/loading.ts';
import { n, pinkSheet, pinkSheetRows, workbookParts, zipOf } from '../support/workbook.ts';

const ROWS = [
  ['2019M11', n('1.5'), n('511.47000000000003'), '…', n('715.4'), n('1631')],
  ['2019M12', n('1.6'), n('7.0000000000000007E-2'), '...', '…', n('1.6310000000000001E3')],
  ['2020M02', '…', n('530'), n('31'), n('720.25'), n('0.1')],
];

t.test(
  'the monthly workbook becomes three prices, dated on the last day of each month',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    const report = await loadText(t, client, 'worldbank', pinkSheet({ rows: ROWS }));
    t.match(report, { status: 'applied', vintage: '2020-02-03', errorsTotal: 0 });
    t.match(report.counts, { rows: 8, inserted: 8, rejected: 0, pricesAdded: 3 });
    t.strictSame(await seriesOf(pool, 'CP-AL-9001'), [
      ['2019-11-30', null, '511.47', null, 0],
      ['2019-12-31', null, '0.07', null, 0],
      ['2020-02-29', null, '530', null, 0],
    ]);
    t.strictSame(await seriesOf(pool, 'CP-CU-9001'), [
      ['2019-11-30', null, '715.4', null, 0],
      ['2020-02-29', null, '720.25', null, 0],
    ]);
    t.strictSame(
      (await seriesOf(pool, 'CP-NI-9001')).map(([, , mid]) => mid),
      ['1631', '1631', '0.1'],
    );
  },
);

t.test(
  'its prices name their source, basis and licence, and refer to the reference data',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    await loadText(t, client, 'worldbank', pinkSheet({ rows: ROWS }));
    const { rows } = await pool.query(`
    select p.code, m.slug as market, p.price_type, c.iso, u.name as unit, i.name as incoterm,
      r.name as region, f.short_name as frequency, k.name as category, q.name as purity,
      p.country_id, p.assessment_launched_at, p.specification
    from price p join market m on m.id = p.market_id join currency c on c.id = p.currency_id
      join unit_of_measure u on u.id = p.unit_id join dimension_value i on i.id = p.incoterm_id
      join dimension_value r on r.id = p.region_id join dimension_value f on f.id = p.frequency_id
      join dimension_value k on k.id = p.price_category_id
      left join dimension_value q on q.id = p.purity_id
    order by p.code`);
    t.strictSame(
      rows.map((row) => [row.code, row.market, row.purity]),
      [
        ['CP-AL-9001', 'aluminium', null],
        ['CP-CU-9001', 'copper', null],
        ['CP-NI-9001', 'nickel', '99.8% Ni min'],
      ],
    );
    for (const row of rows) {
      t.match(row, {
        price_type: 'price',
        iso: 'USD',
        unit: 'Tonne',
        incoterm: 'In-warehouse',
        region: 'Global',
        frequency: 'M',
        category: 'Exchange',
        country_id: null,
        assessment_launched_at: '1960-01-31',
      });
      const specification = new Map(
        row.specification.map((entry: { name: string; value: string }) => [
          entry.name,
          entry.value,
        ]),
      );
      t.match(specification.get('source'), 'World Bank');
      t.equal(specification.get('licence'), 'CC BY 4.0');
    }
  },
);

t.test('its values are means of months, also of prices loaded before that was known', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await loadText(t, client, 'worldbank', pinkSheet({ rows: ROWS }));
  const stated = async () => {
    const { rows } = await pool.query('select observes from price order by code');
    return rows.map(({ observes }) => observes);
  };
  t.strictSame(await stated(), ['month-mean', 'month-mean', 'month-mean']);
  // Loaded by the version before; somebody stated the opposite of one price since.
  await inRevision(
    pool,
    'update price set observes = null',
    "update price set observes = 'day' where code = 'CP-CU-9001'",
  );
  const more = [...ROWS, ['2020M03', n('1'), n('530'), n('31'), n('720'), n('1')]];
  const report = await loadText(t, client, 'worldbank', pinkSheet({ rows: more }));
  t.match(report, { status: 'applied', counts: { pricesAdded: 0, pricesChanged: 2 } });
  t.strictSame(await stated(), ['month-mean', 'day', 'month-mean']);
  const again = [...more, ['2020M04', n('1'), n('530'), n('31'), n('720'), n('1')]];
  const next = await loadText(t, client, 'worldbank', pinkSheet({ rows: again }));
  t.match(next, { status: 'applied', counts: { pricesChanged: 0 } });
});

t.test('an average counts as published when its month is over, whatever the edition', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await loadText(t, client, 'worldbank', pinkSheet({ rows: ROWS }));
  const { rows } = await pool.query(
    'select distinct date, published_at from series order by date limit 2',
  );
  t.strictSame(rows, [
    { date: '2019-11-30', published_at: '2019-12-01 00:00:00+00' },
    { date: '2019-12-31', published_at: '2020-01-01 00:00:00+00' },
  ]);
});

t.test('an edited attribute survives a later edition', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await loadText(t, client, 'worldbank', pinkSheet({ rows: ROWS.slice(0, 1) }));
  await pool.query(`begin; select open_revision('edit');
    update price set name = 'Edited' where code = 'CP-AL-9001'; commit`);
  const updated = 'Updated on March 3, 2020';
  const report = await loadText(t, client, 'worldbank', pinkSheet({ updated, rows: ROWS }));
  t.match(report, { status: 'applied', vintage: '2020-03-03' });
  t.match(report.counts, { inserted: 5, unchanged: 3, pricesAdded: 0, pricesChanged: 0 });
  const { rows } = await pool.query(`select name from price where code = 'CP-AL-9001'`);
  t.equal(rows[0].name, 'Edited');
});

const names = [null, 'Tea', 'Aluminum', 'Copper', 'Nickel'];
const units = [null, '($/kg)', '($/mt)', '($/mt)', '($/mt)'];
const row = ['2020M01', n('1'), n('2'), n('3'), n('4')];
const WRONG_SHEETS = {
  'a unit of another size': [
    { names, units: [null, '($/kg)', '($/mt)', '(cents/lb)', '($/mt)'], rows: [row] },
    [[6, 'D Copper', 'unit_mismatch']],
  ],
  'no row of units': [{ names, units: row, rows: [] }, [[6, 'C Aluminum', 'unit_mismatch']]],
  'a column that is gone': [
    { names: [null, 'Tea', 'Aluminum', 'Copper'], units, rows: [row] },
    [[5, null, 'invalid_layout']],
  ],
  'a column that is there twice': [
    { names: [...names, 'Copper **'], units: [...units, '($/mt)'], rows: [row] },
    [[5, null, 'invalid_layout']],
  ],
  'no names at all': [
    { names: [null, 'Tea'], units, rows: [row] },
    [[null, null, 'invalid_layout']],
  ],
  'no edition': [
    { names, units, updated: 'Prices', rows: [row] },
    [[null, null, 'invalid_vintage']],
  ],
  'an edition that is no day': [
    { names, units, updated: 'Updated on Febuary 3, 2020', rows: [row] },
    [[4, 'A', 'invalid_vintage']],
  ],
  'an edition of the future': [
    { names, units, updated: 'Updated on June 2, 2199', rows: [row] },
    [[null, null, 'invalid_vintage']],
  ],
  'cells that are no numbers': [
    {
      names,
      units,
      rows: [
        ['2020M01', n('1'), { formula: 'B7*2', n: '5' }, 'n/a', null],
        ['2020M13', n('1'), n('2'), n('3'), n('4')],
        ['', n('1'), n('2')],
        ['2020M02', n('1'), n('1E400'), n('NaN'), '511,47'],
      ],
    },
    [
      [7, 'C Aluminum', 'invalid_number'],
      [7, 'D Copper', 'invalid_number'],
      [7, 'E Nickel', 'missing_value'],
      [8, 'A', 'invalid_date'],
      [9, 'A', 'missing_value'],
      [10, 'C Aluminum', 'invalid_number'],
      [10, 'D Copper', 'invalid_number'],
      [10, 'E Nickel', 'invalid_number'],
    ],
  ],
  'a month that is there twice': [
    { names, units, rows: [row, row] },
    [8, 8, 8].map((line) => [line, 'date', 'duplicate']),
  ],
} as const;

t.test('a sheet that is not as expected is refused with the reason and the place', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  for (const [what, [sheet, expected]] of Object.entries(WRONG_SHEETS)) {
    const report = await loadText(t, client, 'worldbank', pinkSheet(sheet));
    t.equal(report.status, 'refused', what);
    t.strictSame(errorsOf(report), expected, what);
  }
  const { rows } = await pool.query(
    'select (select count(*) from price) + (select count(*) from series) as n',
  );
  t.equal(rows[0].n, '0', 'nothing was stored by any of them');
});

t.test('a file that is no such workbook is refused, not a crash', async (t) => {
  const { client } = await loadingDatabase(t);
  const rows = pinkSheetRows({ rows: [['2020M01', null, n('1'), null, n('2'), n('3')]] });
  const parts = workbookParts(rows);
  const without = (name: string) => parts.filter((part) => part.name !== name);
  const replaced = (name: string, content: string) => [...without(name), { name, content }];
  const cases = {
    'an empty file': ['', 'invalid_layout'],
    text: ['code,date\n', 'invalid_layout'],
    'an archive of something else': [zipOf([{ name: 'a.txt', content: 'a' }]), 'invalid_layout'],
    'an empty archive': [zipOf([]), 'invalid_layout'],
    'a truncated archive': [zipOf(parts).subarray(0, 900), 'invalid_archive'],
    'another sheet': [zipOf(workbookParts(rows, 'Annual Prices')), 'invalid_layout'],
    'no sheet file': [zipOf(without('xl/worksheets/sheet1.xml')), 'invalid_archive'],
    'broken XML': [
      zipOf(replaced('xl/worksheets/sheet1.xml', '<worksheet><row')),
      'invalid_layout',
    ],
    entities: [
      zipOf(replaced('xl/workbook.xml', '<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>')),
      'invalid_layout',
    ],
    'a text that does not exist': [zipOf(without('xl/sharedStrings.xml')), 'invalid_archive'],
    'a wrong checksum': [
      zipOf(parts.map((part) => ({ ...part, claims: { crc: 1 } }))),
      'invalid_archive',
    ],
    'a wrong size': [
      zipOf(parts.map((part) => ({ ...part, claims: { size: 10 } }))),
      'invalid_archive',
    ],
    encryption: [
      zipOf(parts.map((part) => ({ ...part, claims: { flags: 1 } }))),
      'invalid_archive',
    ],
  } as const;
  for (const [what, [content, code]] of Object.entries(cases)) {
    const report = await loadText(t, client, 'worldbank', content);
    t.match(report, { status: 'refused', errorsTotal: 1, errors: [{ code }] }, what);
  }
});

t.test(
  'an archive that unpacks to far more than its size is refused in bounded memory',
  async (t) => {
    const { client } = await loadingDatabase(t);
    const bomb = Buffer.alloc(40_000_000, ' ');
    const parts = workbookParts([]).filter((part) => part.name !== 'xl/sharedStrings.xml');
    const file = zipOf([...parts, { name: 'xl/sharedStrings.xml', content: bomb }]);
    t.ok(file.length < 200_000, 'the file itself is small');
    const path = await fileOf(t, file);
    const report = await loadFile(client, 'worldbank', path);
    t.match(report, { status: 'refused', errors: [{ code: 'invalid_archive' }] });
    const lying = zipOf([
      ...parts,
      { name: 'xl/sharedStrings.xml', content: bomb, claims: { size: 9 } },
    ]);
    t.match(await loadText(t, client, 'worldbank', lying), {
      status: 'refused',
      errors: [{ code: 'invalid_archive' }],
    });
  },
);
