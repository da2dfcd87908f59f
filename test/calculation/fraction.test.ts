import fc from 'fast-check';
import t from 'tap';
import {
  exactText,
  inverse,
  mean,
  product,
  type RoundingMode,
  roundedTo,
  sum,
} from '../../src/calculation/fraction.ts';
import { atomsOf, molarMass } from '../../src/calculation/molar-mass.ts';
import { commonDivisor, type Rational, reduced } from '../../src/conversion/rational.ts';
import { decimalText } from '../../src/std/decimal.ts';

const ROUNDING_MODES = ['half-even', 'half-up', 'down', 'up'] as const;

const fraction = (numerator: bigint, denominator = 1n): Rational => ({ numerator, denominator });

const fractions = fc
  .tuple(fc.bigInt({ min: -(10n ** 12n), max: 10n ** 12n }), fc.bigInt({ min: 1n, max: 10n ** 6n }))
  .map(([numerator, denominator]) => reduced(fraction(numerator, denominator)));

const isLowest = ({ numerator, denominator }: Rational): boolean =>
  denominator > 0n && commonDivisor(numerator, denominator) === 1n;

t.test('sums, products and means are those of schoolbook fractions, in lowest terms', async () => {
  fc.assert(
    fc.property(fractions, fractions, fractions, (a, b, c) => {
      const added = sum(a, b);
      const cross = a.numerator * b.denominator + b.numerator * a.denominator;
      const multiplied = product(a, b);
      const third = mean([a, b, c]);
      const all = sum(added, c);
      return (
        added.numerator * a.denominator * b.denominator === cross * added.denominator &&
        multiplied.numerator * a.denominator * b.denominator ===
          a.numerator * b.numerator * multiplied.denominator &&
        third.numerator * all.denominator * 3n === all.numerator * third.denominator &&
        [added, multiplied, third].every(isLowest) &&
        (a.numerator === 0n || product(a, inverse(a)).denominator === 1n)
      );
    }),
    { numRuns: 10_000 },
  );
});

/** Rounds by the digits of a long division, as text. */
function roundedDigits({ numerator, denominator }: Rational, decimals: number, mode: RoundingMode) {
  const amount = numerator < 0n ? -numerator : numerator;
  const digits = String((amount * 10n ** 30n) / denominator).padStart(31, '0');
  const isExact = (amount * 10n ** 30n) % denominator === 0n;
  const cut = digits.length - 30 + decimals;
  const [kept, rest] = [digits.slice(0, cut) || '0', digits.slice(cut)];
  const isZero = /^0*$/.test(rest) && isExact;
  const isTie = /^50*$/.test(rest) && isExact;
  const isOdd = Number(kept.at(-1)) % 2 === 1;
  const away = {
    up: !isZero,
    down: false,
    'half-up': (rest[0] ?? '0') >= '5',
    'half-even': isTie ? isOdd : (rest[0] ?? '0') >= '5',
  }[mode];
  const whole = BigInt(kept) + (away ? 1n : 0n);
  return decimalText({ digits: numerator < 0n ? -whole : whole, scale: decimals });
}

t.test('every mode rounds as by hand, and negative numbers away from zero', async (t) => {
  const small = fc
    .tuple(fc.bigInt({ min: -2_000n, max: 2_000n }), fc.constantFrom(1n, 2n, 3n, 7n, 8n, 10n, 200n))
    .map(([numerator, denominator]) => reduced(fraction(numerator, denominator)));
  fc.assert(
    fc.property(
      fc.oneof(fractions, small),
      fc.nat(6),
      fc.constantFrom(...ROUNDING_MODES),
      (value, decimals, mode) =>
        decimalText(roundedTo(value, { decimals, mode })) === roundedDigits(value, decimals, mode),
    ),
    { numRuns: 10_000 },
  );
  const rounded = (numerator: bigint, mode: RoundingMode) =>
    decimalText(roundedTo(fraction(numerator, 2n), { decimals: 0, mode }));
  t.same(
    ROUNDING_MODES.map((mode) => [rounded(5n, mode), rounded(-5n, mode)]),
    [
      ['2', '-2'],
      ['3', '-3'],
      ['2', '-2'],
      ['3', '-3'],
    ],
  );
});

t.test('an exact number is a decimal if it ends, else a fraction in lowest terms', async (t) => {
  const texts: readonly (readonly [bigint, bigint, string])[] = [
    [8541n, 4n, '2135.25'],
    [-1n, 8n, '-0.125'],
    [1n, 3n, '1/3'],
    [-7n, 6n, '-7/6'],
    [0n, 1n, '0'],
    [1n, 10n ** 12n, '0.000000000001'],
    [3n, 5n ** 3n, '0.024'],
  ];
  for (const [numerator, denominator, text] of texts) {
    t.equal(exactText(fraction(numerator, denominator)), text);
  }
});

t.test('molar masses are the sums of the atomic weights of IUPAC 2021', async (t) => {
  const masses: readonly (readonly [string, string])[] = [
    ['LiOH·H2O', '41.962'],
    ['Li2CO3', '73.888'],
    ['CoSO4·7H2O', '281.094'],
    ['Co(OH)2', '92.947'],
    ['NiSO4·6H2O', '262.839'],
    ['Mn3O4', '228.81'],
  ];
  for (const [formula, mass] of masses) {
    const atoms = atomsOf(formula);
    t.equal(atoms && molarMass(atoms), mass, formula);
  }
  for (const text of ['', 'Xx2', 'SiC6x', 'Li2CO3)', '(Li', '-', 'NMC 811', 'lioh', '7', '()2']) {
    t.equal(atomsOf(text), null, text);
  }
});
