import t from 'tap';
import { describePrices, loadingDatabase, seriesOf } from '../support/loading.ts';
import { cell, formula, num, sheetOf, text } from '../support/sheets.ts';
import { loadTable, placesOf } from './support.ts';

const TABLE = `
code: { constant: A }
date: { column: Date, pattern: dd.MM.yyyy }
mid: Price
`;

/** A sheet with a header and cells from row 2 on. */
const below = (cells: Parameters<typeof sheetOf>[0], book = {}) =>
  sheetOf({ A1: 'Date', B1: 'Price', ...cells }, book);

t.test(
  'dates and numbers of a workbook are read as the spreadsheet program shows them',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    await describePrices(client, 'A');
    const workbook = below(
      {
        A2: num('45292', 'dd/mm/yyyy'),
        B2: num('0.30000000000000004'),
        A3: num('45293.999999999', 'yyyy\\-mm\\-dd hh:mm'),
        B3: num('1.6310000000000001E3', '#,##0.00'),
        A4: text('04.01.2024'),
        B4: text(' 12.5 '),
        A5: cell('d', '2024-01-05T00:00:00'),
        B5: formula('SUM(B2:B3)', '7'),
        A6: { ...num('45297', 'd.m.yy'), inner: '<f>A5+1</f><v>45297</v>' },
        B6: formula('IF(1,"","")', '', 'str'),
        A7: num('45298', 'mmm\\-yy'),
        B7: cell('s', '1'),
        A8: num('45299', 'd.m.yy'),
      },
      { shared: ['', '-0.25'] },
    );
    const loaded = await loadTable(t, client, TABLE, workbook);
    t.match(loaded, { status: 'applied', counts: { rows: 5 }, errors: [] });
    t.strictSame(
      (await seriesOf(pool, 'A')).map(([date, , mid]) => [date, mid]),
      [
        ['2024-01-01', '0.3'],
        ['2024-01-03', '1631'],
        ['2024-01-04', '12.5'],
        ['2024-01-05', '7'],
        ['2024-01-07', '-0.25'],
      ],
    );
  },
);

t.test('a cell that holds no number of its own is rejected by its name', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const cells = {
    B2: formula('C2*2'),
    B3: cell('e', '#N/A'),
    B4: formula('1/0', '#DIV/0!', 'e'),
    B5: cell('b', '1'),
    B6: num('45292', 'dd.mm.yyyy'),
    B7: num('0.5', 'h:mm'),
    B8: num('0.985', '0.0%'),
    B9: text('1,234.5'),
    B10: text('n/a'),
    B11: num('INF'),
    B12: cell('d', '2024-01-05'),
    B13: num('1e99'),
  };
  const dates = Object.fromEntries(
    Object.keys(cells).map((name, index) => [
      name.replace('B', 'A'),
      num(`${45_300 + index}`, 'd.m.yyyy'),
    ]),
  );
  const report = await loadTable(t, client, TABLE, below({ ...dates, ...cells }));
  t.strictSame(placesOf(report), [
    [2, 'Prices!B2', null, 'invalid_number'],
    [3, 'Prices!B3', '#N/A', 'invalid_number'],
    [4, 'Prices!B4', '#DIV/0!', 'invalid_number'],
    [5, 'Prices!B5', '1', 'invalid_number'],
    [6, 'Prices!B6', '45292', 'invalid_number'],
    [7, 'Prices!B7', '0.5', 'invalid_number'],
    [8, 'Prices!B8', '0.985', 'invalid_number'],
    [9, 'Prices!B9', '1,234.5', 'invalid_number'],
    [10, 'Prices!B10', 'n/a', 'invalid_number'],
    [11, 'Prices!B11', 'INF', 'invalid_number'],
    [12, 'Prices!B12', '2024-01-05', 'invalid_number'],
    [13, 'Prices!B13', '1e99', 'invalid_number'],
  ]);
  t.match(report.errors[0]?.message, /was never calculated/);
  t.equal(report.counts.rejected, 12);
});

t.test('a cell that holds no day is rejected by its name', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const dates = {
    A2: num('60', 'dd.mm.yyyy'),
    A3: num('0', 'dd.mm.yyyy'),
    A4: num('45292'),
    A5: num('0.5', 'h:mm'),
    A6: cell('b', '1'),
    A7: cell('e', '#REF!'),
    A8: formula('NOW()'),
    A9: text('1/2/2024'),
    A10: cell('d', '2024-02-30'),
    A11: num('9999999', 'dd.mm.yyyy'),
    A12: formula('A2+1', '45297'),
  };
  const prices = Object.fromEntries(
    [...Object.keys(dates), 'A13'].map((name) => [name.replace('A', 'B'), num('1')]),
  );
  const report = await loadTable(t, client, TABLE, below({ ...dates, ...prices }));
  t.strictSame(
    placesOf(report).map(([line, column, , code]) => [line, column, code]),
    [
      ...Object.keys(dates).map((name, index) => [index + 2, `Prices!${name}`, 'invalid_date']),
      [13, 'Prices!A13', 'missing_value'],
    ],
  );
  t.match(report.errors[0]?.message, /29 February 1900/);
});

t.test('a workbook that counts from 1904 is read so', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const cells = {
    A2: num('43830', 'dd.mm.yyyy'),
    B2: num('1'),
    A3: num('60', 'd/m/y'),
    B3: num('2'),
  };
  await loadTable(t, client, TABLE, below(cells, { is1904: true }));
  t.strictSame(
    (await seriesOf(pool, 'A')).map(([date]) => date),
    ['1904-03-01', '2024-01-01'],
  );
});

t.test(
  'months in date cells, percentages and publication times are read as declared',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    await describePrices(client, 'A');
    const mapping = `
rows: { header: 2 }
expect: [{ column: 2, row: 1, is: in USD }]
code: { constant: A }
date: { column: Month, period: month }
mid: Price
publishedAt: { column: Out, offset: "+08:00", time: "09:00" }
`;
    const cells = {
      B1: ' in  USD',
      A2: 'Month',
      B2: 'Price',
      C2: 'Out',
      A3: num('45292', 'mmm yyyy'),
      B3: num('1'),
      C3: num('45323', 'd.m.yyyy'),
      A4: num('45323', 'mmm yyyy'),
      B4: num('2'),
      C4: num('45352.5', 'd.m.yyyy h:mm'),
    };
    t.match(await loadTable(t, client, mapping, sheetOf(cells)), { status: 'applied' });
    const { rows } = await pool.query('select date, published_at from series order by date');
    t.strictSame(rows, [
      { date: '2024-01-31', published_at: '2024-02-01 01:00:00+00' },
      { date: '2024-02-29', published_at: '2024-03-01 04:00:00+00' },
    ]);
    const other = await loadTable(t, client, mapping, sheetOf({ ...cells, B1: 'in EUR' }));
    t.strictSame(placesOf(other), [[1, 'Prices!B1', 'in EUR', 'invalid_layout']]);
    const without = mapping.replace(', offset: "+08:00", time: "09:00"', '');
    const unplaced = await loadTable(t, client, without, sheetOf(cells));
    t.strictSame(
      placesOf(unplaced).map(([, column, , code]) => [column, code]),
      [
        ['Prices!C3', 'invalid_time'],
        ['Prices!C4', 'invalid_time'],
      ],
    );
  },
);
