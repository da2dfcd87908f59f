import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import t from 'tap';
import { tableWith } from '../../../src/ingest/mapping/table.ts';
import {
  CORRECTING,
  describePrices,
  fileOf,
  loadFile,
  loadingDatabase,
  loadText,
  points,
  seriesOf,
} from '../support/loading.ts';
import { num, sheetOf, text } from '../support/sheets.ts';
import { loadTable, mappingFrom, placesOf } from './support.ts';

const STRICT = { acceptJumps: false };

/** Values in US cents, one price a row and one year a column. */
const CENTS = `
code: { column: Code }
dateColumns: { first: 2, pattern: yyyy }
published: { currency: USc, unit: Tonne }
`;

t.test('a refused cell is named, with its content', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  await loadText(t, client, 'csv', points('A,2022-12-31,,4.3,,', 'B,2021-12-31,,5,,'));
  const workbook = sheetOf({
    ...{ A1: text('Code'), B1: text('2021'), C1: text('2022'), D1: text('2023') },
    ...{ A2: text('A'), B2: num('432.3'), C2: num('430'), D2: num('43230') },
    ...{ A3: text('B'), B3: num('501'), C3: num('502'), D3: num('503') },
    ...{ A4: text('C'), B4: num('600') },
    ...{ A5: text('b'), C5: num('502') },
  });
  const report = await loadTable(t, client, CENTS, workbook, STRICT);
  t.strictSame(placesOf(report), [
    [2, 'Prices!D2', '43230', 'jump'],
    [3, 'Prices!B3', '501', 'correction_not_allowed'],
    [4, 'Prices!A4', 'C', 'unknown_code'],
    [5, 'Prices!C5', '2022-12-31', 'duplicate'],
  ]);
  t.strictSame(report.counts.rejected, 4);
  const [jump, correction] = report.errors;
  t.match(
    jump?.message,
    /^The value of A, 2023-12-31, is 432\.3: it differs from that of 2022-12-31, 4\.3,/,
  );
  t.match(correction?.message, /^The value of B, 2021-12-31, is 5 and would become 5\.01;/);
});

t.test('a text names line and column, and low, mid or high as it was written', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  await loadText(t, client, 'csv', points('A,2026-01-08,1.5,2.5,3.5,'));
  const mapping = `
text: { delimiter: semicolon }
code: { constant: A }
date: { column: Day, pattern: dd.MM.yyyy }
low: Low
mid: Mid
high: High
numbers: { decimal: comma }
`;
  const report = await loadTable(
    t,
    client,
    mapping,
    'Day;Low;Mid;High\n08.01.2026;1,5;2,50;4,0\n09.01.2026;;25;\n09.01.2026;;2,5;\n',
    STRICT,
  );
  t.strictSame(placesOf(report), [
    [2, 'High', '4,0', 'correction_not_allowed'],
    [3, 'Mid', '25', 'jump'],
    [4, 'Day', '2026-01-09', 'duplicate'],
  ]);
});

t.test('only the wrong values of a row are rejected', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  await loadText(t, client, 'csv', points('B,2021-12-31,,2,,'));
  const lines = ['Code;2021;2022;2023', 'A;1;1,1;40', 'B;2,5;2,1;2,2', 'A;;1,2;'];
  const file = await fileOf(t, lines.join('\n'));
  const path = join(dirname(file), 'rejects.csv');
  const mapping = `
text: { delimiter: semicolon }
code: { column: Code }
dateColumns: { first: 2, pattern: yyyy }
numbers: { decimal: comma }
`;
  const report = await loadFile(client, 'table', file, {
    ...STRICT,
    reader: tableWith(mappingFrom(mapping)),
    rejects: { file: path, overwrite: false },
  });
  t.match(report, { status: 'applied', counts: { rows: 7, inserted: 4, rejected: 3 } });
  const valuesOf = async (code: string) =>
    (await seriesOf(pool, code)).map(([date, , mid]) => [String(date).slice(0, 4), mid]);
  t.strictSame(await valuesOf('A'), [
    ['2021', '1'],
    ['2022', '1.1'],
  ]);
  t.strictSame(await valuesOf('B'), [
    ['2021', '2'],
    ['2022', '2.1'],
    ['2023', '2.2'],
  ]);
  t.equal(await readFile(path, 'utf8'), lines.join('\n'), 'each row has one that is');
  const [, ...rows] = (await readFile(`${path}.reasons.csv`, 'utf8')).trim().split('\n');
  const short = rows.map((row) => row.replace(file, '').split(',').slice(1, 3).join());
  t.strictSame(short.sort(), ['2,2023', '3,2021', '4,2022']);
  for (const code of ['jump', 'correction_not_allowed', 'duplicate']) {
    t.match(rows.join('\n'), `,${code},`);
  }
});

t.test('two columns of one day give one value twice', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const mapping = 'code: { column: 1 }\ndateColumns: { first: 2, pattern: yyyy }\n';
  const report = await loadTable(t, client, mapping, 'Code,2021,2021,2022\nA,1,1,1\n', CORRECTING);
  t.strictSame(placesOf(report), [[2, '2021', '2021-12-31', 'duplicate']]);
  t.equal(report.counts.rejected, 1);
});
