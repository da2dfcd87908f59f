import t from 'tap';
import { nearestDouble, reduced } from '../../src/conversion/rational.ts';
import { type Unit, unitFactor, unitNamed } from '../../src/conversion/units.ts';
import { decimalOf, decimalText } from '../../src/std/decimal.ts';
import { ALL_UNITS, unitOf } from './support.ts';

const between = (from: Parameters<typeof unitOf>[0], to: Parameters<typeof unitOf>[0]) =>
  unitFactor(unitOf(from), unitOf(to));

t.test('the factor from tonnes to pounds is the international pound, exactly', async (t) => {
  const factor = between('tonne', 'pound');
  t.equal(factor?.multiply, '0.45359237');
  t.equal(factor?.divide, '1000');
  t.same(factor?.exact, { numerator: 45_359_237n, denominator: 100_000_000_000n });
  t.equal(factor?.nearest, 0.00045359237);
});

t.test('units of one dimension convert into one another, all others are refused', async (t) => {
  for (const from of ALL_UNITS) {
    for (const to of ALL_UNITS) {
      const factor = unitFactor(from, to);
      t.equal(factor !== null, from.dimension === to.dimension, `${from.name} to ${to.name}`);
    }
  }
});

t.test('a conversion that needs a grade, moisture or a weight is refused', async (t) => {
  t.equal(between('kilowatt-hour', 'kilogram'), null);
  t.equal(between('piece', 'tonne'), null);
  t.equal(between('metric-ton-unit', 'tonne'), null);
  t.equal(between('dry-metric-ton-unit', 'metric-ton-unit'), null);
  t.equal(between('wet-metric-tonne', 'dry-metric-tonne'), null);
  t.equal(between('dry-metric-tonne', 'tonne'), null);
  t.equal(between('percent', 'tonne'), null);
});

t.test('content and energy convert within themselves', async (t) => {
  t.match(between('metric-ton-unit', 'short-ton-unit'), { multiply: '9.0718474', divide: '10' });
  t.same(between('megawatt-hour', 'kilowatt-hour')?.exact, { numerator: 1n, denominator: 1000n });
});

t.test('a unit is found by id, name or symbol, whatever the case', async (t) => {
  const named = (text: string) => unitNamed(ALL_UNITS, text)?.name;
  t.equal(named('Tonne'), 'Tonne');
  t.equal(named('  tonne '), 'Tonne');
  t.equal(named('T'), 'Tonne');
  t.equal(named('LB'), 'Pound');
  t.equal(named('oz t'), 'Troy ounce');
  t.equal(named('mwh'), 'Megawatt hour');
  t.equal(named(unitOf('pound').uuid), 'Pound');
  t.equal(named('ton'), undefined);
  t.equal(named(''), undefined);
});

t.test('if symbols differ only in case, the exact one matches', async (t) => {
  const milli: Unit = { ...unitOf('gram'), id: 90, uuid: 'a', name: 'Milligram', symbol: 'mg' };
  const mega: Unit = { ...unitOf('gram'), id: 91, uuid: 'b', name: 'Megagram', symbol: 'Mg' };
  t.equal(unitNamed([milli, mega], 'Mg'), mega);
  t.equal(unitNamed([milli, mega], 'mg'), milli);
  t.equal(unitNamed([milli, mega], 'MG'), undefined);
});

t.test('decimals are read and written without loss', async (t) => {
  for (const text of ['0', '-0.5', '0.0000000001', '999999999999999', '1016.0469088']) {
    t.equal(decimalText(decimalOf(text)), text);
  }
  t.equal(decimalText(decimalOf('1000.00')), '1000');
  t.equal(decimalText(decimalOf('-0.00')), '0');
  for (const text of ['', '1e3', '.5', '5.', '+1', 'NaN', '1,5']) {
    t.throws(() => decimalOf(text), /plain decimal/, text);
  }
});

t.test('a fraction of huge integers still has its nearest double', async (t) => {
  const wide = { numerator: 10n ** 40n, denominator: 3n * 10n ** 40n };
  t.equal(nearestDouble(wide), 1 / 3);
  const large = { numerator: 2n ** 150n + 1n, denominator: 7n };
  t.equal(nearestDouble(large), 2 ** 150 / 7);
  const tiny = { numerator: 7n, denominator: 10n ** 40n + 1n };
  t.ok(Math.abs(nearestDouble(tiny) / 7e-40 - 1) < 4e-16);
  t.same(reduced({ numerator: -6n, denominator: 4n }), { numerator: -3n, denominator: 2n });
  t.same(reduced({ numerator: 0n, denominator: 4n }), { numerator: 0n, denominator: 1n });
});
