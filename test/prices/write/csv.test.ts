import fc from 'fast-check';
import t from 'tap';
import { textCell } from '../../../src/std/csv.ts';
import { parseCsv } from '../../support/prices/csv.ts';
import { python } from '../../support/process/python.ts';

t.test('a text that a spreadsheet would run gets an apostrophe before it', async (t) => {
  for (const text of ['=1+1', '+49 30', '-100 mesh', '@SUM(A1)', '＝1'])
    t.equal(textCell(text), `'${text}`);
  t.equal(textCell('\tx'), "'\tx");
  t.equal(textCell('\r-1'), '"\'\r\'-1"');
  t.equal(textCell('="a",b'), '"\'=""a"",b"');
  for (const text of ['Nickel', '1=1', "'quoted'", ' =1', '99.8% Ni min', 'a-b']) {
    t.equal(textCell(text), text);
  }
  t.equal(textCell(null), '');
});

t.test('so does its part after a separator that a spreadsheet may split at', async (t) => {
  t.equal(textCell('x;=1+1;y'), '"x;\'=1+1;y"');
  t.equal(textCell('x;"=1";y'), '"x;\'""=1"";y"');
  t.equal(textCell('x\n-1\r\n@y'), '"x\n\'-1\r\n\'@y"');
  t.equal(textCell('x\t+1'), "x\t'+1");
  t.equal(textCell('a; b - c;d'), '"a; b - c;d"');
});

t.test('a text with a separator of any spreadsheet stands between quotes', async (t) => {
  t.equal(textCell('a;b'), '"a;b"');
  t.equal(textCell('=1;2'), '"\'=1;2"');
  t.equal(textCell('a,b'), '"a,b"');
});

/** The pattern of added apostrophes, as docs/formats.md has it. */
const ADDED = /(?<![^;\t\r\n])'(?=["']*[=+\-@\t\r\uff0b\uff0d\uff1d\uff20])/g;

/** Texts of characters that separate, quote or begin a formula, among others. */
const anyText = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: fc.constantFrom(...'",;\'\t\r\n=+-@＝x ') }),
);

t.test('any text comes back as it was', async (t) => {
  fc.assert(
    fc.property(fc.array(anyText, { minLength: 1, maxLength: 5 }), (texts) => {
      const line = `${texts.map(textCell).join(',')}\r\n`;
      const [row = [], ...others] = parseCsv(line);
      t.equal(others.length, 0);
      return JSON.stringify(row.map((cell) => cell.replace(ADDED, ''))) === JSON.stringify(texts);
    }),
  );
  t.not(textCell('=1'), textCell("'=1"), 'an apostrophe of the text is told from an added one');
});

/** Reads tables as spreadsheets do, whose separator depends on their language. */
const READER = `
import csv, io, json, os, re
added = re.compile(os.environ["ADDED"])
cells = 0
for rows, text in json.loads(os.environ["TABLES"]):
    for separator in ",;\\t":
        found = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
        for cell in (cell for row in found for cell in row):
            cells += 1
            # A quote after the last separator of a row takes the line end into the cell.
            start = cell[:1] if separator == "," else cell.lstrip("\\t\\r\\n")[:1]
            if start and start in "=+-@\\t\\r＝＋－＠":
                raise SystemExit(f"a formula with {separator!r}: {cell!r} in {text!r}")
        if separator == "," and [[added.sub("", cell) for cell in row] for row in found] != rows:
            raise SystemExit(f"{rows!r} came back as {found!r}")
print(cells)
`;

t.test('no cell is a formula to a reader that separates by , ; or a tab', async (t) => {
  const row = fc.array(anyText, { minLength: 2, maxLength: 4 });
  const tables = fc
    .sample(fc.array(row, { minLength: 1, maxLength: 3 }), 2_000)
    .map((rows) => [rows, rows.map((each) => `${each.map(textCell).join(',')}\r\n`).join('')]);
  let cells = 0;
  // An environment variable has at most 128 KiB.
  for (let at = 0; at < tables.length; at += 200) {
    const TABLES = JSON.stringify(tables.slice(at, at + 200));
    const { code, stdout, stderr } = await python(READER, { TABLES, ADDED: ADDED.source });
    t.equal(code, 0, stderr);
    cells += Number(stdout);
  }
  t.ok(cells > 10_000);
});
