import t from 'tap';
import type { MeanPeriod } from '../../src/catalog/analytics.ts';
import { NO_DAY } from '../../src/conversion/calendar.ts';
import type { PointColumns } from '../../src/conversion/columns.ts';
import { convertedPoints, exactValue, factorsOf, observe } from '../../src/conversion/convert.ts';
import { meanFor } from '../../src/conversion/period-means.ts';
import { segmentsOf } from '../../src/conversion/rate-segments.ts';
import { pairOf, type RatePair } from '../../src/conversion/rate-table.ts';
import { nearestDouble } from '../../src/conversion/rational.ts';
import { BY_RULE } from '../../src/conversion/rounding.ts';
import { unitFactor } from '../../src/conversion/units.ts';
import { dayText } from '../../src/std/days.ts';
import { expectedMean, type Quotient } from './oracle.ts';
import {
  CURRENCY,
  columnsOf,
  dayOf,
  type PointTexts,
  randomOf,
  ratesOf,
  textAt,
  textsOf,
  unitOf,
} from './support.ts';

type Rates = Readonly<Record<string, string>>;
type Quoted = 'USD' | 'CNY' | 'JPY';
type Code = Quoted | 'EUR';
type Table = Readonly<Record<Quoted, Rates>>;

const DAY = 86_400_000;
const addDays = (date: string, days: number): string =>
  new Date(Date.parse(date) + days * DAY).toISOString().slice(0, 10);

/** The first and last day of the month or year of a date, by the calendar of JavaScript. */
function boundsOf(date: string, period: MeanPeriod): readonly [start: string, end: string] {
  if (period === 'year') return [`${date.slice(0, 4)}-01-01`, `${date.slice(0, 4)}-12-31`];
  const start = `${date.slice(0, 7)}-01`;
  const [year, month] = start.split('-').map(Number);
  const end = new Date(Date.UTC(year ?? 0, month ?? 0, 0)).toISOString().slice(0, 10);
  return [start, end];
}

/**
 * The rate days of the period of a date, found by text: null if a currency has no rate of its last
 * day or later, or if eight days in a row have none.
 */
function daysBySpec(rates: Table, isos: readonly Code[], date: string, period: MeanPeriod) {
  const quoted = isos.filter((iso): iso is Quoted => iso !== 'EUR');
  const [start, end] = boundsOf(date, period);
  const days: string[] = [];
  let without = 0;
  for (let day = start; day <= end; day = addDays(day, 1)) {
    const isRateDay = quoted.every((iso) => rates[iso][day] !== undefined);
    without = isRateDay ? 0 : without + 1;
    if (without > 7) return null;
    if (isRateDay) days.push(day);
  }
  const isOver = quoted.every((iso) => Object.keys(rates[iso]).some((day) => day >= end));
  return isOver ? days : null;
}

/** Rates on most working days from 2018 to 2021, with holes, and an end of its own. */
function randomRates(random: () => number, decimals: number, level: number): Rates {
  const rates: Record<string, string> = {};
  const last = addDays('2020-11-01', Math.floor(random() * 200));
  const often = 0.9 + random() / 10;
  let hole = 0;
  for (let date = addDays('2018-01-01', Math.floor(random() * 60)); date <= last; ) {
    const weekday = new Date(date).getUTCDay();
    if (random() < 0.01) hole = Math.floor(random() * 14);
    hole -= 1;
    if (hole < 0 && weekday % 6 !== 0 && random() < often) {
      rates[date] = (level * (0.8 + random() / 2)).toFixed(decimals);
    }
    date = addDays(date, 1);
  }
  return rates;
}

const randomTable = (random: () => number): Table => ({
  USD: randomRates(random, 4, 1.1),
  CNY: randomRates(random, 4, 7.8),
  JPY: randomRates(random, 2, 125),
});

const PAIRS: readonly (readonly [from: Code, to: Code])[] = [
  ['USD', 'EUR'],
  ['EUR', 'JPY'],
  ['CNY', 'USD'],
  ['USD', 'JPY'],
];
const PERIODS = ['month', 'year'] as const;
const PER_TONNE = '1000';
const PER_POUND = '0.45359237';

function pairIn(rates: Table, [from, to]: readonly [Code, Code], period: MeanPeriod): RatePair {
  const pair = pairOf(ratesOf(rates), CURRENCY[from], CURRENCY[to], period);
  if (pair === null) throw new Error('no pair');
  return pair;
}

const legOf = (rates: Table, iso: Code, day: string): string =>
  iso === 'EUR' ? '1' : (rates[iso][day] as string);

/** A random value of each month: with decimals, negative now and then. */
const randomPoints = (random: () => number): PointTexts[] =>
  Array.from({ length: 48 }, (_, month) => {
    const first = new Date(Date.UTC(2017, 8 + month, 1 + Math.floor(random() * 28)));
    const mid = (random() * 30_000 - 2_000).toFixed(Math.floor(random() * 4));
    return [first.toISOString().slice(0, 10), null, mid, null];
  });

const toPounds = unitFactor(unitOf('tonne'), unitOf('pound'));

t.test('a mean rate is that of all rate days of its period, to the digit', async (t) => {
  const random = randomOf(20_461);
  const counts = { converted: 0, none: 0 };
  for (let round = 0; round < 12; round += 1) {
    const rates = randomTable(random);
    const rows = randomPoints(random);
    for (const period of PERIODS) {
      for (const [from, to] of PAIRS) {
        const pair = pairIn(rates, [from, to], period);
        if (toPounds === null) throw new Error('no factor');
        const observations = observe(columnsOf(rows), { unit: toPounds, pair, vat: null });
        const points: PointColumns = convertedPoints(observations, BY_RULE);
        for (const [index, [date, , mid]] of rows.entries()) {
          const days = daysBySpec(rates, [from, to], date, period);
          const title = `${from} ${to}, ${period} of ${date}`;
          const means = points.fx?.means;
          if (!means) throw new Error('no means');
          if (days === null) {
            counts.none += 1;
            if (textAt(points.mid, index) !== null) t.fail(`${title} has no mean`);
            if (points.fx?.day[index] !== NO_DAY) t.fail(`${title} has no rate day`);
            continue;
          }
          counts.converted += 1;
          const crosses = days.map(
            (day): Quotient => [[legOf(rates, to, day)], [legOf(rates, from, day)]],
          );
          const values = crosses.map(
            ([factors, divisors]): Quotient => [
              [mid, PER_POUND, ...factors],
              [PER_TONNE, ...divisors],
            ],
          );
          const receipt = [
            textAt(points.mid, index),
            textAt(means.rate, index),
            dayText(means.first[index] as number),
            dayText(points.fx?.day[index] as number),
            means.days[index],
          ];
          const wanted = [
            expectedMean(values, null),
            expectedMean(crosses, 10),
            days[0],
            days.at(-1),
            days.length,
          ];
          if (receipt.join() !== wanted.join()) t.equal(receipt.join(), wanted.join(), title);
        }
      }
    }
  }
  t.ok(counts.converted > 1_000 && counts.none > 500, JSON.stringify(counts));
});

t.test('segments lack what the means of their periods lack', async (t) => {
  const random = randomOf(7);
  const kinds = new Set<string>();
  for (let round = 0; round < 12; round += 1) {
    const rates = randomTable(random);
    for (const period of PERIODS) {
      for (const [from, to] of PAIRS) {
        const segments = segmentsOf(pairIn(rates, [from, to], period));
        const isWhole = segments.every(
          ({ first, last }, index) =>
            first <= last && (segments[index + 1]?.first ?? Infinity) === last + 1,
        );
        t.ok(isWhole && segments[0]?.first === -Infinity, `${from} ${to}`);
        for (let date = '2017-06-15'; date < '2022-06-01'; date = addDays(date, 9)) {
          const day = dayOf(date);
          const found = segments.filter(({ first, last }) => first <= day && day <= last);
          const legs = [from, to].filter((iso) => iso !== 'EUR');
          const absent = legs.filter((iso) => daysBySpec(rates, [iso], date, period) === null);
          const isCovered = daysBySpec(rates, [from, to], date, period) !== null;
          const wanted = isCovered ? [] : absent.length > 0 ? absent : legs;
          const lacking = found.map((each) => each.lacking.map(({ iso }) => iso).join('+'));
          if (lacking.join() !== wanted.join('+')) {
            t.equal(lacking.join(), wanted.join('+'), `${from} ${to}, ${period} of ${date}`);
          }
          kinds.add(isCovered ? 'covered' : `${absent.length} of ${legs.length} lack`);
        }
      }
    }
  }
  t.equal(kinds.size, 5, [...kinds].join(', '));
});

t.test('a factor of a mean is the nearest double of its exact number', async (t) => {
  const random = randomOf(11);
  const rates = randomTable(random);
  for (const period of PERIODS) {
    for (const pairOfTwo of PAIRS) {
      const pair = pairIn(rates, pairOfTwo, period);
      if (toPounds === null) throw new Error('no factor');
      const rows: PointTexts[] = [['2019-05-31', null, '1', null]];
      const observations = observe(columnsOf(rows), { unit: toPounds, pair, vat: null });
      const [factor = 0] = factorsOf(observations);
      const exact = exactValue(observations, 'mid', 0);
      if (exact === null) continue;
      t.ok(Math.abs(factor / nearestDouble(exact) - 1) < 1e-15, `${pairOfTwo} ${period}`);
    }
  }
});

/** A rate on every working day between two days. */
function workingDays(first: string, last: string, rate = '1.25'): Rates {
  const rates: Record<string, string> = {};
  for (let day = first; day <= last; day = addDays(day, 1)) {
    if (new Date(day).getUTCDay() % 6 !== 0) rates[day] = rate;
  }
  return rates;
}

const meanIn = (usd: Rates, date: string, period: MeanPeriod = 'month') => {
  const pair = pairOf(ratesOf({ USD: usd }), CURRENCY.USD, CURRENCY.EUR, period);
  return pair && meanFor(pair, period, dayOf(date));
};

t.test('a period has a mean only when it is over, and not for a part of it', async (t) => {
  // 31 May 2026 was a Sunday: the month is over once the rate of Monday is known.
  t.equal(meanIn(workingDays('2026-04-01', '2026-05-29'), '2026-05-31'), null);
  t.match(meanIn(workingDays('2026-04-01', '2026-06-01'), '2026-05-31'), { days: 21 });
  // 30 April 2026 was a Thursday: its own rate ends the month.
  t.equal(meanIn(workingDays('2026-04-01', '2026-04-29'), '2026-04-15'), null);
  t.match(meanIn(workingDays('2026-04-01', '2026-04-30'), '2026-04-15'), { days: 22 });
  // The first rates of the ECB are of 4 January 1999; those of a later start cover no January.
  t.match(meanIn(workingDays('1999-01-04', '2000-01-05'), '1999-01-31'), { days: 20 });
  t.match(meanIn(workingDays('1999-01-04', '2000-01-05'), '1999-12-31', 'year'), { days: 260 });
  t.equal(meanIn(workingDays('1999-01-11', '2000-01-05'), '1999-01-31'), null);
  // Seven days in a row without a rate are bridged, eight are not.
  const holed = (from: string, to: string) =>
    Object.fromEntries(
      Object.entries(workingDays('2026-02-01', '2026-05-01')).filter(
        ([day]) => day < from || day > to,
      ),
    );
  t.match(meanIn(holed('2026-03-11', '2026-03-17'), '2026-03-31'), { days: 17 });
  t.equal(meanIn(holed('2026-03-11', '2026-03-18'), '2026-03-31'), null);
  t.equal(meanIn(holed('2026-03-24', '2026-03-31'), '2026-03-31'), null, 'a hole at the end');
});

t.test('a mean of cross rates is no quotient of means', async (t) => {
  const rates = {
    USD: { ...workingDays('2026-03-01', '2026-04-01', '1'), '2026-03-10': '2' },
    CNY: workingDays('2026-03-01', '2026-04-01', '8'),
    JPY: {},
  };
  const pair = pairIn(rates, ['USD', 'CNY'], 'month');
  const points = observe(columnsOf([['2026-03-31', null, '1', null]]), {
    unit: { multiply: '1', divide: '1', exact: { numerator: 1n, denominator: 1n }, nearest: 1 },
    pair,
    vat: null,
  });
  // 21 days at 8 and one at 4, of 22; the quotient of the means is 8 ÷ (23 ÷ 22) = 7.6521…
  t.same(textsOf(convertedPoints(points, { decimals: 4 }).mid), ['7.8182']);
});

t.test('the mean of a pair is not that of its inverse, in one table of rates', async (t) => {
  const table = ratesOf({
    USD: { ...workingDays('2026-03-01', '2026-04-01', '1'), '2026-03-10': '2' },
  });
  const meanOf = (from: Code, to: Code) => {
    const pair = pairOf(table, CURRENCY[from], CURRENCY[to], 'month');
    return pair && meanFor(pair, 'month', dayOf('2026-03-31'))?.nearest;
  };
  // 21 days at 1 and one at 2, or at one half, of 22.
  t.equal(meanOf('EUR', 'USD'), 23 / 22);
  t.equal(meanOf('USD', 'EUR'), 21.5 / 22);
});
