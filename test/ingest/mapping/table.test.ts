import t from 'tap';
import { describePrices, loadingDatabase, seriesOf } from '../support/loading.ts';
import { loadTable, placesOf } from './support.ts';

const LONG = `
text: { delimiter: semicolon }
code: { column: Code }
date: { column: Datum, pattern: dd.MM.yyyy }
low: Tief
mid: Mitte
high: Hoch
publishedAt: { column: Zeit, pattern: "dd.MM.yyyy HH:mm", offset: "+01:00" }
numbers: { decimal: comma, thousands: point, missing: ["", "k. A."] }
`;

t.test('a table with a code in each row is read in the notation of its country', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const text = [
    'Zeit;Hoch;Mitte;Tief;Datum;Code;Notiz',
    '09.01.2026 17:30;"1.300,5";1.234,5;k. A.;08.01.2026;A;"sagt ""ja"""',
    ';;-0,5;;09.01.2026; B ;',
    ';k. A.;;;10.01.2026;B;kein Wert',
    '',
  ].join('\r\n');
  const report = await loadTable(t, client, LONG, text);
  t.strictSame(placesOf(report), []);
  t.match(report, { status: 'applied', counts: { rows: 2, inserted: 2 } });
  t.strictSame(await seriesOf(pool, 'A'), [['2026-01-08', null, '1234.5', '1300.5', 0]]);
  t.strictSame(await seriesOf(pool, 'B'), [['2026-01-09', null, '-0.5', null, 0]]);
  const { rows } = await pool.query(`select published_at from series where date = '2026-01-08'`);
  t.strictSame(rows, [{ published_at: '2026-01-09 16:30:00+00' }]);
});

t.test('a table with columns for each price gives a point for each filled one', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const brief = `
date: { column: Month, pattern: MMM yyyy }
columns: { Alpha: A, Beta: B }
publishedAt: { time: "16:00", offset: Z, days: 1 }
`;
  const text = 'Month,Beta,Other,Alpha\nJan 2024,,x,1\nfeb 2024,2.5,,\nMar 2024,,,\n';
  const report = await loadTable(t, client, brief, text);
  t.match(report, { status: 'applied', counts: { rows: 2, inserted: 2 }, errors: [] });
  t.strictSame(await seriesOf(pool, 'A'), [['2024-01-31', null, '1', null, 0]]);
  t.strictSame(await seriesOf(pool, 'B'), [['2024-02-29', null, '2.5', null, 0]]);
  const { rows } = await pool.query('select published_at from series order by date');
  t.strictSame(
    rows.map(({ published_at }) => published_at),
    ['2024-02-01 16:00:00+00', '2024-03-01 16:00:00+00'],
  );
  const listed = `
rows: { header: 0 }
date: { column: A }
columns:
  - { code: A, low: B, mid: 3, high: D }
  - { code: B, mid: 5 }
`;
  const more = await loadTable(t, client, listed, '2024-04-01,1,2,3,-4\n2024-04-02,,5,,\n');
  t.match(more, { status: 'applied', counts: { inserted: 3 } });
  t.strictSame((await seriesOf(pool, 'A')).slice(1), [
    ['2024-04-01', '1', '2', '3', 0],
    ['2024-04-02', null, '5', null, 0],
  ]);
  t.strictSame((await seriesOf(pool, 'B')).slice(1), [['2024-04-01', null, '-4', null, 0]]);
});

t.test('a table with a date over each column gives a point for each cell', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const mapping = `
text: { delimiter: tab }
code: { column: Series, translate: { Alpha: A, Beta: B }, others: skip }
dateColumns: { first: 3, last: 2020 Q2, pattern: yyyy 'Q'Q }
`;
  const text =
    'Series\tUnit\t2019 Q4\t2020 Q1\t2020 Q2\tNotes\n' +
    'Alpha\t\t1\t2\t3\tx\nGamma\t\t9\t9\t9\t\nBeta\t\t\t\t4\t\n';
  const report = await loadTable(t, client, mapping, text);
  t.match(report, { status: 'applied', counts: { rows: 4, inserted: 4 }, errors: [] });
  t.strictSame(
    (await seriesOf(pool, 'A')).map(([date, , mid]) => [date, mid]),
    [
      ['2019-12-31', '1'],
      ['2020-03-31', '2'],
      ['2020-06-30', '3'],
    ],
  );
  t.strictSame(await seriesOf(pool, 'B'), [['2020-06-30', null, '4', null, 0]]);
});

t.test('constants, titles, units and a footer are read as the mapping says', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const mapping = `
text: { delimiter: pipe }
rows:
  header: 3
  stop: { column: Code, startsWith: "Source:" }
units: { Value: USD per tonne }
code: { column: Code }
date: { column: Date, pattern: [yyyy-MM-dd, d MMMM yyyy] }
mid: Value
publishedAt: { constant: 2026-02-01T00:00:00Z }
vintage: { constant: 2026-02-01 }
`;
  const text = `A title with a stray " mark | and more

Code|Date|Kind|Value
unit|unit|unit|USD per tonne
A|2026-01-01|Price|1
B|2 January 2026|Price|2

Source: somebody | with | more | fields | than | others
never|read`;
  const other = text.replace('USD per', 'EUR per');
  t.strictSame(placesOf(await loadTable(t, client, mapping, other)), [
    [4, 'Value', 'EUR per tonne', 'unit_mismatch'],
  ]);
  const report = await loadTable(t, client, mapping, text);
  t.match(report, { status: 'applied', vintage: '2026-02-01', counts: { rows: 2 }, errors: [] });
  t.strictSame(await seriesOf(pool, 'A'), [['2026-01-01', null, '1', null, 0]]);
  t.strictSame(await seriesOf(pool, 'B'), [['2026-01-02', null, '2', null, 0]]);
});

t.test('a header may be found by a name, without the signs of footnotes', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const mapping = `
rows: { header: { holds: Alpha, footnoteMark: "*" } }
date: { column: Date }
columns: { Alpha: A }
vintage: { startsWith: As of, pattern: "'As of 'd MMMM yyyy" }
`;
  const text = 'A title\n\n"as of 2 March 2026",\nDate,Alpha **\n2026-01-01,1\n';
  t.match(await loadTable(t, client, mapping, text), { status: 'applied', vintage: '2026-03-02' });
  t.strictSame(await seriesOf(pool, 'A'), [['2026-01-01', null, '1', null, 0]]);
  t.strictSame(placesOf(await loadTable(t, client, mapping, text.replace('2 M', '32 M'))), [
    [3, 'column 1', 'as of 32 March 2026', 'invalid_vintage'],
  ]);
  const nowhere = `${'\n'.repeat(50)}${text}`;
  for (const other of [text.replace('Alpha', 'Beta'), nowhere]) {
    t.strictSame(placesOf(await loadTable(t, client, mapping, other)), [
      [null, null, null, 'invalid_layout'],
    ]);
  }
});

t.test('a table of exchange rates names a currency over each column', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const mapping = `
rows: { header: 2 }
date: { column: Day }
rates: { source: CB, name: A central bank, base: EUR, first: 3 }
vintage: { newest: true }
numbers: { missing: [n/a] }
`;
  const text = 'Rates,,,\nDay,Note,USD,JPY\n2026-01-02,,1.1,n/a\n2026-01-05,,1.2,150\n';
  const report = await loadTable(t, client, mapping, text);
  t.match(report, { status: 'applied', vintage: '2026-01-05', counts: { inserted: 3 } });
  const { rows } = await pool.query({
    text: `select f.slug, b.iso, c.iso, r.date, r.rate from fx_rate r
      join fx_source f on f.slug = r.source join currency b on b.id = f.base_currency_id
      join currency c on c.id = r.currency_id order by r.date, c.iso`,
    rowMode: 'array',
  });
  t.strictSame(rows, [
    ['CB', 'EUR', 'USD', '2026-01-02', '1.1'],
    ['CB', 'EUR', 'JPY', '2026-01-05', '150'],
    ['CB', 'EUR', 'USD', '2026-01-05', '1.2'],
  ]);
  t.strictSame(placesOf(await loadTable(t, client, mapping, text.replace('USD', 'Dollar'))), [
    [2, null, 'Dollar', 'unknown_column'],
  ]);
  const beyond = text.replace('USD,JPY', 'USD,').replace('n/a', '');
  t.strictSame(placesOf(await loadTable(t, client, mapping, beyond)), [
    [4, null, null, 'wrong_column_count'],
  ]);
});

t.test('the edition may stand in a cell above the table, or in a column', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const mapping = `
text: { delimiter: semicolon }
rows: { header: 3 }
code: { constant: A }
date: { column: Date }
vintage: { cell: B2, pattern: "'Updated on 'MMMM dd, yyyy" }
mid: Price
`;
  const text = 'Prices;\n;Updated on January 09, 2026\nPrice;Date\n1;2026-01-08\n';
  t.match(await loadTable(t, client, mapping, text), {
    status: 'applied',
    vintage: '2026-01-09',
  });
  t.strictSame(await seriesOf(pool, 'A'), [['2026-01-08', null, '1', null, 0]]);
  t.strictSame(placesOf(await loadTable(t, client, mapping, text.replace('y 09', 'y 39'))), [
    [2, 'column 2', 'Updated on January 39, 2026', 'invalid_date'],
  ]);
  const column = `
code: { constant: A }
date: { column: Date }
mid: Price
vintage: { column: Edition }
`;
  const rows = (second: string) =>
    `Edition,Date,Price\n2026-02-01,2026-01-20,1\n${second},2026-01-21,2\n`;
  t.match(await loadTable(t, client, column, rows('2026-02-01')), {
    status: 'applied',
    vintage: '2026-02-01',
  });
  t.match(await loadTable(t, client, column, rows('2026-02-02')), {
    status: 'refused',
    errors: [{ line: 3, column: 'Edition', value: '2026-02-02', code: 'invalid_vintage' }],
  });
  t.match(
    await loadTable(t, client, column, rows('2026-02-01').replace('1\n', '1.0\n'), {
      vintage: '2026-02-05',
    }),
    {
      errors: [{ code: 'invalid_vintage' }],
    },
  );
});
