import { open } from 'node:fs/promises';
import t from 'tap';
import { tableWith } from '../../../src/ingest/mapping/table.ts';
import { peakGrowth } from '../../support/http/service-process.ts';
import { recordFigures } from '../../support/run/faults.ts';
import { describePrices, fileOf, loadFile, loadingDatabase } from '../support/loading.ts';
import { bookOf, bookParts, num, sheetOf } from '../support/sheets.ts';
import { type ArchivePart, zipOf } from '../support/workbook.ts';
import { loadTable, mappingFrom, placesOf } from './support.ts';

const TABLE = `
code: { constant: A }
date: { column: 1 }
mid: 2
rows: { header: 0 }
`;

/** A workbook whose only sheet has this XML, or other parts. */
const sheet = (xml: string) => bookOf({ sheets: { P: { xml } } });
const data = (rows: string) => sheet(`<sheetData>${rows}</sheetData>`);
const parts = () => bookParts({ sheets: { P: { A1: '2026-01-10', B1: num('1') } } });
const changed = (name: string, part: Partial<ArchivePart>): Buffer =>
  zipOf(parts().map((each) => (each.name === name ? { ...each, ...part } : each)));

type Cases = Readonly<Record<string, readonly [Uint8Array, RegExp]>>;

const SHEET = 'xl/worksheets/sheet1.xml';
const inRow = (cells: string) => data(`<row r="1">${cells}</row>`);
const runs = `<t>${'x'.repeat(1_000)}</t>`.repeat(33);
const longCells = `<c t="str"><v>${'x'.repeat(32_000)}</v></c>`.repeat(40);

const DAMAGED: Cases = {
  'rows out of order': [data('<row r="2"/><row r="1"/>'), /rows of the sheet are not in order/],
  'a row twice': [data('<row r="2"/><row r="2"/>'), /rows of the sheet are not in order/],
  'a row beyond the sheet': [data('<row r="1048577"/>'), /rows of the sheet are not in order/],
  'a row without number': [data('<row r="one"/>'), /rows of the sheet are not in order/],
  'cells out of order': [inRow('<c r="B1"/><c r="A1"/>'), /cells of the row/],
  'a cell twice': [inRow('<c r="B1"/><c r="B1"/>'), /cells of the row/],
  'a cell of another row': [inRow('<c r="A2"/>'), /cells of the row/],
  'a cell beyond the sheet': [inRow('<c r="XFE1"/>'), /cells of the row/],
  'an unknown text': [inRow('<c r="A1" t="s"><v>7</v></c>'), /A1 is damaged/],
  'a text by no number': [inRow('<c r="A1" t="s"><v>1e0</v></c>'), /A1 is damaged/],
  'an unknown type': [inRow('<c r="A1" t="z"><v>7</v></c>'), /A1 is damaged/],
  'half a sheet': [
    changed(SHEET, { content: '<worksheet><sheetData><row r="1">' }),
    /XML is damaged/,
  ],
  'a sheet in UTF-16': [
    changed(SHEET, { content: Buffer.from('\ufeff<a/>', 'utf16le') }),
    /not UTF-8/,
  ],
  'a wrong checksum': [changed(SHEET, { claims: { crc: 1 } }), /checksum is wrong/],
  'no sheet at all': [bookOf({ sheets: {} }), /no sheet/],
  'a sheet that is not there': [zipOf(parts().filter(({ name }) => name !== SHEET)), /lacks xl/],
  'half an archive': [changed(SHEET, {}).subarray(0, 300), /cannot be read/],
};

const entity = '<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><worksheet>&b;</worksheet>';
const manyTexts = `<sst>${'<si><t>x</t></si>'.repeat(2_100_000)}</sst>`;

const BOMBS: Cases = {
  'a text longer than a cell': [
    inRow(`<c r="A1" t="inlineStr"><is>${runs}</is></c>`),
    /A1 holds more text/,
  ],
  'a row with more text than memory': [inRow(longCells), /holds more text/],
  'a text without end': [
    data(`<row r="1"><c r="A1"><v>${'9'.repeat(4_000_000)}`),
    /1 MiB|more text/,
  ],
  'entities that grow': [changed(SHEET, { content: entity }), /document type/],
  'a bomb that says so': [changed(SHEET, { claims: { size: 2 ** 31 } }), /unpacks to more than/],
  'a bomb of texts': [
    changed('xl/sharedStrings.xml', { content: manyTexts }),
    /sharedStrings.xml unpacks to more than 33554432 bytes/,
  ],
  'a bomb of texts that lies': [
    changed('xl/sharedStrings.xml', { content: manyTexts, claims: { size: 10 } }),
    /cannot be read|unpacks to more than/,
  ],
  'a bomb of styles': [
    changed('xl/styles.xml', { content: `<a>${'<xf/>'.repeat(900_000)}</a>` }),
    /styles.xml unpacks to more than 4194304 bytes/,
  ],
};

const FOREIGN: Cases = {
  'an encrypted part': [changed(SHEET, { claims: { flags: 1 } }), /cannot be read.*encrypted/],
  'a binary workbook': [
    zipOf([{ name: 'xl/workbook.bin', content: '' }]),
    /\.xlsb.*save it as \.xlsx/,
  ],
  'an OpenDocument file': [
    zipOf(['mimetype', 'content.xml'].map((name) => ({ name, content: '<a/>' }))),
    /\.ods.*save it as \.xlsx/,
  ],
  'an archive of something': [zipOf([{ name: 'a.csv', content: 'x' }]), /not an Excel workbook/],
  'an old or encrypted workbook': [
    Buffer.from('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and so on', 'latin1'),
    /encrypted or in the old binary format \(\.xls\): save it as \.xlsx/,
  ],
};

for (const [kind, cases] of Object.entries({
  damaged: DAMAGED,
  hostile: BOMBS,
  foreign: FOREIGN,
})) {
  t.test(`a ${kind} workbook is refused in words, and nothing is stored`, async (t) => {
    const { client, pool } = await loadingDatabase(t);
    await describePrices(client, 'A');
    recordFigures('F42', { workbooks: Object.keys(cases).length });
    for (const [what, [bytes, message]] of Object.entries(cases)) {
      const report = await loadTable(t, client, TABLE, bytes);
      t.match(report, { status: 'refused', errorsTotal: 1, errors: [{ message }] }, what);
    }
    const { rows } = await pool.query('select count(*)::integer as n from series');
    t.strictSame(rows, [{ n: 0 }]);
  });
}

t.test('the stated size of a workbook is not trusted', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const row = (number: number) =>
    `<row r="${number}"><c r="A${number}" t="inlineStr"><is><t>2026-01-${number}</t></is></c>
      <c r="B${number}"><v>1</v></c></row>`;
  for (const [index, dimension] of ['A1', 'A1:XFD1048576', 'nonsense', ''].entries()) {
    const rows = row(10 + index) + row(20 + index);
    const xml = `<dimension ref="${dimension}"/><sheetData>${rows}</sheetData>`;
    t.match(await loadTable(t, client, TABLE, sheet(xml)), { counts: { rows: 2, inserted: 2 } });
  }
});

t.test('a mapping for one kind of file refuses the other', async (t) => {
  const { client } = await loadingDatabase(t);
  const book = sheetOf({ A1: '2026-01-10', B1: num('1') });
  t.match(await loadTable(t, client, `${TABLE}text: { delimiter: tab }`, book), {
    errors: [{ code: 'invalid_layout', message: /is a workbook, but the mapping is for text/ }],
  });
  t.match(await loadTable(t, client, `${TABLE}workbook: { sheet: 1 }`, '2026-01-10,1\n'), {
    errors: [{ code: 'invalid_layout', message: /is text, but the mapping is for a workbook/ }],
  });
});

t.test(
  'lines without end, NUL and bytes of another encoding are named, line by line',
  async (t) => {
    const { client } = await loadingDatabase(t);
    await describePrices(client, 'A');
    const long = '9'.repeat(2 * 1_048_576);
    const text = Buffer.concat([
      Buffer.from(`2026-01-10,${long}\n2026-01-11,1\0\n2026-01-12,`),
      Buffer.from([0xff]),
      Buffer.from(`\n2026-01-13,${'9'.repeat(500_000)}\n${'x'.repeat(500_000)},1\n`),
    ]);
    t.strictSame(
      placesOf(await loadTable(t, client, TABLE, text)).map(([line, column, , code]) => [
        line,
        column,
        code,
      ]),
      [
        [1, null, 'line_too_long'],
        [2, null, 'invalid_encoding'],
        [3, null, 'invalid_encoding'],
        [4, 'column 2', 'invalid_number'],
        [5, 'column 1', 'invalid_date'],
      ],
    );
  },
);

t.test('a line of a gigabyte takes no memory', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const path = await fileOf(t, '2026-01-10,1\n');
  const file = await open(path, 'r+');
  // A sparse file needs no disk space.
  await file.write('2026-01-11,1\n', 2 ** 30);
  await file.close();
  const reader = tableWith(mappingFrom(TABLE));
  const before = process.memoryUsage().rss;
  const grown = await peakGrowth(process.pid, async () => {
    const report = await loadFile(client, 'table', path, { reader });
    t.strictSame(placesOf(report), [[2, null, null, 'line_too_long']]);
  });
  t.ok(process.memoryUsage().rss - before < 100_000_000);
  // Includes garbage that has not been collected yet.
  t.ok(grown < 512, `${grown} MB`);
});
