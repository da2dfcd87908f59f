import t from 'tap';
import { describePrices, loadingDatabase, seriesOf } from '../support/loading.ts';
import { loadTable, placesOf } from './support.ts';

const TABLE = `
code: { column: Code }
date: { column: Date }
mid: Price
`;

t.test('text is read in its declared encoding, and bytes that it lacks are refused', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const mapping = (encoding: string) => `
text: { encoding: ${encoding} }
code: { column: Größe, translate: { "€uro": A } }
date: { column: Date }
mid: Price
`;
  const text = (day: number) => `Größe,Date,Price\n€uro,2026-01-${day},${day}\n`;
  const windows = (day: number) => Buffer.from(text(day).replace('€', '\x80'), 'latin1');
  const little = (day: number) => Buffer.from(`\ufeff${text(day)}`, 'utf16le');
  const right: [string, Buffer][] = [
    ['utf-8', Buffer.from(`\ufeff${text(10)}`)],
    ['windows-1252', windows(11)],
    ['utf-16', little(12)],
    ['utf-16', little(13).swap16()],
    ['utf-16le', little(14).subarray(2)],
    ['utf-16be', little(15).swap16().subarray(2)],
    ['latin1', Buffer.from(text(16).replace('€', 'E'), 'latin1')],
  ];
  for (const [encoding, bytes] of right) {
    const own = mapping(encoding).replace(
      ...((encoding === 'latin1' ? ['€', 'E'] : ['', '']) as [string, string]),
    );
    const report = await loadTable(t, client, own, bytes);
    t.match(report, { status: 'applied', errors: [] }, encoding);
  }
  t.equal((await seriesOf(pool, 'A')).length, right.length);
  const wrong: [string, Buffer, number][] = [
    ['utf-8', windows(20), 1],
    ['utf-8', little(20), 1],
    ['utf-16', Buffer.from(text(20)), 1],
    ['utf-16be', little(20), 1],
    ['utf-16le', little(20).subarray(0, -1), 2],
    ['utf-16le', Buffer.concat([little(20), Buffer.from([0, 0xd8, 65, 0])]), 1],
    ['latin1', windows(20), 2],
    ['windows-1252', Buffer.from(`${text(20)}A\x81`, 'latin1'), 3],
  ];
  for (const [encoding, bytes, line] of wrong) {
    const report = await loadTable(t, client, mapping(encoding), bytes);
    t.match(report, { status: 'refused', errors: [{ code: 'invalid_encoding', line }] }, encoding);
  }
});

t.test('fields are separated as declared, and quotation marks are parsed strictly', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const cases: Record<string, string> = {
    'delimiter: tab': 'Code\tDate\tPrice\nA\t2026-01-10\t"1"\n',
    'delimiter: pipe': 'Code|Date|Price\n"A"|2026-01-11|1\n',
    'delimiter: spaces': '  Code \t Date   Price\n A  2026-01-12\t1\n',
    'delimiter: semicolon': 'Code;Date;Price;Note\nA;2026-01-13;1;"say ""x"\n',
    'delimiter: comma': 'Code,Date,Price,Note\r\nA,2026-01-14,1,"two\r\nlines, ""quoted"""\r\n',
  };
  for (const [text, content] of Object.entries(cases)) {
    const report = await loadTable(t, client, `text: { ${text} }\n${TABLE}`, content);
    t.match(report, { status: 'applied', counts: { rows: 1 }, errors: [] }, text);
  }
  t.equal((await seriesOf(pool, 'A')).length, 5);
  const spoiled = `Code,Date,Price\nA,2026-01-20,1 "x"\n"A"x,2026-01-21,1\nA,2026-01-22,1\n`;
  t.strictSame(placesOf(await loadTable(t, client, TABLE, spoiled)), [
    [2, null, 'A,2026-01-20,1 "x"', 'invalid_quote'],
    [3, null, '"A"x,2026-01-21,1', 'invalid_quote'],
  ]);
  t.strictSame(placesOf(await loadTable(t, client, TABLE, 'Code,Date,Price\nA,"2026\n')), [
    [2, null, null, 'invalid_quote'],
  ]);
  t.strictSame(placesOf(await loadTable(t, client, TABLE, 'Code,"Da"te,Price\nA,1,1\n')), [
    [1, null, 'Code,"Da"te,Price', 'invalid_quote'],
  ]);
  const semicolons = await loadTable(t, client, TABLE, '"Code";"Date";"Price"\n"A";"x";"1"\n');
  const hint = /by semicolons; set this in the mapping, text: { delimiter: semicolon }$/;
  t.match(semicolons.errors, [{ line: 1, code: 'invalid_quote', message: hint }]);
});

t.test('a table without the columns of its mapping is refused with the nearest name', async (t) => {
  const { client } = await loadingDatabase(t);
  const header = (names: string) => `${names}\nA,2026-01-10,1\n`;
  const cases: [string, string, RegExp][] = [
    [TABLE, header('Code,Date,Prise'), /no column of this name; did you mean "Prise"/],
    [TABLE, header('Price,Date,Price'), /no column of this name/],
    [
      TABLE.replace('mid: Price', 'mid: Date'),
      header('Code,Date,Date'),
      /two columns of this name/,
    ],
    [TABLE.replace('mid: Price', 'mid: 4'), header('Code,Date,Price'), /the table has 3/],
    [TABLE, header('Code;Date;Price'), /by semicolons; .* text: \{ delimiter: semicolon \}$/],
    [TABLE, header('Code\tDate\tPrice'), /by tabs; .* text: \{ delimiter: tab \}$/],
    [`text: { delimiter: pipe }\n${TABLE}`, header('Code,Date,Price'), /\{ delimiter: comma \}$/],
    [
      'code: { constant: A }\ndate: { column: 1 }\nmid: 2\n',
      header('Date;Price'),
      /\{ delimiter: semicolon \}$/,
    ],
    [TABLE, header('Prices; monthly'), /no column of this name$/],
    [`rows: { header: 3 }\n${TABLE}`, header('Code,Date,Price'), /The header line is empty/],
    [
      `rows: { header: 0 }\n${TABLE}`
        .replaceAll('Code', 'A')
        .replaceAll('Date', 'B')
        .replaceAll('Price', 'D'),
      'A,2026-01-10,1\n',
      /the table has 3/,
    ],
  ];
  for (const [mapping, text, message] of cases) {
    const report = await loadTable(t, client, mapping, text);
    t.match(report, { status: 'refused', errors: [{ code: 'missing_column', message }] });
    t.equal(report.errorsTotal, 1);
  }
  t.match(await loadTable(t, client, TABLE, 'Code,Date,Price\n'), {
    errors: [{ code: 'empty_file' }],
  });
  t.match(await loadTable(t, client, TABLE, ''), { errors: [{ code: 'missing_column' }] });
  const dated = 'code: { column: Code }\ndateColumns: { first: 2, pattern: yyyy }\n';
  t.strictSame(placesOf(await loadTable(t, client, dated, 'Code,2024,Note\nA,1,2\n')), [
    [1, 'Note', 'Note', 'invalid_date'],
  ]);
  t.match(await loadTable(t, client, dated, 'Code,,\nA,1,2\n'), {
    errors: [{ code: 'missing_column', line: 1 }],
  });
});

t.test(
  'each wrong row is named with its line, column and value, and nothing is stored',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    await describePrices(client, 'A');
    const mapping = `
code: { column: Code, translate: { Alpha: A } }
date: { column: Date, pattern: dd/MM/yyyy }
low: Low
mid: Mid
high: High
publishedAt: { column: Out }
`;
    const text = `Code,Date,Low,Mid,High,Out
Alpha,10/01/2026,1,2,3
Alpha,2026-01-10,1,2,3,
Alpha,31/02/2026,1,2,3,
Alpha,11/01/2026,"1,5",2,3,
Alpha,12/01/2026,1,2,~,
Alpha,13/01/2026,1,,3,
Alpha,14/01/2026,3,2,1,
Alfa,15/01/2026,1,2,3,
,16/01/2026,1,2,3,
Alpha,17/01/2026,1,2,3,yesterday
Alpha,18/01/2026,1,2.12345678901,3,
Alpha,01/01/1799,1,2,3,
Alpha,19/01/2026,1,2,3,2026-01-19T16:00:00+01:00
Alpha,19/01/2026,1,2,3,
`;
    const report = await loadTable(t, client, mapping, text);
    t.strictSame(placesOf(report), [
      [2, null, null, 'wrong_column_count'],
      [3, 'Date', '2026-01-10', 'invalid_date'],
      [4, 'Date', '31/02/2026', 'invalid_date'],
      [5, 'Low', '1,5', 'invalid_number'],
      [6, 'High', '~', 'invalid_number'],
      [7, 'Mid', null, 'missing_value'],
      [8, 'Mid', '3 2 1', 'low_mid_high'],
      [9, 'Code', 'Alfa', 'unknown_code'],
      [10, 'Code', null, 'unknown_code'],
      [11, 'Out', 'yesterday', 'invalid_time'],
      [12, 'Mid', '1 2.12345678901 3', 'too_precise'],
      [13, 'Date', '1799-01-01', 'out_of_range'],
      [15, 'Date', '2026-01-19', 'duplicate'],
    ]);
    t.match(report.errors[7]?.message, /did you mean "Alpha"/);
    t.match(report.counts, { rows: 14, rejected: 13 });
    t.strictSame(await seriesOf(pool, 'A'), []);
  },
);

t.test(
  'a fault that all prices of a row share is reported once, and counted for each',
  async (t) => {
    const { client } = await loadingDatabase(t);
    await describePrices(client, 'A', 'B');
    const mapping = 'date: { column: Date }\ncolumns: { One: A, Two: B }\n';
    const text = 'Date,One,Two\nx,1,2\nx,3,\n2026-01-10,,y\n';
    const report = await loadTable(t, client, mapping, text);
    t.strictSame(placesOf(report), [
      [2, 'Date', 'x', 'invalid_date'],
      [3, 'Date', 'x', 'invalid_date'],
      [4, 'Two', 'y', 'invalid_number'],
    ]);
    t.match(report.counts, { rows: 4, rejected: 4 });
  },
);

t.test(
  'an empty field is a value that is missing unless the mapping says that it is none',
  async (t) => {
    const { client } = await loadingDatabase(t);
    await describePrices(client, 'A');
    const mapping = `${TABLE}numbers: { missing: ["-", "-999"] }\n`;
    const text =
      'Code,Date,Price\nA,2026-01-10,\nA,2026-01-11,-\nA,2026-01-12, -999\n,,\nA,2026-01-13,1\n';
    t.strictSame(placesOf(await loadTable(t, client, mapping, text)), [
      [2, 'Price', null, 'missing_value'],
    ]);
  },
);
