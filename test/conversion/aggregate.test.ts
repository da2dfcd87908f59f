import t from 'tap';
import { METHODS, type Method, type Period } from '../../src/catalog/analytics.ts';
import { aggregatedPoints } from '../../src/conversion/aggregate.ts';
import { observe } from '../../src/conversion/convert.ts';
import { outcomeOf } from '../../src/conversion/outcome.ts';
import { dayText } from '../../src/std/days.ts';
import {
  CURRENCY,
  columnsOf,
  dayOf,
  inverse,
  type PointTexts,
  ratesOf,
  textsOf,
  unitOf,
} from './support.ts';

const BY_RULE = { decimals: null };

const aggregate = (rows: readonly PointTexts[], period: Period, method: Method) =>
  aggregatedPoints(observe(columnsOf(rows), null), { period, method }, BY_RULE);

t.test('a point stands for a whole calendar period and says how many days it holds', async (t) => {
  const points = aggregate(
    [
      ['2020-12-28', '9', '10', '11', 1],
      ['2020-12-31', '10', '11', '12', 2],
      ['2021-01-03', '11', '12', '13'],
      ['2021-01-13', '20', '21', '22'],
    ],
    'week',
    'average',
  );
  t.equal(points.length, 2, 'a week without observations has no point');
  t.same(Array.from(points.day, dayText), ['2021-01-03', '2021-01-17']);
  t.same(Array.from(points.periods?.start ?? [], dayText), ['2020-12-28', '2021-01-11']);
  t.same(Array.from(points.periods?.end ?? [], dayText), ['2021-01-03', '2021-01-17']);
  t.same(Array.from(points.periods?.observations ?? []), [3, 1]);
  t.same(textsOf(points.mid), ['11', '21']);
  t.same(Array.from(points.corrections), [3, 0], 'corrections add up');
  const noon = (date: string) => (dayOf(date) + 0.5) * 86_400_000_000;
  t.same(Array.from(points.publishedAt), [noon('2021-01-03'), noon('2021-01-13')]);
  t.equal(points.fx, null);
});

t.test(
  'the latest publication counts, also where a correction made an early day the latest',
  async (t) => {
    const columns = columnsOf([
      ['2024-01-02', null, '10', null],
      ['2024-01-03', null, '11', null],
    ]);
    columns.publishedAt[0] = (columns.publishedAt[1] ?? 0) + 1;
    const monthly = { period: 'month', method: 'last' } as const;
    const points = aggregatedPoints(observe(columns, null), monthly, BY_RULE);
    t.equal(points.publishedAt[0], columns.publishedAt[0]);
  },
);

t.test('low and high are null when any observation lacks them, the others stay', async (t) => {
  const rows: PointTexts[] = [
    ['2024-01-02', '9', '10', '11'],
    ['2024-01-03', null, '12', '13'],
    ['2024-02-01', '9', '10', null],
  ];
  for (const method of METHODS) {
    const points = aggregate(rows, 'month', method);
    t.same(textsOf(points.low), [null, '9'], method);
    t.equal(textsOf(points.high)[1], null);
    t.notOk(textsOf(points.mid).includes(null));
  }
});

t.test('first, last, least and greatest of stored values are the stored values', async (t) => {
  const rows: PointTexts[] = [
    ['2024-01-02', null, '12345.678901', null],
    ['2024-01-03', null, '-0.00000001', null],
    ['2024-01-04', null, '99999.999999', null],
    ['2024-01-05', null, '12345.6789', null],
  ];
  t.same(textsOf(aggregate(rows, 'month', 'first').mid), ['12345.678901']);
  t.same(textsOf(aggregate(rows, 'month', 'last').mid), ['12345.6789']);
  t.same(textsOf(aggregate(rows, 'month', 'min').mid), ['-0.00000001']);
  t.same(textsOf(aggregate(rows, 'month', 'max').mid), ['99999.999999']);
});

t.test('an average of payables is rounded once, ties to even', async (t) => {
  const rows: PointTexts[] = [
    ['2024-01-02', null, '73.25', null],
    ['2024-01-03', null, '73.5', null],
    ['2024-01-04', null, '72', null],
  ];
  t.same(textsOf(aggregate(rows, 'quarter', 'average').mid), ['72.9167']);
  const tie: PointTexts[] = [
    ['2024-01-02', null, '1000.01', null],
    ['2024-01-03', null, '1000.02', null],
  ];
  t.same(textsOf(aggregate(tie, 'year', 'average').mid), ['1000.02']);
  const even: PointTexts[] = [
    ['2024-01-02', null, '1000.02', null],
    ['2024-01-03', null, '1000.03', null],
  ];
  t.same(textsOf(aggregate(even, 'year', 'average').mid), ['1000.02']);
});

t.test('values that cancel out leave the exact rest', async (t) => {
  const rest = (...amounts: string[]) => {
    const rows = amounts.map((each, at): PointTexts => [`2024-01-0${at + 1}`, null, each, null]);
    return textsOf(aggregate(rows, 'month', 'average').mid)[0];
  };
  t.equal(rest('99999999999999.9', '0.0000001', '-99999999999999.9'), '0.0000000333333');
  t.equal(rest('99999999999999.9', '-99999999999999.9'), '0');
  t.equal(rest('999999999999.5', '1.23456', '-999999999999.5'), '0.41152');
});

t.test('no observations make no points', async (t) => {
  t.equal(aggregate([], 'month', 'average').length, 0);
});

const RATES = ratesOf({
  USD: { '2024-01-02': '1.0956', '2024-01-04': '1.0953', '2024-01-05': '1.0921' },
  CNY: { '2024-01-02': '7.8264', '2024-01-04': '7.8306', '2024-01-05': '7.8134' },
});

const toDollars = outcomeOf(
  { payable: false, currency: CURRENCY.CNY, unit: unitOf('tonne') },
  { currency: CURRENCY.USD, unit: unitOf('pound') },
  RATES,
).conversion;

const dollars = (rows: readonly PointTexts[], method: Method) =>
  aggregatedPoints(observe(columnsOf(rows), toDollars), { period: 'month', method }, BY_RULE);

/** January begins without a rate; no rate is near February. */
const SOME_UNRATED: readonly PointTexts[] = [
  ['2024-01-01', null, '5', '5', 1],
  ['2024-01-02', '9', '10', '11'],
  ['2024-01-04', '19', '20', '21', 2],
  ['2024-02-01', '9', '10', '11'],
  ['2024-02-02', '9', '10', '11'],
];

t.test('an average of which some have no rate is that of the others, counted', async (t) => {
  const points = dollars(SOME_UNRATED, 'average');
  const whole = dollars(SOME_UNRATED.slice(1, 3), 'average');
  t.same(textsOf(points.mid), [textsOf(whole.mid)[0], null]);
  t.same(textsOf(points.low)[0], textsOf(whole.low)[0], 'one left out may lack its low');
  t.same([...(points.periods?.observations ?? [])], [2, 0]);
  t.same([...(points.periods?.leftOut ?? [])], [1, 2]);
  t.same([...points.corrections], [3, 0], 'corrections are those of all');
  const none = dollars(SOME_UNRATED.slice(1, 3), 'average').periods;
  t.same([...(none?.leftOut ?? [])], [0]);
});

t.test('least and greatest leave out what has no rate', async (t) => {
  const rated = SOME_UNRATED.slice(1, 3);
  for (const method of ['min', 'max'] as const) {
    t.same(textsOf(dollars(SOME_UNRATED, method).mid), [
      textsOf(dollars(rated, method).mid)[0],
      null,
    ]);
  }
});

t.test('no other observation takes the place of a first or last without a rate', async (t) => {
  t.same(textsOf(dollars(SOME_UNRATED, 'first').mid), [null, null]);
  t.same(textsOf(dollars(SOME_UNRATED, 'last').mid), [
    textsOf(dollars(SOME_UNRATED.slice(2, 3), 'last').mid)[0],
    null,
  ]);
  const lateGap: PointTexts[] = [...SOME_UNRATED.slice(1, 3), ['2024-01-31', '9', '10', '11']];
  t.same(textsOf(dollars(lateGap, 'last').mid), [null]);
  t.same(
    textsOf(dollars(lateGap, 'first').mid),
    textsOf(dollars(lateGap.slice(0, 1), 'first').mid),
  );
  t.same([...(dollars(lateGap, 'last').periods?.leftOut ?? [])], [1]);
});

/**
 * Three prices of one month: n + ½ on the 3rd, and on the 2nd and 4th the same next number above
 * it, 1 / (2 from) away, which is less than doubles resolve. Null where n is odd.
 */
function besideTie(to: bigint) {
  const from = 90_071_992_547_409n;
  const amount = (((from + 1n) / 2n) * inverse(to, from)) % from;
  const n = (amount * to) / from;
  if (n % 2n === 1n) return null;
  const rates = ratesOf({
    USD: { '2024-01-02': `${to}`, '2024-01-03': `${2n * n + 1n}`, '2024-01-04': `${to}` },
    CNY: { '2024-01-02': `${from}`, '2024-01-03': '2', '2024-01-04': `${from}` },
  });
  const { conversion } = outcomeOf(
    { payable: false, currency: CURRENCY.CNY, unit: unitOf('tonne') },
    { currency: CURRENCY.USD, unit: null },
    rates,
  );
  const rows: PointTexts[] = [
    ['2024-01-02', null, `${amount}`, null],
    ['2024-01-03', null, '1', null],
    ['2024-01-04', null, `${amount}`, null],
  ];
  return { n, conversion, rows };
}

t.test('minimum and maximum are exact where doubles cannot distinguish values', async (t) => {
  for (let to = 2_000_003n; to < 2_000_083n; to += 2n) {
    const found = besideTie(to);
    if (!found) continue;
    const { n, conversion, rows } = found;
    const pick = (method: Method, some: readonly PointTexts[]) => {
      const monthly = { period: 'month', method } as const;
      const observations = observe(columnsOf(some), conversion);
      return textsOf(aggregatedPoints(observations, monthly, { decimals: 0 }).mid);
    };
    t.same(pick('min', rows), [`${n}`], 'the tie itself, to even');
    t.same(pick('max', rows.slice(1)), [`${n + 1n}`], 'the value above the tie');
    t.same(pick('first', rows), [`${n + 1n}`]);
    t.same(pick('last', rows.slice(0, 2)), [`${n}`]);
  }
});
