import fc from 'fast-check';
import t from 'tap';
import { type Notation, numberReader } from '../../../src/ingest/mapping/fields.ts';
import { quotationOf } from '../../../src/ingest/mapping/quotation.ts';
import { multiplied } from '../../../src/ingest/parsing/decimals.ts';
import { indexOfLetters, lettersOfIndex } from '../../../src/ingest/parsing/xlsx-cells.ts';

/** Texts in a notation, and their numbers. */
const NUMBERS: [Notation, Record<string, string | null>][] = [
  [
    { decimal: 'comma', thousands: 'point' },
    {
      '1.234,5': '1234.5',
      '1234,5': '1234.5',
      '1.234.567': '1234567',
      '-1.234,50': '-1234.50',
      '12,34.5': null,
      '12.34,5': null,
      '1.2345': null,
      '1234.567,8': null,
      '1.234567,8': null,
      '0.123': null,
      '0.123,5': null,
      '-0.123': null,
      '.123': null,
      '1.234,': null,
      ',5': null,
      '1.234.5': null,
      '1,234.5': null,
      '1,5,5': null,
      '1 234,5': null,
      '+1,5': null,
      '1e3': null,
      '1,5 t': null,
      '(1,5)': null,
      '\u22121,5': null,
    },
  ],
  [
    { decimal: 'point', thousands: 'comma' },
    { '1,234.5': '1234.5', '1,234': '1234', '0.5': '0.5', '12,34.5': null, '1,5': null },
  ],
  [
    { decimal: 'point', thousands: 'none' },
    { '1234.5': '1234.5', '1,234': null, '1 234': null, '-': null, '': null, '1.': null },
  ],
  [
    { decimal: 'comma', thousands: 'space' },
    {
      '1 234 567,8': '1234567.8',
      '1\u00a0234,5': '1234.5',
      '1\u202f234': '1234',
      '1 234\u00a0567': null,
      '1  234': null,
      '1.5': null,
    },
  ],
  [
    { decimal: 'point', thousands: 'apostrophe' },
    { "1'234.5": '1234.5', '1\u2019234': '1234', "12'34": null },
  ],
];

t.test('a number is read in the declared notation only, and its groups have three digits', (t) => {
  for (const [notation, numbers] of NUMBERS) {
    const read = numberReader(notation);
    for (const [text, expected] of Object.entries(numbers)) {
      t.equal(read(text), expected, `${JSON.stringify(notation)} ${text}`);
    }
  }
  t.end();
});

t.test('any number that is written with separators is read back digit for digit', (t) => {
  const signs = { comma: ',', point: '.', space: '\u202f', apostrophe: '\u2019', none: '' };
  const notations = (['point', 'comma'] as const).flatMap((decimal) =>
    (Object.keys(signs) as Notation['thousands'][])
      .filter((thousands) => thousands !== decimal)
      .map((thousands) => ({ decimal, thousands })),
  );
  fc.assert(
    fc.property(
      fc.constantFrom(...notations),
      fc.bigInt({ min: -(10n ** 14n), max: 10n ** 14n }),
      fc.stringMatching(/^\d{0,8}$/),
      (notation, whole, fraction) => {
        const grouped = whole.toLocaleString('en').replaceAll(',', signs[notation.thousands]);
        const point = fraction === '' ? '' : signs[notation.decimal];
        const expected = `${whole}${fraction === '' ? '' : '.'}${fraction}`;
        t.equal(numberReader(notation)(`${grouped}${point}${fraction}`), expected);
      },
    ),
    { numRuns: 300 },
  );
  t.end();
});

t.test('a factor moves a decimal exactly, however many digits it has', (t) => {
  const cent = quotationOf('USc', 'lb');
  t.strictSame([cent.currency, cent.published], ['USD', 'USc per lb']);
  t.equal(cent.factor && multiplied('308.85', cent.factor), '3.0885');
  t.equal(cent.factor && multiplied('-0.5', cent.factor), '-0.005');
  t.equal(multiplied('1.1', { digits: 11n, scale: 1 }), '1.21');
  t.equal(multiplied('7', { digits: 45359237n, scale: 11 }), '0.00317514659');
  t.equal(quotationOf('USD', 't').factor, null);
  fc.assert(
    fc.property(fc.bigInt(), fc.nat(12), fc.bigInt({ min: 1n, max: 10n ** 14n }), (a, scale, b) => {
      const sign = a < 0n ? '-' : '';
      const digits = (a < 0n ? -a : a).toString().padStart(scale + 1, '0');
      const at = digits.length - scale;
      const decimal =
        scale === 0 ? a.toString() : `${sign}${digits.slice(0, at)}.${digits.slice(at)}`;
      const product = multiplied(decimal, { digits: b, scale: 0 });
      t.equal(BigInt(product.replace('.', '')), a * b);
    }),
    { numRuns: 200 },
  );
  t.end();
});

t.test('columns are counted as spreadsheets letter them', (t) => {
  for (const [letters, index] of [
    ['A', 0],
    ['Z', 25],
    ['AA', 26],
    ['XFD', 16_383],
  ] as const) {
    t.equal(indexOfLetters(letters), index);
    t.equal(lettersOfIndex(index), letters);
  }
  for (const wrong of ['', 'a', 'XFE', 'ZZZ', 'AAAA', 'A1', 'Ä'])
    t.equal(indexOfLetters(wrong), -1);
  t.end();
});
