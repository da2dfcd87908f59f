import fc from 'fast-check';
import t from 'tap';
import { textCell } from '../../../src/prices/write/rows.ts';
import { parseCsv } from '../../support/prices/csv.ts';

t.test('a text that a spreadsheet would run gets an apostrophe before it', async (t) => {
  for (const text of ['=1+1', '+49 30', '-100 mesh', '@SUM(A1)'])
    t.equal(textCell(text), `'${text}`);
  t.equal(textCell('\tx'), "'\tx");
  t.equal(textCell('\r=1'), '"\'\r=1"');
  t.equal(textCell('="a",b'), '"\'=""a"",b"');
  for (const text of ['Nickel', '1=1', "'quoted'", ' =1', '99.8% Ni min', 'a-b']) {
    t.equal(textCell(text), text);
  }
  t.equal(textCell(null), '');
});

t.test('a text with a separator of any spreadsheet stands between quotes', async (t) => {
  t.equal(textCell('a;b'), '"a;b"');
  t.equal(textCell('=1;2'), '"\'=1;2"');
  t.equal(textCell('a,b'), '"a,b"');
});

t.test('any text comes back as it was', async (t) => {
  const text = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: fc.constantFrom('"', ',', ';', '\r', '\n', '=', '-', 'x', ' ') }),
  );
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 5 }), (texts) => {
      const line = `${texts.map(textCell).join(',')}\r\n`;
      const [row = [], ...others] = parseCsv(line);
      t.equal(others.length, 0);
      const back = row.map((cell, index) => {
        const sent = texts[index] as string;
        return /^[=+\-@\t\r]/.test(sent) ? cell.slice(1) : cell;
      });
      return JSON.stringify(back) === JSON.stringify(texts);
    }),
  );
});
