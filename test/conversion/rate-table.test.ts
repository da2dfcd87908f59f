import t from 'tap';
import { NO_DAY } from '../../src/conversion/calendar.ts';
import { convertedPoints, observe } from '../../src/conversion/convert.ts';
import { pairOf, type RatePair, rateDay } from '../../src/conversion/rate-table.ts';
import { SAME_UNIT } from '../../src/conversion/units.ts';
import { dayText } from '../../src/std/days.ts';
import { CURRENCY, columnsOf, dayOf, ratesOf, textAt, textsOf } from './support.ts';

const RATES = ratesOf({
  USD: { '2024-03-28': '1.0811', '2024-04-02': '1.0749', '2024-04-03': '1.0783' },
  CNY: { '2024-03-28': '7.8144', '2024-04-02': '7.7768' },
  INR: { '2024-04-03': '89.96' },
});

const pair = (from: number, to: number): RatePair => {
  const found = pairOf(RATES, from, to);
  if (!found) throw new Error('no pair');
  return found;
};

const used = (each: RatePair, date: string): string | null => {
  const day = rateDay(each, dayOf(date));
  return day === NO_DAY ? null : dayText(day);
};

t.test(
  'the rate of the day itself is used, else the latest before it, never a later one',
  async (t) => {
    const dollars = pair(CURRENCY.EUR, CURRENCY.USD);
    t.equal(used(dollars, '2024-04-02'), '2024-04-02');
    t.equal(used(dollars, '2024-04-01'), '2024-03-28', 'over Easter');
    t.equal(used(dollars, '2024-03-27'), null, 'nothing before the first');
  },
);

t.test('a rate is used up to 7 days after its own, not 8', async (t) => {
  const dollars = pair(CURRENCY.EUR, CURRENCY.USD);
  t.equal(used(dollars, '2024-04-10'), '2024-04-03');
  t.equal(used(dollars, '2024-04-11'), null);
});

t.test('both legs are of one day, the latest that has both', async (t) => {
  const yuan = pair(CURRENCY.CNY, CURRENCY.USD);
  t.equal(used(yuan, '2024-04-03'), '2024-04-02', 'the dollar alone has a rate of the 3rd');
  t.equal(used(yuan, '2024-04-09'), '2024-04-02');
  t.equal(used(yuan, '2024-04-10'), null);
  t.equal(used(pair(CURRENCY.CNY, CURRENCY.INR), '2024-04-03'), null, 'no common day');
});

t.test('the base has a rate of one on every day that the other leg has', async (t) => {
  const columns = columnsOf([['2024-04-02', null, '100', null]]);
  const conversion = { unit: SAME_UNIT, pair: pair(CURRENCY.USD, CURRENCY.EUR), vat: null };
  const { fx, mid } = convertedPoints(observe(columns, conversion), { decimals: null });
  t.equal(fx && textAt(fx.from, 0), '1.0749');
  t.equal(fx && textAt(fx.to, 0), '1');
  t.equal(textAt(mid, 0), '93.0319');
});

t.test('a currency without any rate makes no pair', async (t) => {
  t.equal(pairOf(RATES, CURRENCY.USD, CURRENCY.KRW), null);
  t.equal(pairOf(RATES, CURRENCY.KRW, CURRENCY.EUR), null);
});

t.test('a point without a rate is null in all three, the others are converted', async (t) => {
  const columns = columnsOf([
    ['2024-03-20', '90', '100', '110'],
    ['2024-04-02', '90', '100', null],
  ]);
  const conversion = { unit: SAME_UNIT, pair: pair(CURRENCY.EUR, CURRENCY.USD), vat: null };
  const observations = observe(columns, conversion);
  const points = convertedPoints(observations, { decimals: null });
  t.equal(observations.lacking, 'no-rate');
  t.same(textsOf(points.low), [null, '96.741']);
  t.same(textsOf(points.mid), [null, '107.49']);
  t.same(textsOf(points.high), [null, null]);
  t.equal(points.fx?.day[0], NO_DAY);
});
