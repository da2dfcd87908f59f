import t from 'tap';
import type { UnitSlug } from '../../seeds/reference/units.ts';
import { convertedPoints, exactValue, observe } from '../../src/conversion/convert.ts';
import { type Outcome, outcomeOf } from '../../src/conversion/outcome.ts';
import { BY_RULE, roundedText } from '../../src/conversion/rounding.ts';
import { receiptOf } from '../../src/prices/write/receipt.ts';
import { dayText } from '../../src/std/days.ts';
import { CURRENCY, columnsOf, type Iso, ratesOf, textAt, unitOf } from './support.ts';

const RATES = ratesOf({
  USD: { '2019-11-08': '1.1034', '2019-11-11': '1.1041', '2026-04-13': '1.1684' },
  CNY: { '2019-11-08': '7.7115', '2019-11-11': '7.7322', '2026-04-13': '7.9827' },
  JPY: { '2019-11-08': '120.72', '2019-11-11': '120.41' },
});

interface Wanted {
  readonly currency?: Iso;
  readonly unit?: UnitSlug;
  readonly decimals?: number;
}

const outcomeFor = (from: Iso, unit: UnitSlug, to: Wanted): Outcome =>
  outcomeOf(
    { payable: false, currency: CURRENCY[from], unit: unitOf(unit) },
    {
      currency: to.currency ? CURRENCY[to.currency] : null,
      unit: to.unit ? unitOf(to.unit) : null,
    },
    RATES,
  );

function convert(amount: string, from: Iso, unit: UnitSlug, to: Wanted, date = '2019-11-08') {
  const outcome = outcomeFor(from, unit, to);
  const observations = observe(columnsOf([[date, null, amount, null]]), outcome.conversion);
  return convertedPoints(observations, { decimals: to.decimals ?? null });
}

const mid = (...args: Parameters<typeof convert>) => textAt(convert(...args).mid, 0);

t.test('the worked examples of the contract come out to the digit', async (t) => {
  t.equal(mid('16250', 'USD', 'tonne', { unit: 'pound' }), '7.37088');
  t.equal(mid('17.50', 'USD', 'pound', { unit: 'tonne' }), '38580.9');
  t.equal(mid('57500', 'CNY', 'tonne', { currency: 'USD' }), '8227.39');
  t.equal(mid('57500', 'CNY', 'tonne', { currency: 'EUR', unit: 'pound' }), '3.38216');
  t.equal(mid('17.50', 'USD', 'pound', { currency: 'JPY', unit: 'kilogram' }), '4221.03');
});

t.test('a price of a Sunday uses the rates of the Friday before', async (t) => {
  const points = convert('57500', 'CNY', 'tonne', { currency: 'USD' }, '2019-11-10');
  t.equal(textAt(points.mid, 0), '8227.39');
  t.equal(dayText(points.fx?.day[0] ?? 0), '2019-11-08');
  t.equal(points.fx && textAt(points.fx.from, 0), '7.7115');
  t.equal(points.fx && textAt(points.fx.to, 0), '1.1034');
  t.equal(points.fx?.pair.base, 'EUR');
});

t.test('a payable asked for in another currency and unit stays as it is', async (t) => {
  const percent = { payable: true, currency: null, unit: unitOf('percent') };
  const target = { currency: CURRENCY.EUR, unit: unitOf('pound') };
  const outcome = outcomeOf(percent, target, RATES);
  t.same(outcome, { status: 'not-applicable', reason: 'payable', conversion: null });
});

t.test('the worked examples of the domain page hold to the digits they show', async (t) => {
  t.equal(mid('6.25', 'USD', 'pound', { unit: 'tonne', decimals: 3 }), '13778.891');
  t.equal(mid('6.25', 'USD', 'pound', { unit: 'tonne' }), '13778.89');
  t.equal(mid('18800', 'USD', 'tonne', { unit: 'pound', decimals: 4 }), '8.5275');
  t.equal(mid('20.30', 'USD', 'kilogram', { unit: 'tonne' }), '20300');
  const pound = { unit: 'tonne', decimals: 10 } as const;
  t.equal(mid('1', 'USD', 'pound', { ...pound }), '2204.6226218488');
  t.equal(mid('0.01', 'USD', 'pound', { ...pound }), '22.0462262185');
  const yuan = { currency: 'USD', decimals: 2 } as const;
  t.equal(mid('160000', 'CNY', 'tonne', yuan, '2026-04-13'), '23418.64');
  t.equal(mid('1', 'USD', 'tonne', { currency: 'CNY', decimals: 6 }, '2026-04-13'), '6.832164');
  const { conversion } = outcomeFor('CNY', 'tonne', { currency: 'USD' });
  const observations = observe(columnsOf([['2026-04-13', null, '160000', null]]), conversion);
  const value = exactValue(observations, 'mid', 0) ?? { numerator: 0n, denominator: 1n };
  const net = { numerator: value.numerator * 100n, denominator: value.denominator * 113n };
  t.equal(roundedText(net, BY_RULE), '20724.46', 'without 13 % of value added tax');
});

t.test('the receipt says everything that a hand calculation needs', async (t) => {
  const from = { currency: 'CNY', unitOfMeasure: 'Tonne' };
  const to = { currency: 'EUR', unitOfMeasure: 'Pound' };
  const outcome = outcomeFor('CNY', 'tonne', { currency: 'EUR', unit: 'pound' });
  t.same(receiptOf(outcome, from, to, null, BY_RULE), {
    status: 'converted',
    reason: null,
    from,
    to,
    unitFactor: { multiply: '0.45359237', divide: '1000' },
    source: 'ECB',
    rounding: 'half-even, 6 significant, at least 2 decimals',
  });
});

t.test(
  'a receipt of a unit alone names no source, one with missing rates is partial',
  async (t) => {
    const from = { currency: 'USD', unitOfMeasure: 'Tonne' };
    const unitOnly = outcomeFor('USD', 'tonne', { unit: 'kilogram' });
    const pounds = receiptOf(unitOnly, from, { ...from, unitOfMeasure: 'Kilogram' }, null, {
      decimals: 4,
    });
    t.match(pounds, { status: 'converted', source: null, rounding: 'half-even, 4 decimals' });
    const currencyOnly = outcomeFor('USD', 'tonne', { currency: 'CNY' });
    const partial = receiptOf(currencyOnly, from, { ...from, currency: 'CNY' }, 'no-rate', BY_RULE);
    t.match(partial, {
      status: 'partial',
      reason: 'no-rate',
      unitFactor: { multiply: '1', divide: '1' },
      source: 'ECB',
    });
  },
);

t.test('a receipt of what was not converted says why and nothing more', async (t) => {
  const from = { currency: 'USD', unitOfMeasure: 'Kilowatt hour' };
  const to = { currency: 'USD', unitOfMeasure: 'Kilogram' };
  const outcome = outcomeFor('USD', 'kilowatt-hour', { unit: 'kilogram' });
  t.same(receiptOf(outcome, from, to, null, BY_RULE), {
    status: 'refused',
    reason: 'incompatible-unit',
    from,
    to,
    unitFactor: null,
    source: null,
    rounding: null,
  });
});
