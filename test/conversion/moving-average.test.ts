import t from 'tap';
import { movingAverages } from '../../src/conversion/aggregate.ts';
import { exactValue, observe } from '../../src/conversion/convert.ts';
import { outcomeOf } from '../../src/conversion/outcome.ts';
import { dayText } from '../../src/std/days.ts';
import { expectedMean, type Quotient } from './oracle.ts';
import {
  CURRENCY,
  columnsOf,
  dayOf,
  type PointTexts,
  randomOf,
  ratesOf,
  textsOf,
  unitOf,
} from './support.ts';

const BY_RULE = { decimals: null };
const FIRST = dayOf('2024-01-01');

const row = (mid: string, day: number): PointTexts => [dayText(FIRST + day), null, mid, null];

const native = (mids: readonly string[], sessions: number, length = mids.length) =>
  textsOf(movingAverages(observe(columnsOf(mids.map(row)), null), sessions, length, BY_RULE));

t.test('a mean is of the sessions up to its own, and null until there are enough', async (t) => {
  t.same(native(['10', '20', '40', '70'], 3), [null, null, '23.3333', '43.3333']);
  t.same(native(['10', '20', '40', '70'], 1), ['10', '20', '40', '70']);
  t.same(native(['10', '20'], 3), [null, null]);
  t.same(native([], 3), []);
});

t.test('points after earlier sessions use them and get no mean of their own', async (t) => {
  t.same(native(['10', '20', '40', '70'], 3, 2), ['23.3333', '43.3333']);
});

t.test('a mean is rounded once, ties to even, and values that cancel out are exact', async (t) => {
  t.same(native(['1000.01', '1000.02', '1000.03'], 2), [null, '1000.02', '1000.02']);
  const [, , rest] = native(['99999999999999.9', '0.0000001', '-99999999999999.9'], 3);
  t.equal(rest, '0.0000000333333');
});

/** Random sessions with rates on most days, and gaps of rates longer than a rate lasts. */
function randomSessions(seed: number) {
  const random = randomOf(seed);
  const rows: PointTexts[] = [];
  const [usd, cny] = [new Map<number, string>(), new Map<number, string>()];
  for (let day = 0; day < 500; day += 1) {
    const isGap = day % 200 > 180;
    if (!isGap && random() < 0.6) usd.set(day, (1 + random() / 5).toFixed(4));
    if (!isGap && random() < 0.6) cny.set(day, (7 + random()).toFixed(4));
    if (random() < 0.6) {
      rows.push(row((random() * 20_000 - 1000).toFixed(Math.floor(random() * 5)), day));
    }
  }
  return { rows, usd, cny };
}

/** The rates of the latest day that has both, at most 7 days back. */
function legsOn(day: number, { usd, cny }: ReturnType<typeof randomSessions>) {
  for (let on = day; on >= day - 7; on -= 1) {
    const [to, from] = [usd.get(on), cny.get(on)];
    if (to !== undefined && from !== undefined) return { to, from };
  }
  return null;
}

t.test('every mean of converted sessions is that of exact fractions', async (t) => {
  const found = { means: 0, missing: 0 };
  for (let seed = 1; seed <= 12; seed += 1) {
    const sessions = randomSessions(seed);
    const dated = (rates: ReadonlyMap<number, string>) =>
      Object.fromEntries([...rates].map(([day, rate]) => [dayText(FIRST + day), rate]));
    const { conversion } = outcomeOf(
      { payable: false, currency: CURRENCY.CNY, unit: unitOf('tonne') },
      { currency: CURRENCY.USD, unit: unitOf('pound') },
      ratesOf({ USD: dated(sessions.usd), CNY: dated(sessions.cny) }),
    );
    const observations = observe(columnsOf(sessions.rows), conversion);
    const exact = sessions.rows.map(([date, , mid]): Quotient | null => {
      const legs = legsOn(dayOf(date) - FIRST, sessions);
      return (
        legs && [
          [mid, '0.45359237', legs.to],
          ['1000', legs.from],
        ]
      );
    });
    for (const [count, decimals] of [
      [1, null],
      [2, 3],
      [20, null],
      [250, 0],
    ] as const) {
      const wanted = exact.map((_, at) => {
        const of = at + 1 < count ? [] : exact.slice(at + 1 - count, at + 1);
        const rated = of.filter((each) => each !== null);
        return rated.length === count ? expectedMean(rated, decimals) : null;
      });
      const means = movingAverages(observations, count, exact.length, { decimals });
      t.same(textsOf(means), wanted, `${seed}: ${count} sessions`);
      found.means += wanted.filter((each) => each !== null).length;
      found.missing += wanted.slice(count).filter((each) => each === null).length;
    }
  }
  t.ok(found.means > 5_000 && found.missing > 500, JSON.stringify(found));
});

t.test(
  'a mean halfway between two numbers is even, with fractions that no sum holds',
  async (t) => {
    const { conversion } = outcomeOf(
      { payable: false, currency: CURRENCY.USD, unit: unitOf('tonne') },
      { currency: CURRENCY.EUR, unit: null },
      ratesOf({ USD: { [dayText(FIRST)]: '3' } }),
    );
    // Thirds and two thirds: 1/3 and 2/3, 4/3 and 5/3, -1/3 and -2/3.
    const mids = ['1', '2', '4', '5', '-1', '-2'];
    const observations = observe(columnsOf(mids.map(row)), conversion);
    const means = textsOf(movingAverages(observations, 2, mids.length, { decimals: 0 }));
    t.same([means[1], means[3], means[5]], ['0', '2', '0']);
  },
);

t.test('means of many sessions at mean rates are exact, and take little time', async (t) => {
  const random = randomOf(41);
  const [usd, cny]: Record<string, string>[] = [{}, {}];
  for (let day = dayOf('1999-01-04'); day < dayOf('2026-01-10'); day += 1) {
    if (usd) usd[dayText(day)] = (1 + random() / 5).toFixed(4);
    if (cny) cny[dayText(day)] = (7 + random()).toFixed(4);
  }
  const { conversion } = outcomeOf(
    { payable: false, currency: CURRENCY.USD, unit: unitOf('tonne'), meanOf: 'month' },
    { currency: CURRENCY.CNY, unit: null },
    ratesOf({ USD: usd ?? {}, CNY: cny ?? {} }),
  );
  const rows = Array.from({ length: 27 * 12 }, (_, month): PointTexts => {
    const date = new Date(Date.UTC(1999, month + 1, 0)).toISOString().slice(0, 10);
    return [date, null, (20_000 + random() * 1_000).toFixed(2), null];
  });
  const observations = observe(columnsOf(rows), conversion);
  const begun = process.cpuUsage();
  const means = textsOf(movingAverages(observations, 250, rows.length, { decimals: 10 }));
  const { user } = process.cpuUsage(begun);
  t.ok(user < 1_000_000, `${user} µs: exact sums of all would take seconds`);
  for (const at of [249, 300, 323]) {
    const values = rows.slice(at - 249, at + 1).map((_, place) => {
      const value = exactValue(observations, 'mid', at - 249 + place);
      return value && ([[String(value.numerator)], [String(value.denominator)]] as const);
    });
    t.equal(means[at], expectedMean(values as readonly Quotient[], 10));
  }
});
