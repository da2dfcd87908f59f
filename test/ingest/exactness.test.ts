import fc from 'fast-check';
import t from 'tap';
import {
  cellDecimal,
  plainDecimal,
  tooPrecise,
  writtenOut,
} from '../../src/ingest/parsing/decimals.ts';
import {
  describePrices,
  errorsOf,
  loadingDatabase,
  loadText,
  points,
  seriesOf,
} from './support/loading.ts';

/** Converts a decimal to one scaled integer, the oracle of all readers. */
function scaled(text: string, decimals = 80): bigint {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const shift = decimals - fraction.length + Number(exponent);
  if (shift < 0) throw new Error(`${text} needs more decimals`);
  return BigInt(`${whole}${fraction}`) * 10n ** BigInt(shift);
}

const digits = (min: number, max: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: min, maxLength: max });
const decimal = fc
  .tuple(fc.constantFrom('', '-'), digits(1, 20), digits(0, 20))
  .map(([sign, whole, fraction]) => `${sign}${whole}${fraction === '' ? '' : `.${fraction}`}`);

t.test('a decimal keeps its value and loses only zeros that mean nothing', async (t) => {
  fc.assert(
    fc.property(decimal, (text) => {
      const plain = plainDecimal(text);
      if (plain === null || scaled(plain) !== scaled(text)) return false;
      return /^(0|-?(0\.\d*[1-9]|[1-9]\d*(\.\d*[1-9])?))$/.test(plain);
    }),
    { numRuns: 5_000 },
  );
  const cases = {
    '0.1': '0.1',
    '-0': '0',
    '-0.00': '0',
    '007.50': '7.5',
    '100': '100',
    '1.0': '1',
  };
  for (const [text, plain] of Object.entries(cases)) t.equal(plainDecimal(text), plain, text);
});

t.test('only a plain decimal is a number', async (t) => {
  const wrong = ['', ' ', '1 ', '+1', '.5', '5.', '1,5', '1e3', 'NaN', 'Infinity', '0x10', '1_000'];
  for (const text of [...wrong, '--1', '1.2.3', '\u0661', '1'.repeat(65)]) {
    t.equal(plainDecimal(text), null, JSON.stringify(text));
  }
});

t.test('a number with an exponent is written out exactly', async (t) => {
  const scientific = fc
    .tuple(decimal, fc.integer({ min: -20, max: 20 }))
    .map(([text, exponent]) => `${text}e${exponent}`);
  fc.assert(
    fc.property(scientific, (text) => {
      const plain = writtenOut(text);
      return plain !== null && scaled(plain) === scaled(text);
    }),
    { numRuns: 5_000 },
  );
  for (const text of ['1e400', '1e-400', 'e5', '1e', '1e99999', 'NaN']) {
    t.equal(writtenOut(text), null, text);
  }
});

t.test('a cell of a workbook is the decimal that was typed, up to 15 digits', async (t) => {
  const typed = fc
    .tuple(fc.constantFrom('', '-'), fc.bigInt({ min: 1n, max: 10n ** 15n - 1n }), fc.nat(15))
    .map(([sign, number, decimals]) => `${sign}${number}e-${decimals}`);
  fc.assert(
    fc.property(typed, (text) => {
      const double = Number(text);
      // Workbooks store doubles with up to 17 digits, with or without exponent.
      const cells = [double.toPrecision(17), double.toExponential(16), String(double)];
      return cells.every((cell) => cellDecimal(cell) === writtenOut(text));
    }),
    { numRuns: 5_000 },
  );
  const cells = {
    '0.14000000000000001': '0.14',
    '7.0000000000000007E-2': '0.07',
    '1108.6099999999999': '1108.61',
    '1.6310000000000001E3': '1631',
    '511.471832': '511.471832',
    '0.33333333333333331': '0.333333333333333',
  };
  for (const [cell, value] of Object.entries(cells)) t.equal(cellDecimal(cell), value, cell);
  for (const cell of ['', '#N/A', 'NaN', '1E400']) t.equal(cellDecimal(cell), null, cell);
});

t.test(
  '15 significant digits at the finest decimals of a point are stored, 16 are refused',
  async (t) => {
    t.equal(tooPrecise('0', '12345.1234567891', '0'), null);
    t.match(tooPrecise('0', '123456.1234567891', '0'), '15 significant digits');
    t.match(tooPrecise('0.1234567891', '1', '123456'), '15 significant digits');
    t.match(tooPrecise('0', '0.12345678912', '0'), '10 decimals');
    const { client, pool } = await loadingDatabase(t);
    await describePrices(client, 'A');
    const fine = points(
      'A,2026-01-01,,0.1,,',
      'A,2026-01-02,,999999999999999,,',
      'A,2026-01-03,,0.0000000001,,',
      'A,2026-01-04,-99999.0000000001,-0.30,12345.1234567891,',
      'A,2026-01-05,-3,-2.50,000.000,',
    );
    t.match(await loadText(t, client, 'csv', fine), { status: 'applied', counts: { inserted: 5 } });
    t.strictSame(await seriesOf(pool, 'A'), [
      ['2026-01-01', null, '0.1', null, 0],
      ['2026-01-02', null, '999999999999999', null, 0],
      ['2026-01-03', null, '0.0000000001', null, 0],
      ['2026-01-04', '-99999.0000000001', '-0.3', '12345.1234567891', 0],
      ['2026-01-05', '-3', '-2.5', '0', 0],
    ]);
    const wrong = points(
      'A,2026-02-01,,1000000000000000,,',
      'A,2026-02-02,,0.00000000001,,',
      'A,2026-02-03,0.0000000001,1,100000,',
      'A,2026-02-04,1,1.1,1.09,',
    );
    t.strictSame(errorsOf(await loadText(t, client, 'csv', wrong)), [
      [2, 'mid', 'too_precise'],
      [3, 'mid', 'too_precise'],
      [4, 'mid', 'too_precise'],
      [5, 'mid', 'low_mid_high'],
    ]);
  },
);

t.test('the constraints of the database accept every value that the process accepts', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const value = fc
    .tuple(fc.constantFrom('', '-'), digits(1, 9), digits(0, 9))
    .map(([sign, whole, fraction]) => `${sign}${whole}${fraction === '' ? '' : `.${fraction}`}`);
  const values = fc.sample(fc.tuple(value, value, value), { numRuns: 1_500, seed: 7 });
  const day = (index: number) => new Date(Date.UTC(1900, 0, index + 1)).toISOString().slice(0, 10);
  const rows = values.map((three, index) => {
    const [low, mid, high] = three.toSorted((a, b) => (scaled(a) < scaled(b) ? -1 : 1));
    return `A,${day(index)},${low},${mid},${high},`;
  });
  const wrong = await loadText(t, client, 'csv', points(...rows));
  const refused = new Set(wrong.errors.map((error) => error.line));
  for (const error of wrong.errors) t.equal(error.code, 'too_precise');
  const right = rows.filter((_, index) => !refused.has(index + 2));
  t.ok(refused.size > 100 && refused.size < 1_000, `${refused.size} refused`);
  t.match(await loadText(t, client, 'csv', points(...right)), {
    status: 'applied',
    counts: { inserted: right.length },
  });
});
