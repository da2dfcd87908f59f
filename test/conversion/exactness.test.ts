import t from 'tap';
import type { UnitSlug } from '../../seeds/reference/units.ts';
import { type Columns, VALUE_NAMES, type ValueName } from '../../src/conversion/columns.ts';
import { type Conversion, convertedPoints, observe } from '../../src/conversion/convert.ts';
import { outcomeOf } from '../../src/conversion/outcome.ts';
import { RoundedColumn, roundExact } from '../../src/conversion/rounding.ts';
import { decimalText } from '../../src/std/decimal.ts';
import { expected } from './oracle.ts';
import {
  CURRENCY,
  columnsOf,
  dayOf,
  inverse,
  randomOf,
  ratesOf,
  textAt,
  unitOf,
} from './support.ts';

/** Legs and unit of one conversion, as texts. */
interface ConversionCase {
  readonly from: string;
  readonly to: string;
  readonly units: readonly [from: UnitSlug, to: UnitSlug];
  readonly decimals: number | null;
}

const DATE = '2024-05-15';

function conversionOf({ from, to, units }: ConversionCase): Conversion {
  const outcome = outcomeOf(
    { payable: false, currency: CURRENCY.CNY, unit: unitOf(units[0]) },
    { currency: CURRENCY.USD, unit: unitOf(units[1]) },
    ratesOf({ CNY: { [DATE]: from }, USD: { [DATE]: to } }),
  );
  if (outcome.conversion === null) throw new Error('the setting converts nothing');
  return outcome.conversion;
}

const storedText = (columns: Columns, name: ValueName, index: number): string =>
  decimalText({
    digits: BigInt(columns[name][index] as number),
    scale: columns.scale[index] as number,
  });

/** The column of random scaled integers, three by three in order, with their scales. */
function randomColumns(length: number, random: () => number, integer: () => number): Columns {
  const base = columnsOf([]);
  const triples = Array.from({ length }, () =>
    [integer(), integer(), integer()].sort((a, b) => a - b),
  );
  const column = (at: number) => Float64Array.from(triples, (each) => each[at] as number);
  return {
    ...base,
    length,
    day: new Int32Array(length).fill(dayOf(DATE)),
    low: column(0),
    mid: column(1),
    high: column(2),
    scale: Uint8Array.from({ length }, () => Math.floor(random() * 11)),
  };
}

/** Converts every value and compares it with the oracle; returns the differences. */
function wrongOf(columns: Columns, setting: ConversionCase): string[] {
  const points = convertedPoints(observe(columns, conversionOf(setting)), setting);
  const factorTo = unitOf(setting.units[1]).factor;
  const factorFrom = unitOf(setting.units[0]).factor;
  const wrong: string[] = [];
  for (const name of VALUE_NAMES) {
    for (let index = 0; index < columns.length; index += 1) {
      const text = storedText(columns, name, index);
      const divisors = [factorFrom, setting.from];
      const right = expected([text, factorTo, setting.to], divisors, setting.decimals);
      const got = textAt(points[name], index);
      if (got !== right) wrong.push(`${text} ${JSON.stringify(setting)}: ${got}, not ${right}`);
    }
  }
  return wrong;
}

const MASS = ['tonne', 'kilogram', 'gram', 'pound', 'short-ton', 'long-ton', 'troy-ounce'] as const;

t.test('no value of 1,080,000 random ones differs from long division', async (t) => {
  const random = randomOf(20_240_515);
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  const rate = () => {
    const decimals = pick([0, 2, 4, 4, 4, 5, 8]);
    const digits = String(1 + Math.floor(random() * 10 ** pick([3, 5, 6, 7])));
    const padded = digits.padStart(decimals + 1, '0');
    return decimals === 0 ? digits : `${padded.slice(0, -decimals)}.${padded.slice(-decimals)}`;
  };
  const integer = () => {
    const sign = random() < 0.15 ? -1 : 1;
    return sign * Math.floor(random() * 10 ** pick([1, 3, 5, 6, 7, 9, 12, 15]));
  };
  const wrong: string[] = [];
  for (let batch = 0; batch < 600; batch += 1) {
    const decimals = random() < 0.6 ? null : Math.floor(random() * 11);
    const units = [pick(MASS), pick(MASS)] as const;
    const setting = { from: rate(), to: rate(), units, decimals };
    wrong.push(...wrongOf(randomColumns(600, random, integer), setting));
  }
  t.same(wrong.slice(0, 5), []);
});

t.test('no exact tie of 120,000 goes the wrong way, negative ones included', async (t) => {
  const random = randomOf(7);
  const wrong: string[] = [];
  for (let batch = 0; batch < 100; batch += 1) {
    // m = from × j, so that m × to / from is j × to: a number of seven digits that ends in 5.
    const from = 10_000 + Math.floor(random() * 90_000);
    const setting: ConversionCase = {
      from: decimalText({ digits: BigInt(from), scale: 4 }),
      to: '1',
      units: ['tonne', 'tonne'],
      decimals: batch % 2 === 0 ? null : batch % 11,
    };
    const integer = () => {
      const tie = Math.floor(random() * 1_000_000) * 10 + 5;
      return (random() < 0.5 ? -1 : 1) * from * tie;
    };
    wrong.push(...wrongOf(randomColumns(400, random, integer), setting));
  }
  t.same(wrong.slice(0, 5), []);
});

t.test('numbers as near to a tie as any can be fall on their own side', async (t) => {
  const random = randomOf(99);
  const wrong: string[] = [];
  for (let batch = 0; batch < 200; batch += 1) {
    // With m × to = from × (n + ½) ± ½, the number lies 1 / (2 from) beside a tie.
    const from = BigInt(Math.floor(random() * 9e12) + 1e12) * 2n + 1n;
    const to = BigInt(Math.floor(random() * 999_998) + 2);
    const setting: ConversionCase = {
      from: String(from),
      to: String(to),
      units: ['tonne', 'tonne'],
      decimals: 0,
    };
    const half = (side: bigint) => (((from + side) / 2n) * inverse(to % from, from)) % from;
    const integers = [half(1n), half(-1n)].map(Number).sort((a, b) => a - b);
    const columns = randomColumns(2, random, () => integers[0] ?? 0);
    const mid = Float64Array.from(integers);
    wrong.push(
      ...wrongOf({ ...columns, mid, low: mid, high: mid, scale: new Uint8Array(2) }, setting),
    );
  }
  t.same(wrong.slice(0, 5), []);
});

t.test('doubles decide nearly everything, and never against exact arithmetic', async (t) => {
  const random = randomOf(3);
  const column = new RoundedColumn(1, { decimals: null });
  let undecided = 0;
  for (let round = 0; round < 100_000; round += 1) {
    const numerator = BigInt(Math.floor(random() * 1e9));
    const value = { numerator, denominator: 10n ** BigInt(Math.floor(random() * 12)) };
    const double = Number(value.numerator) / Number(value.denominator);
    if (!column.tryRound(0, double, double * 1e-15)) {
      undecided += 1;
      continue;
    }
    if (textAt(column, 0) !== decimalText(roundExact(value, { decimals: null }))) {
      t.fail(`${numerator} / ${value.denominator} came out as ${textAt(column, 0)}`);
    }
  }
  t.ok(undecided < 4000, `${undecided} of 100,000 needed exact arithmetic`);
});

t.test('a double that may belong below a power of ten decides nothing', async (t) => {
  const column = new RoundedColumn(1, { decimals: null });
  t.notOk(column.tryRound(0, 10.000001, 2.4e-5), 'the value may be 9.99998');
  t.notOk(column.tryRound(0, 0, 0));
  t.notOk(column.tryRound(0, 1e-30, 1e-45));
  t.notOk(column.tryRound(0, Number.NaN, 0));
  t.notOk(column.tryRound(0, Number.POSITIVE_INFINITY, 0));
});

const bare = (from: string, to: string, decimals: number | null): ConversionCase => ({
  from,
  to,
  units: ['tonne', 'tonne'],
  decimals,
});

const convertOne = (amount: string, setting: ConversionCase): string | null => {
  const observations = observe(columnsOf([[DATE, null, amount, null]]), conversionOf(setting));
  return textAt(convertedPoints(observations, setting).mid, 0);
};

t.test('rounding that carries into a new digit keeps the number', async (t) => {
  t.equal(convertOne('9.999995', bare('1', '1', null)), '10');
  t.equal(convertOne('9.999994', bare('1', '1', null)), '9.99999');
  t.equal(convertOne('999.9995', bare('1', '1', null)), '1000');
  t.equal(convertOne('999.9985', bare('1', '1', null)), '999.998', 'an even digit stays');
  t.equal(convertOne('-9.999995', bare('1', '1', null)), '-10');
  t.equal(convertOne('99999.995', bare('1', '1', null)), '100000');
});

t.test('a number below 0.01 keeps six significant digits, however small', async (t) => {
  t.equal(convertOne('0.0012345678', bare('1', '1', null)), '0.00123457');
  t.equal(
    convertOne('0.0000000001', bare('7', '0.0000000003', null)),
    '0.00000000000000000000428571',
  );
  t.equal(
    convertOne('0.0000000001', bare('999999999999999', '0.0000000001', null)),
    '0.00000000000000000000000000000000001',
  );
  t.equal(convertOne('0', bare('7', '3', null)), '0');
});

t.test('a negative number that rounds to nothing is 0, not -0', async (t) => {
  const column = new RoundedColumn(2, { decimals: 2 });
  t.ok(column.tryRound(0, -0.004, 1e-18));
  column.roundExactly(1, { numerator: -4n, denominator: 1000n });
  t.ok(Object.is(column.scaled[0], 0));
  t.ok(Object.is(column.scaled[1], 0));
});

t.test('a number whose digits no double holds is exact to the last one', async (t) => {
  t.equal(convertOne('1234567890123', bare('7', '1.1', 10)), '194003525590.7571428571');
  t.equal(
    convertOne('999999999999999', bare('0.0000000001', '7.77', null)),
    '77699999999999922300000000',
  );
  t.equal(convertOne('-999999999999.999', bare('0.03', '1', null)), '-33333333333333.3');
  t.equal(convertOne('999999999999999', bare('0.3', '1', null)), '3333333333333330');
});

t.test('trailing zeros never cost a number its scaled integer', async (t) => {
  const observations = observe(
    columnsOf([[DATE, null, '1000000000', null]]),
    conversionOf(bare('1', '1', 10)),
  );
  const { mid } = convertedPoints(observations, { decimals: 10 });
  t.equal(mid.wide, null);
  t.equal(mid.scaled[0], 1_000_000_000);
});
