import fc from 'fast-check';
import t from 'tap';
import type { UnitSlug } from '../../seeds/reference/units.ts';
import {
  type Columns,
  nativePoints,
  VALUE_NAMES,
  type ValueName,
} from '../../src/conversion/columns.ts';
import {
  type Conversion,
  convertedPoints,
  exactValue,
  observe,
} from '../../src/conversion/convert.ts';
import { outcomeOf } from '../../src/conversion/outcome.ts';
import { compare, type Rational, rationalText, times } from '../../src/conversion/rational.ts';
import {
  CURRENCY,
  columnsOf,
  type Iso,
  type PointTexts,
  ratesOf,
  textAt,
  textsOf,
  unitOf,
} from './support.ts';

const DATE = '2019-11-08';
const RATES = ratesOf({
  USD: { [DATE]: '1.1034' },
  CNY: { [DATE]: '7.7115' },
  JPY: { [DATE]: '120.72' },
  KRW: { [DATE]: '1276.66' },
});
const MASS = ['tonne', 'kilogram', 'gram', 'pound', 'short-ton', 'long-ton', 'troy-ounce'] as const;

const currency = fc.constantFrom<Iso>('EUR', 'USD', 'CNY', 'JPY', 'KRW');
const unit = fc.constantFrom<UnitSlug>(...MASS);
const currencyAndUnit = fc.record({ currency, unit });
type IsoAndUnit = { currency: Iso; unit: UnitSlug };

const decimal = fc
  .tuple(fc.integer({ min: -1e9, max: 1e9 }), fc.integer({ min: 0, max: 6 }))
  .map(([digits, scale]) => (digits / 10 ** scale).toFixed(scale));
const rounding = fc.record({ decimals: fc.option(fc.integer({ min: 0, max: 10 })) });

function conversion(from: IsoAndUnit, to: IsoAndUnit): Conversion | null {
  const outcome = outcomeOf(
    { payable: false, currency: CURRENCY[from.currency], unit: unitOf(from.unit) },
    { currency: CURRENCY[to.currency], unit: unitOf(to.unit) },
    RATES,
  );
  if (outcome.status === 'refused') throw new Error('refused');
  return outcome.conversion;
}

/** The factor of a conversion on the day, exactly. */
function factor(from: IsoAndUnit, to: IsoAndUnit): Rational {
  const observations = observe(columnsOf([[DATE, null, '1', null]]), conversion(from, to));
  return exactValue(observations, 'mid', 0) ?? { numerator: 0n, denominator: 1n };
}

const equal = (a: Rational, b: Rational): boolean => compare(a, b) === 0;

t.test('there and back is the same number before it is rounded', async () => {
  fc.assert(
    fc.property(currencyAndUnit, currencyAndUnit, decimal, (a, b, amount) => {
      const there = times(rationalText(amount), factor(a, b));
      return equal(times(there, factor(b, a)), rationalText(amount));
    }),
  );
});

t.test('a direct conversion is the same as one over any other currency and unit', async () => {
  fc.assert(
    fc.property(currencyAndUnit, currencyAndUnit, currencyAndUnit, (a, b, c) =>
      equal(factor(a, c), times(factor(a, b), factor(b, c))),
    ),
  );
});

t.test('currency and unit may be converted in either order', async () => {
  fc.assert(
    fc.property(currencyAndUnit, currencyAndUnit, (a, b) => {
      const currencyFirst = { currency: b.currency, unit: a.unit };
      const unitFirst = { currency: a.currency, unit: b.unit };
      return equal(
        times(factor(a, currencyFirst), factor(currencyFirst, b)),
        times(factor(a, unitFirst), factor(unitFirst, b)),
      );
    }),
  );
});

t.test('low, mid and high keep their order through rounding', async () => {
  const value = (columns: ReturnType<typeof convertedPoints>, name: ValueName) =>
    rationalText(textAt(columns[name], 0) ?? '');
  fc.assert(
    fc.property(
      currencyAndUnit,
      currencyAndUnit,
      fc.tuple(decimal, decimal, decimal),
      rounding,
      (a, b, three, rule) => {
        const [low = '', mid = '', high = ''] = [...three].sort((x, y) =>
          compare(rationalText(x), rationalText(y)),
        );
        const observations = observe(columnsOf([[DATE, low, mid, high]]), conversion(a, b));
        const points = convertedPoints(observations, rule);
        return (
          compare(value(points, 'low'), value(points, 'mid')) <= 0 &&
          compare(value(points, 'mid'), value(points, 'high')) <= 0
        );
      },
    ),
    { numRuns: 2000 },
  );
});

t.test('numbers one ulp of a double apart keep their order too', async (t) => {
  const stored: PointTexts[] = [];
  for (let step = 0; step < 500; step += 1) {
    const at = (offset: number) => `${99_999_999_999_000 + 3 * step + offset}.5`;
    stored.push([DATE, at(0), at(1), at(2)]);
  }
  const points = convertedPoints(
    observe(
      columnsOf(stored),
      conversion({ currency: 'CNY', unit: 'tonne' }, { currency: 'USD', unit: 'pound' }),
    ),
    { decimals: null },
  );
  for (let index = 0; index < 500; index += 1) {
    const [low, mid, high] = VALUE_NAMES.map((name) =>
      rationalText(textAt(points[name], index) ?? ''),
    );
    if (!low || !mid || !high || compare(low, mid) > 0 || compare(mid, high) > 0) {
      t.fail(`out of order at ${index}`);
    }
  }
});

t.test('stored values are passed on as they are, columns and all', async (t) => {
  const columns: Columns = columnsOf([[DATE, '72.5', '73', '73.75']]);
  const points = nativePoints(columns);
  t.equal(points.mid.scaled, columns.mid);
  t.equal(points.mid.scale, columns.scale);
  t.same(textsOf(points.low), ['72.5']);
  t.equal(points.fx, null);
});

t.test('a payable is not applicable, whatever is asked for', async (t) => {
  const payable = { payable: true, currency: null, unit: unitOf('percent') };
  for (const target of [
    { currency: CURRENCY.EUR, unit: null },
    { currency: null, unit: unitOf('pound') },
    { currency: CURRENCY.EUR, unit: unitOf('percent') },
  ]) {
    t.match(outcomeOf(payable, target, RATES), { status: 'not-applicable', reason: 'payable' });
  }
});

t.test('the price of its own currency and unit is unchanged', async (t) => {
  const price = { payable: false, currency: CURRENCY.USD, unit: unitOf('tonne') };
  for (const target of [
    { currency: CURRENCY.USD, unit: null },
    { currency: null, unit: unitOf('tonne') },
    { currency: CURRENCY.USD, unit: unitOf('tonne') },
  ]) {
    t.same(outcomeOf(price, target, null), { status: 'unchanged', reason: null, conversion: null });
  }
});

t.test('an impossible conversion is refused, with the reason', async (t) => {
  const price = { payable: false, currency: CURRENCY.USD, unit: unitOf('kilowatt-hour') };
  const toMass = { currency: CURRENCY.EUR, unit: unitOf('kilogram') };
  t.match(outcomeOf(price, toMass, RATES), { status: 'refused', reason: 'incompatible-unit' });
  const toPounds = { currency: CURRENCY.GBP, unit: null };
  t.match(outcomeOf(price, toPounds, RATES), { status: 'refused', reason: 'no-rate' });
  t.match(outcomeOf(price, toPounds, null), { status: 'refused', reason: 'no-rate' });
  const fromPounds = { ...price, currency: CURRENCY.GBP };
  t.match(outcomeOf(fromPounds, { currency: CURRENCY.EUR, unit: null }, RATES), {
    reason: 'no-rate',
  });
});
