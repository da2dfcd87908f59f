import fc from 'fast-check';
import t from 'tap';
import { evaluated, unitsOf } from '../../src/calculation/evaluate.ts';
import { FormulaError, parseFormula } from '../../src/calculation/formula.ts';
import { exactText } from '../../src/calculation/fraction.ts';
import { parseUnit, type UnitProduct, unitText } from '../../src/calculation/unit.ts';
import { rationalText, reduced } from '../../src/conversion/rational.ts';

const CURRENCIES = ['USD', 'CNY', 'EUR'];
const unit = (text: string): UnitProduct =>
  parseUnit(text, (name) => ({ name, isCurrency: CURRENCIES.includes(name) }));

type Inputs = Readonly<Record<string, readonly [value: string, unit: string]>>;

const INPUTS: Inputs = {
  payable: ['0.73', '1'],
  nickel: ['16250', 'USD/t'],
  cobalt: ['17.50', 'USD/lb'],
  pounds: ['2204.62', 'lb/t'],
  content: ['0.18', '1'],
  floor: ['500', 'USD/t'],
};

/** The value and unit of a formula, as texts. */
function calculated(text: string, inputs: Inputs = INPUTS) {
  const formula = parseFormula(text, new Set(Object.keys(inputs)));
  const units = new Map(Object.entries(inputs).map(([name, [, each]]) => [name, unit(each)]));
  const values = new Map(
    Object.entries(inputs).map(([name, [each]]) => [name, reduced(rationalText(each))]),
  );
  const { value } = evaluated(formula, values);
  return `${exactText(value)} ${unitText(unitsOf(formula, units).unit)}`;
}

t.test('a formula is computed exactly, with its unit', async (t) => {
  const figures: readonly (readonly [formula: string, figure: string])[] = [
    ['payable * nickel * content', '2135.25 USD/t'],
    ['cobalt * pounds', '38580.85 USD/t'],
    ['1 / 3 + 1 / 6', '0.5 1'],
    ['1 / 3', '1/3 1'],
    ['nickel / nickel', '1 1'],
    ['7 / nickel', '7/16250 t/USD'],
    ['nickel * cobalt', '284375 USD^2/lb/t'],
    ['2 - 3 - 4', '-5 1'],
    ['2 - (3 - 4)', '3 1'],
    ['24 / 4 / 2', '3 1'],
    ['2 + 3 * 4', '14 1'],
    ['-2 * -3', '6 1'],
    ['--2', '2 1'],
    ['max(floor, min(nickel, 2 * floor))', '1000 USD/t'],
    ['abs(floor - nickel)', '15750 USD/t'],
    ['round(nickel / 7, 2)', '2321.43 USD/t'],
    ['round(2.5, 0) + round(3.5, 0)', '6 1'],
    ['round(2.5, 0, half_up) + round(-2.5, 0, half_up)', '0 1'],
    ['round(2.1, 0, up) + round(-2.1, 0, up) + round(2.9, 0, down)', '2 1'],
    ['step(payable, [[0.1, 18], [0.73, 19], [0.8, 20]])', '19 1'],
    ['step(-1, [[-2, -5]])', '-5 1'],
    ['if(payable < content, floor, nickel)', '16250 USD/t'],
    ['if(payable >= content, 1, 1 / 0)', '1 1'],
    ['if(1 = 1, 2, 3) + if(1 > 1, 2, 3) + if(1 <= 1, 2, 3)', '7 1'],
  ];
  for (const [formula, figure] of figures) {
    t.equal(calculated(formula), figure, formula);
  }
});

t.test('a formula that cannot be used says where and what would be right', async (t) => {
  const refusals: readonly (readonly [string, FormulaError['code'], RegExp])[] = [
    ['', 'invalid_formula', /^Character 1: expected a number, an input or \(, not the end$/],
    ['payable *', 'invalid_formula', /^Character 10: expected a number/],
    ['payable nickel', 'invalid_formula', /^Character 9: expected an operator, not nickel$/],
    ['(payable', 'invalid_formula', /^Character 9: expected \), not the end$/],
    ['silver * 2', 'invalid_formula', /^Character 1: there is no input silver; the inputs are/],
    ['nickel ^ 2', 'invalid_formula', /^Character 8: this sign has no meaning here/],
    ['nickel = 2', 'invalid_formula', /^Character 8: expected an operator/],
    ['1.2.3', 'invalid_formula', /^Character 1: write a number/],
    ['1,5', 'invalid_formula', /^Character 2: expected an operator/],
    ['1e5', 'invalid_formula', /^Character 2: expected an operator/],
    ['.5', 'invalid_formula', /^Character 1: this sign has no meaning here/],
    ['max()', 'invalid_formula', /^Character 5: expected a number/],
    ['abs(1, 2)', 'invalid_formula', /^Character 6: expected \), not ,/],
    ['round(1, 21)', 'invalid_formula', /^Character 10: expected a number of decimals from 0/],
    ['round(1, 2, near)', 'invalid_formula', /^Character 13: expected half_even, half_up/],
    ['step(1, [])', 'invalid_formula', /^Character 10: expected \[/],
    ['step(1, [[2, 1], [2, 3]])', 'invalid_formula', /^Character 18: the limits of step must/],
    ['if(1, 2, 3)', 'invalid_formula', /^Character 5: expected <= or >=/],
    ['nickel + 2', 'unit_mismatch', /^Character 10: this is in 1, but the part before it in USD/],
    ['nickel + cobalt', 'unit_mismatch', /^Character 10: this is in USD\/lb, but/],
    ['min(nickel, cobalt)', 'unit_mismatch', /^Character 13/],
    ['if(nickel < 1, 2, 3)', 'unit_mismatch', /^Character 13/],
    ['if(1 < 2, nickel, 3)', 'unit_mismatch', /^Character 19/],
    ['step(nickel, [[1, 2]])', 'unit_mismatch', /^Character 6: step compares with plain numbers/],
    ['nickel / (payable - 0.73)', 'division_by_zero', /^Character 10: this is 0, and divides$/],
    ['step(0.05, [[0.1, 18]])', 'out_of_range', /^Character 6: this is below the first limit/],
  ];
  for (const [formula, code, message] of refusals) {
    t.throws(() => calculated(formula), { name: 'FormulaError', code, message }, formula);
  }
});

t.test('depth, numbers, powers and the size of fractions are bounded', async (t) => {
  const code = 'invalid_formula' as const;
  t.equal(calculated(`${'('.repeat(32)}1${')'.repeat(32)}`), '1 1');
  t.throws(() => calculated(`${'('.repeat(33)}1${')'.repeat(33)}`), { code, message: /32 deep/ });
  t.throws(() => calculated(`${'-'.repeat(33)}1`), { code, message: /32 deep/ });
  t.throws(() => calculated('9'.repeat(41)), { code, message: /at most 40 characters/ });
  t.throws(() => calculated(`${'nickel * '.repeat(9)}nickel`), {
    code: 'unit_mismatch',
    message: /the power of USD exceeds 9/,
  });
  const long: Inputs = { long: [`0.${'9'.repeat(4_000)}`, '1'] };
  t.throws(() => calculated(`${'long * '.repeat(60)}long`, long), {
    code: 'out_of_range',
    message: /too many digits/,
  });
});

/** Random texts of the words of formulas, and formulas that are almost valid. */
const word = fc.constantFrom(
  ...['payable', 'nickel', 'floor', '1', '0', '2.5', '0.001', '9999999999999999999999999999'],
  ...['+', '-', '*', '/', '(', ')', ',', '[', ']', '<', '>=', '=', ' '],
  ...['min(', 'max(', 'abs(', 'round(', 'step(', 'if(', ', 2)', '[[1, 2]])', 'half_up', '²', '\0'],
);
const words = fc.array(word, { maxLength: 60 }).map((all) => all.join('').slice(0, 512));
const { formula: nested } = fc.letrec<{ formula: string }>((tie) => ({
  formula: fc.oneof(
    { maxDepth: 5, depthSize: 'medium' },
    fc.constantFrom('payable', 'content', '2', '0.5', '0', '7'),
    fc
      .tuple(tie('formula'), fc.constantFrom('+', '-', '*', '/'), tie('formula'))
      .map((p) => p.join(' ')),
    tie('formula').map((each) => `(${each})`),
    tie('formula').map((each) => `-${each}`),
    fc.tuple(tie('formula'), tie('formula')).map(([a, b]) => `max(${a}, ${b})`),
    fc.tuple(tie('formula'), tie('formula')).map(([a, b]) => `if(${a} < ${b}, ${b}, ${a})`),
    tie('formula').map((each) => `round(${each}, 3, half_up)`),
  ),
}));

/** Computes or refuses a formula; returns true if it was computed. */
function attempt(text: string): boolean {
  try {
    calculated(text);
    return true;
  } catch (error) {
    if (error instanceof FormulaError) return false;
    throw error;
  }
}

/** CPU time in milliseconds, which other programs of the machine do not prolong. */
function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

const LONGEST_MS = 5;

t.test('100,000 random formulas are computed or refused, each within 5 ms', async (t) => {
  let computed = 0;
  const slow: string[] = [];
  const texts = fc.oneof(
    words,
    nested.map((each) => each.slice(0, 512)),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const ms = cpuMs(() => {
        if (attempt(text)) computed += 1;
      });
      // Garbage of earlier formulas is not their work: the fastest of some tries counts.
      const again = () => cpuMs(() => attempt(text));
      if (ms > LONGEST_MS && Math.min(again(), again(), again()) > LONGEST_MS) slow.push(text);
    }),
    { numRuns: 100_000 },
  );
  t.ok(computed > 10_000, `${computed} were computed`);
  t.same(slow, []);
});
