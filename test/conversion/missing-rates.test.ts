import fc from 'fast-check';
import t from 'tap';
import { METHODS, type Method } from '../../src/catalog/analytics.ts';
import { aggregatedPoints } from '../../src/conversion/aggregate.ts';
import { observe } from '../../src/conversion/convert.ts';
import { outcomeOf } from '../../src/conversion/outcome.ts';
import { dayText } from '../../src/std/days.ts';
import { expected, expectedExtreme, expectedMean, type Quotient } from './oracle.ts';
import { CURRENCY, columnsOf, type PointTexts, ratesOf, textAt, unitOf } from './support.ts';

const FIRST = Date.UTC(2024, 0, 1);
const DAY_MS = 86_400_000;
const dateOf = (day: number): string => new Date(FIRST + day * DAY_MS).toISOString().slice(0, 10);

/** Half a year; rates are so rare that months have some, all or no days with a rate. */
const DAYS = 182;

const decimal = fc
  .tuple(fc.integer({ min: -1e9, max: 1e9 }), fc.integer({ min: 0, max: 6 }))
  .map(([digits, scale]) => (digits / 10 ** scale).toFixed(scale));
const rate = fc.integer({ min: 1, max: 99_999_999 }).map((each) => (each / 10_000).toFixed(4));
const days = <T>(value: fc.Arbitrary<T>, maxLength: number) =>
  fc.uniqueArray(fc.tuple(fc.nat(DAYS - 1), value), {
    selector: ([day]) => day,
    minLength: 1,
    maxLength,
  });

const world = fc.record({
  mids: days(decimal, 40),
  legs: days(fc.tuple(fc.option(rate), fc.option(rate)), 20),
  method: fc.constantFrom(...METHODS),
  decimals: fc.option(fc.integer({ min: 0, max: 10 })),
});

type ByDay = readonly (readonly [day: number, text: string])[];

/** The legs of a day: those of the latest day, at most seven back, that has both. */
function legsOf(day: number, usd: ByDay, cny: ByDay): [string, string] | null {
  for (let back = 0; back <= 7; back += 1) {
    const to = usd.find(([each]) => each === day - back);
    const from = cny.find(([each]) => each === day - back);
    if (to && from) return [from[1], to[1]];
  }
  return null;
}

/** One month by the contract: its value, and the number of used and of omitted observations. */
function monthOf(all: readonly (Quotient | null)[], method: Method, decimals: number | null) {
  const used = all.filter((each) => each !== null);
  const counts = [used.length, all.length - used.length];
  const [place] = method === 'first' ? all : method === 'last' ? all.slice(-1) : used;
  if (!place) return [null, ...counts];
  if (method === 'average') return [expectedMean(used, decimals), ...counts];
  if (method === 'min') return [expectedExtreme(used, 1, decimals), ...counts];
  if (method === 'max') return [expectedExtreme(used, -1, decimals), ...counts];
  return [expected(...place, decimals), ...counts];
}

t.test('aggregates with missing rates are those of the observations that have one', async (t) => {
  const seen = { some: 0, none: 0, all: 0 };
  fc.assert(
    fc.property(world, ({ mids, legs, method, decimals }) => {
      const of = (leg: 0 | 1): ByDay =>
        legs.flatMap(([day, both]) => (both[leg] === null ? [] : [[day, both[leg]]]));
      const [usd, cny] = [of(0), of(1)];
      fc.pre(usd.length > 0 && cny.length > 0);
      const sorted = mids.toSorted(([a], [b]) => a - b);
      const byDate = (rates: ByDay) =>
        Object.fromEntries(rates.map(([day, text]) => [dateOf(day), text]));
      const { conversion } = outcomeOf(
        { payable: false, currency: CURRENCY.CNY, unit: unitOf('tonne') },
        { currency: CURRENCY.USD, unit: unitOf('pound') },
        ratesOf({ USD: byDate(usd), CNY: byDate(cny) }),
      );
      const rows = sorted.map(([day, mid]): PointTexts => [dateOf(day), null, mid, null]);
      const aggregation = { period: 'month', method } as const;
      const points = aggregatedPoints(observe(columnsOf(rows), conversion), aggregation, {
        decimals,
      });
      const months = Map.groupBy(sorted, ([day]) => dateOf(day).slice(0, 7));
      const wanted = [...months].map(([month, each]) => {
        const quotients = each.map(([day, mid]): Quotient | null => {
          const legs = legsOf(day, usd, cny);
          return (
            legs && [
              [mid, '0.45359237', legs[1]],
              ['1000', legs[0]],
            ]
          );
        });
        return [month, ...monthOf(quotients, method, decimals)];
      });
      const found = Array.from(points.day, (day, index) => [
        dayText(day).slice(0, 7),
        textAt(points.mid, index),
        points.periods?.observations[index],
        points.periods?.leftOut[index],
      ]);
      for (const [, , used, leftOut] of wanted) {
        seen[leftOut === 0 ? 'none' : used === 0 ? 'all' : 'some'] += 1;
      }
      if (JSON.stringify(found) === JSON.stringify(wanted)) return;
      throw new Error(`${method}: ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
    }),
    { numRuns: 1_500 },
  );
  t.ok(seen.some > 300 && seen.none > 300 && seen.all > 300, JSON.stringify(seen));
});
