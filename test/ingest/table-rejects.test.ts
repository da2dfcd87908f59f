import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import t from 'tap';
import { tableWith } from '../../src/ingest/table/table.ts';
import { describePrices, fileOf, loadFile, loadingDatabase, seriesOf } from './support.ts';
import { mappingFrom } from './table-support.ts';

const MAPPING = `
text: { delimiter: semicolon }
date: { column: Date, pattern: dd.MM.yyyy }
columns:
  - { code: A, low: Low, mid: Mid }
  - { code: B, mid: Other }
numbers: { decimal: comma }
`;

t.test('rejected rows of a table are set aside as rows of our CSV, with their place', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const lines = [
    'Date;Low;Mid;Other',
    '08.01.2026;1,5;2,5;3',
    '2026-01-09;1,5;2,5;3',
    '10.01.2026;1.5;2,5;4',
    '11.01.2026;3;2;5',
    '12.01.2026;1',
    '13.01.2026;1;"2"x;3',
  ];
  const file = await fileOf(t, lines.join('\n'));
  const path = join(dirname(file), 'rejects.csv');
  const report = await loadFile(client, 'table', file, {
    reader: tableWith(mappingFrom(MAPPING)),
    rejects: { file: path, overwrite: false },
  });
  t.match(report, { status: 'applied', rejects: path });
  t.match(report.counts, { rows: 10, inserted: 4, rejected: 6 });
  t.strictSame(await seriesOf(pool, 'A'), [['2026-01-08', '1.5', '2.5', null, 0]]);
  t.strictSame(
    (await seriesOf(pool, 'B')).map(([date, , mid]) => [date, mid]),
    [
      ['2026-01-08', '3'],
      ['2026-01-10', '4'],
      ['2026-01-11', '5'],
    ],
  );
  const [header = '', ...rows] = (await readFile(path, 'utf8')).trim().split('\n');
  t.match(header, /rejectText,code,date,low,mid,high,publishedAt$/);
  const short = rows.map((row) => row.replace(/^[^,]*,(\d+,[^,]*),.*?,([a-z_]+),.*?,/, '$1 $2 '));
  t.match(short, [
    /^3,Date invalid_date ,A,2026-01-09,"1,5","2,5",,$/,
    /^3,Date invalid_date ,B,2026-01-09,,3,,$/,
    /^4,Low invalid_number .*,A,2026-01-10,1\.5,"2,5",,$/,
    /^6, wrong_column_count .*12\.01\.2026\t1,/,
    /^5,Mid low_mid_high .*,A,2026-01-11,3,2,,$/,
    /^7, invalid_quote .*/,
  ]);
});

t.test('a table in another currency than its price is refused also with rejects', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const file = await fileOf(t, 'Date;Low;Mid;Other\n08.01.2026;1;2;3\n');
  const report = await loadFile(client, 'table', file, {
    reader: tableWith(mappingFrom(`${MAPPING}published: { currency: EUR }\n`)),
    rejects: { file: join(dirname(file), 'rejects.csv'), overwrite: false },
  });
  t.match(report, {
    status: 'refused',
    errors: [{ code: 'currency_mismatch' }, { code: 'currency_mismatch' }],
  });
});
