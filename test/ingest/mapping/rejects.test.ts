import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import t from 'tap';
import { tableWith } from '../../../src/ingest/mapping/table.ts';
import {
  describePrices,
  fileOf,
  fixture,
  loadFile,
  loadingDatabase,
  loadText,
  seriesOf,
} from '../support/loading.ts';
import { sheetOf, text as word } from '../support/sheets.ts';
import { pinkSheet, zipOf } from '../support/workbook.ts';
import { mappingFrom } from './support.ts';

const MAPPING = `
text: { delimiter: semicolon }
date: { column: Date, pattern: dd.MM.yyyy }
columns:
  - { code: A, low: Low, mid: Mid }
  - { code: B, mid: Other }
numbers: { decimal: comma }
`;

t.test(
  'rejected lines of a table are set aside as they stand, with their places beside them',
  async (t) => {
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
    t.equal(await readFile(path, 'utf8'), [0, 2, 3, 4, 5, 6].map((at) => lines[at]).join('\n'));
    const [, ...rows] = (await readFile(`${path}.reasons.csv`, 'utf8')).trim().split('\n');
    t.match(
      rows.map((row) => row.replace(file, 'FILE')),
      [
        /^FILE,3,Date,2026-01-09,invalid_date,/,
        /^FILE,4,Low,1\.5,invalid_number,/,
        /^FILE,6,,,wrong_column_count,/,
        /^FILE,5,Mid,3 2,low_mid_high,/,
        /^FILE,7,,"13\.01\.2026;1;""2""x;3",invalid_quote,/,
      ],
    );
    t.equal(rows.length, 5, 'the date of a row is reported once');
    const mended = (await readFile(path, 'utf8')).replace('2026-01-09', '09.01.2026');
    const again = await loadText(t, client, 'table', mended, {
      reader: tableWith(mappingFrom(MAPPING)),
      rejects: { file: `${path}.again`, overwrite: false },
    });
    t.match(again.counts, { inserted: 2, unchanged: 2, rejected: 4 }, 'the mapping reads the copy');
  },
);

t.test('lines end where the encoding of the table says', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const text = '\ufeffDate;Low;Mid;Other\r\n\u0a0a;1;2;3\r\n08.01.2026;1;2;3\r\nx;1;2;3\r\n';
  for (const encoding of ['utf-16le', 'utf-16be']) {
    const inOrder = (each: string) => {
      const bytes = Buffer.from(each, 'utf16le');
      return encoding === 'utf-16le' ? bytes : bytes.swap16();
    };
    const file = await fileOf(t, inOrder(text));
    const path = join(dirname(file), 'rejects.csv');
    const mapping = MAPPING.replace('semicolon', `semicolon, encoding: ${encoding}`);
    const report = await loadFile(client, 'table', file, {
      reader: tableWith(mappingFrom(mapping)),
      rejects: { file: path, overwrite: false },
    });
    t.match(report, { rejects: path, counts: { rejected: 4 } }, encoding);
    t.strictSame(await readFile(path), inOrder(text.replace('08.01.2026;1;2;3\r\n', '')));
  }
});

t.test('a workbook and XML have no lines to copy, which a sentence says', async (t) => {
  const { client } = await loadingDatabase(t);
  const xml = await readFile(fixture('ecb-many-days.xml'));
  const reader = tableWith(mappingFrom(MAPPING.replace(/^text.*\n/m, '')));
  const cases = [
    ['table', { reader }, 'a workbook', sheetOf({ A1: word('Date') })],
    ['worldbank', {}, 'a workbook', pinkSheet({ rows: [] })],
    ['ecb', {}, 'an XML file', xml],
  ] as const;
  for (const [format, options, what, content] of cases) {
    const file = await fileOf(t, content);
    const rejects = { file: `${file}.rejects`, overwrite: false };
    await t.rejects(loadFile(client, format, file, { ...options, rejects }), {
      message: `--rejects copies lines, but ${what} has none: load it without --rejects`,
      exitCode: 2,
    });
    t.strictSame(await readdir(dirname(file)), ['file'], 'nothing is left');
  }
});

t.test('rates are set aside as they stand, also those of an archive', async (t) => {
  const { client } = await loadingDatabase(t);
  const header = 'Date,USD,JPY,\n';
  const lines = ['2024-01-05,1.1,150,\n', '2024-01-04,0,150,\n', '2024-01-03,1.2,N/A,\n'];
  const content = zipOf([{ name: 'a.csv', content: header + lines.join('') }]);
  const file = await fileOf(t, content);
  const rejects = { file: `${file}.rejects`, overwrite: false };
  const report = await loadFile(client, 'ecb', file, { rejects });
  t.match(report, { status: 'applied', counts: { inserted: 4, rejected: 1 } });
  t.equal(await readFile(rejects.file, 'utf8'), header + lines[1]);
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
