import t from 'tap';
import { SPANS } from '../../src/catalog/analytics.ts';
import { convertedPoints, observe } from '../../src/conversion/convert.ts';
import { outcomeOf } from '../../src/conversion/outcome.ts';
import { type SummaryRules, summaryJson, summaryOf } from '../../src/conversion/summary.ts';
import { dayText } from '../../src/std/days.ts';
import { expected } from './oracle.ts';
import {
  CURRENCY,
  columnsOf,
  dayOf,
  type PointTexts,
  randomOf,
  ratesOf,
  textAt,
  unitOf,
} from './support.ts';

const RULES: SummaryRules = { payable: false, rounding: { decimals: null } };

const native = (rows: readonly PointTexts[], rules = RULES) =>
  summaryOf(observe(columnsOf(rows), null), rules);

const mids = (...days: readonly (readonly [date: string, mid: string])[]): PointTexts[] =>
  days.map(([date, mid]) => [date, null, mid, null]);

t.test('each change is against the last observation on or before its day', async (t) => {
  const { latest, previous, changes } = native(
    mids(
      ['2022-12-30', '50'],
      ['2023-03-30', '80'],
      ['2023-09-29', '90'],
      ['2023-12-29', '100'],
      ['2024-02-29', '110'],
      ['2024-03-14', '115'],
      ['2024-03-17', '116'],
      ['2024-03-24', '117'],
      ['2024-03-25', '118'],
      ['2024-03-31', '120'],
    ),
  );
  t.same(latest, { date: '2024-03-31', mid: '120' });
  t.same(previous, { date: '2024-03-25', mid: '118' });
  t.same(changes, {
    previous: { absolute: '2', percent: '1.69492', baseDate: '2024-03-25' },
    week: { absolute: '3', percent: '2.5641', baseDate: '2024-03-24' },
    fortnight: { absolute: '4', percent: '3.44828', baseDate: '2024-03-17' },
    month: { absolute: '10', percent: '9.09091', baseDate: '2024-02-29' },
    quarter: { absolute: '20', percent: '20', baseDate: '2023-12-29' },
    halfYear: { absolute: '30', percent: '33.3333', baseDate: '2023-09-29' },
    year: { absolute: '40', percent: '50', baseDate: '2023-03-30' },
    yearToDate: { absolute: '20', percent: '20', baseDate: '2023-12-29' },
  });
});

t.test('the month of 31 March goes back to 29 February, and no later', async (t) => {
  const { changes } = native(
    mids(['2024-02-28', '100'], ['2024-03-01', '999'], ['2024-03-31', '120']),
  );
  t.equal(changes.month?.baseDate, '2024-02-28');
  t.equal(changes.yearToDate, null);
  t.equal(changes.year, null);
});

t.test('observations at long intervals are the base of every shorter span', async (t) => {
  const { changes } = native(mids(['2022-12-31', '100'], ['2023-12-31', '150']));
  for (const span of SPANS) t.equal(changes[span]?.baseDate, '2022-12-31', span);
});

t.test('a first observation has no changes, none at all no latest', async (t) => {
  const one = native(mids(['2024-01-02', '7']));
  t.same(one.latest, { date: '2024-01-02', mid: '7' });
  t.equal(one.previous, null);
  t.ok(SPANS.every((span) => one.changes[span] === null));
  const none = native([]);
  t.equal(none.latest, null);
  t.ok(SPANS.every((span) => none.changes[span] === null));
});

t.test('there is no percentage of a price that was not above 0', async (t) => {
  const percent = (base: string, latest: string) =>
    native(mids(['2024-01-02', base], ['2024-01-03', latest])).changes.previous;
  t.match(percent('0', '5'), { absolute: '5', percent: null });
  t.match(percent('-65', '-70'), { absolute: '-5', percent: null });
  t.match(percent('40', '-10'), { absolute: '-50', percent: '-125' });
  t.match(percent('40', '40'), { absolute: '0', percent: '0' });
});

t.test('payables change by percentage points', async (t) => {
  const rows = mids(['2024-01-02', '72.5'], ['2024-01-03', '73.25']);
  const { changes } = native(rows, { ...RULES, payable: true });
  t.same(changes.previous, { absolute: '0.75', percent: null, baseDate: '2024-01-02' });
});

t.test('stored mids are shown as stored, figures computed from them are rounded', async (t) => {
  const { latest, changes } = native(
    mids(['2024-01-02', '12345.678901'], ['2024-01-03', '23456.789012345']),
  );
  t.equal(latest?.mid, '23456.789012345');
  t.equal(changes.previous?.absolute, '11111.11');
  t.equal(changes.previous?.percent, '90');
});

t.test('changes are computed from converted mids that were not rounded', async (t) => {
  const random = randomOf(11);
  const usd: Record<string, string> = {};
  const cny: Record<string, string> = {};
  const rows: PointTexts[] = [];
  for (let day = dayOf('2023-01-01'); day < dayOf('2024-06-01'); day += 1) {
    usd[dayText(day)] = (1 + random() / 5).toFixed(4);
    cny[dayText(day)] = (7 + random()).toFixed(4);
    rows.push([dayText(day), null, (50_000 + random() * 20_000).toFixed(1), null]);
  }
  const { conversion } = outcomeOf(
    { payable: false, currency: CURRENCY.CNY, unit: unitOf('tonne') },
    { currency: CURRENCY.USD, unit: unitOf('pound') },
    ratesOf({ USD: usd, CNY: cny }),
  );
  const observations = observe(columnsOf(rows), conversion);
  const { latest, changes } = summaryOf(observations, RULES);
  const points = convertedPoints(observations, { decimals: null });
  t.equal(latest?.mid, textAt(points.mid, rows.length - 1), 'as the point of the series');
  const last = rows.at(-1)?.[0] ?? '';
  const amount = new Map(rows.map(([date, , mid]) => [date, mid]));
  for (const span of SPANS) {
    const base = changes[span]?.baseDate ?? '';
    // b × USD(b) / CNY(b) against l × USD(l) / CNY(l), over a common denominator.
    const scaled = (date: string, other: string) => {
      const digits = (text = '') => BigInt(text.replace('.', ''));
      return digits(amount.get(date)) * digits(usd[date]) * digits(cny[other]);
    };
    const then = scaled(base, last);
    const difference = scaled(last, base) - then;
    const absolute = [
      [String(difference), '0.45359237', '0.1'],
      ['1000', cny[last] ?? '', cny[base] ?? '', '100000000'],
    ];
    t.equal(changes[span]?.absolute, expected(absolute[0] ?? [], absolute[1] ?? [], null), span);
    t.equal(changes[span]?.percent, expected([String(difference), '100'], [String(then)], null));
  }
});

t.test('a mid without a rate is null, and so is every change that needs it', async (t) => {
  const { conversion } = outcomeOf(
    { payable: false, currency: CURRENCY.EUR, unit: unitOf('tonne') },
    { currency: CURRENCY.USD, unit: null },
    ratesOf({ USD: { '2024-01-10': '1.1' } }),
  );
  const rows = mids(['2024-01-02', '10'], ['2024-01-11', '20'], ['2024-01-12', '30']);
  const summary = summaryOf(observe(columnsOf(rows), conversion), RULES);
  t.same(summary.latest, { date: '2024-01-12', mid: '33' });
  t.match(summary.changes.previous, { absolute: '11', percent: '50' });
  t.equal(summary.changes.week, null);
  const early = summaryOf(observe(columnsOf(rows.slice(0, 1)), conversion), RULES);
  t.same(early.latest, { date: '2024-01-02', mid: null });
});

t.test('asked-for decimals round the figures', async (t) => {
  const rows = mids(['2024-01-02', '30'], ['2024-01-03', '40']);
  const { changes } = native(rows, { payable: false, rounding: { decimals: 1 } });
  t.match(changes.previous, { absolute: '10', percent: '33.3' });
});

t.test('a summary as JSON holds plain decimals', async (t) => {
  const json = summaryJson(native(mids(['2024-01-02', '0.0000001'], ['2024-01-03', '0.00000015'])));
  const { changes } = JSON.parse(json);
  t.match(json, '{"latest":{"date":"2024-01-03","mid":0.00000015}');
  t.match(json, '"previous":{"date":"2024-01-02","mid":0.0000001},"changes":{"previous":');
  t.match(json, '{"absolute":0.00000005,"percent":50,"baseDate":"2024-01-02"}');
  t.same(Object.keys(changes), SPANS);
  t.equal(
    summaryJson(native([])).startsWith(
      '{"latest":null,"previous":null,"changes":{"previous":null,',
    ),
    true,
  );
});
