import fc from 'fast-check';
import t from 'tap';
import { NO_DAY } from '../../src/conversion/calendar.ts';
import { segmentsOf } from '../../src/conversion/rate-segments.ts';
import { pairOf, rateDay } from '../../src/conversion/rate-table.ts';
import { dayText } from '../../src/std/days.ts';
import { CURRENCY, type Iso, ratesOf } from './support.ts';

const DAYS = 90;
const dates = fc
  .uniqueArray(fc.nat(DAYS - 1), { minLength: 1, maxLength: 12 })
  .map((days) => days.map((day) => dayText(day + 40)));
const ratesOn = (days: readonly string[]) => Object.fromEntries(days.map((day) => [day, '1.5']));

/** True if any of the eight days up to a day is among some dates. */
const hasNear = (days: readonly string[], day: number): boolean =>
  Array.from({ length: 8 }, (_, back) => dayText(day - back)).some((each) => days.includes(each));

t.test('segments are all days in order, and lack what their days lack', async (t) => {
  const counts = new Map<string, number>();
  const pairs = fc.constantFrom<readonly [Iso, Iso]>(
    ['USD', 'CNY'],
    ['CNY', 'USD'],
    ['EUR', 'USD'],
    ['CNY', 'EUR'],
  );
  fc.assert(
    fc.property(dates, dates, pairs, (usd, cny, [from, to]) => {
      const table = ratesOf({ USD: ratesOn(usd), CNY: ratesOn(cny) });
      const pair = pairOf(table, CURRENCY[from], CURRENCY[to]);
      if (!pair) throw new Error('no pair');
      const segments = segmentsOf(pair);
      const by = { EUR: null, USD: usd, CNY: cny } as Record<string, string[] | null>;
      for (let day = 20; day < DAYS + 80; day += 1) {
        const found = segments.filter(({ first, last }) => first <= day && day <= last);
        if (found.length !== 1) throw new Error(`${found.length} segments of day ${day}`);
        const lacking = found[0]?.lacking.map(({ iso }) => iso) ?? [];
        const legs = [from, to].filter((iso) => iso !== 'EUR');
        const absent = legs.filter((iso) => !hasNear(by[iso] ?? [], day));
        const isCovered = rateDay(pair, day) !== NO_DAY;
        const wanted = isCovered ? [] : absent.length > 0 ? absent : legs;
        if (lacking.join() !== wanted.join()) throw new Error(`${day}: ${lacking}, not ${wanted}`);
        const kind = isCovered ? 'covered' : `${absent.length} of ${legs.length} lack`;
        counts.set(kind, (counts.get(kind) ?? 0) + 1);
      }
      return segments.every(({ first, last }, index) => {
        const next = segments[index + 1]?.first ?? Number.POSITIVE_INFINITY;
        return first <= last && next === last + 1;
      });
    }),
    { numRuns: 500 },
  );
  t.equal(counts.size, 5, JSON.stringify([...counts]));
  t.ok(
    [...counts.values()].every((each) => each > 100),
    JSON.stringify([...counts]),
  );
});

t.test('segments are made once for a pair', async (t) => {
  const table = ratesOf({ USD: { '2024-01-02': '1.1' } });
  const segments = () => {
    const pair = pairOf(table, CURRENCY.USD, CURRENCY.EUR);
    return pair && segmentsOf(pair);
  };
  t.ok(segments());
  t.equal(segments(), segments());
});
