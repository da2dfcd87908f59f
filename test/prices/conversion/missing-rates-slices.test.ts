import t from 'tap';
import { bodyCheckOf } from '../../../src/contract/request/validate.ts';
import { requestSchemasOf, schemasOf } from '../../../src/contract/schemas/market.ts';
import { outcomeOf } from '../../../src/conversion/outcome.ts';
import { currencyRates, type RateTable } from '../../../src/conversion/rate-table.ts';
import { withMissingRates } from '../../../src/prices/answer/missing-rates.ts';
import type { SelectedPrice } from '../../../src/prices/market/query.ts';
import type { MarketReader } from '../../../src/prices/market/reader.ts';
import type { References } from '../../../src/prices/market/references.ts';
import { planOf } from '../../../src/prices/plan/plan.ts';
import { LARGE } from '../../support/database/large-market.ts';
import { countTurns } from '../../support/run/turns.ts';

const LIMITS = { codesMax: 500, itemsMax: 200, itemLengthMax: 128, recordsMax: 10 };
const EUR = 1;
const USD = 2;
const KG = {
  id: 1,
  uuid: '',
  name: 'kilogram',
  symbol: 'kg',
  dimension: 'mass',
  factor: '1',
};
const RATES: RateTable = {
  source: 'ECB',
  kind: 'published',
  base: { id: EUR, iso: 'EUR' },
  currencies: new Map([[USD, currencyRates('USD', '9600,9601', '1.1,1.2')]]),
};

t.test('missing rates of 20,000 prices are found in slices, and others run between', async (t) => {
  const check = bodyCheckOf(LARGE, schemasOf(LARGE, requestSchemasOf(LIMITS)));
  const options = { includeSeries: true, currency: 'EUR' };
  const plan = planOf(LARGE, check, { options });
  const basis = { payable: false, currency: USD, unit: KG };
  const outcome = outcomeOf(basis, { currency: EUR, unit: null }, RATES);
  const planned = Array.from({ length: 20_000 }, (_, id) => ({
    price: { id, currency_id: USD, last_date: '2026-06-30' } as SelectedPrice,
    outcome,
  }));
  const counted: number[] = [];
  const turnsBefore: number[] = [];
  // The only point of price 0 is before the first rate, that of each other on a day with a rate.
  const dayOf = (priceId: number): number => (priceId === 0 ? 9_000 : 9_600);
  const extents: MarketReader['extents'] = async (stretches) => {
    counted.push(stretches.length);
    turnsBefore.push(turns.count);
    return stretches.map(({ priceId, first, last }) => {
      const day = dayOf(priceId);
      return first <= day && day <= last ? { first: day, last: day, points: 1 } : null;
    });
  };
  // No price is without any rate, so that no reference is read.
  const references = { units: new Map(), currencies: new Map() } as unknown as References;
  const targets = { currency: null, unit: null };
  const inUse = { source: 'ECB', ratesOf: () => RATES, references, targets };
  const turns = countTurns(t);
  const checked = await withMissingRates({ extents }, plan, planned, inUse);
  turns.end();
  t.same(counted.length, 2, 'two reads: the days of the points, and their segments');
  t.equal(checked.planned[0]?.outcome?.reason, 'no-rate');
  t.equal(checked.planned[1]?.outcome, outcome);
  const [beforeDays = 0, beforePoints = 0] = turnsBefore;
  const steps = [beforeDays, beforePoints - beforeDays, turns.count - beforePoints];
  // Two passes over all prices before the first read and after the second, in slices of 256.
  t.ok(Math.min(...steps) >= 150, `${steps} turns before, between and after the reads`);
});

const FIRST_DAY = 3_653;
const DAYS = 3_650;
/** A rate a month for ten years: it applies on 8 days, so that 22 days follow without one. */
const MONTHS = Array.from({ length: Math.ceil(DAYS / 30) }, (_, month) => FIRST_DAY + 30 * month);
const MONTHLY: RateTable = {
  ...RATES,
  currencies: new Map([[USD, currencyRates('USD', MONTHS.join(), MONTHS.map(() => '1.1').join())]]),
};

/** The days after a monthly rate to which no rate applies. */
const lackingAfter = (day: number): number =>
  Math.max(0, Math.min(day + 30, FIRST_DAY + DAYS) - (day + 8));

t.test('no read has all stretches of a large market, and none is lost', async (t) => {
  const check = bodyCheckOf(LARGE, schemasOf(LARGE, requestSchemasOf(LIMITS)));
  const plan = planOf(LARGE, check, { options: { includeSeries: true, currency: 'EUR' } });
  const basis = { payable: false, currency: USD, unit: KG };
  const outcome = outcomeOf(basis, { currency: EUR, unit: null }, MONTHLY);
  const prices = 1_000;
  const planned = Array.from({ length: prices }, (_, id) => ({
    price: { id, currency_id: USD, last_date: '2026-06-30' } as SelectedPrice,
    outcome,
  }));
  const counted: number[] = [];
  // Each price has a point on every day.
  const extents: MarketReader['extents'] = async (stretches) => {
    counted.push(stretches.length);
    return stretches.map((each) => {
      const first = Math.max(each.first, FIRST_DAY);
      const last = Math.min(each.last, FIRST_DAY + DAYS - 1);
      return first <= last ? { first, last, points: last - first + 1 } : null;
    });
  };
  const references = { units: new Map(), currencies: new Map() } as unknown as References;
  const targets = { currency: null, unit: null };
  const inUse = { source: 'ECB', ratesOf: () => MONTHLY, references, targets };
  const { warnings } = await withMissingRates({ extents }, plan, planned, inUse);
  const all = counted.reduce((sum, each) => sum + each, 0);
  t.ok(all > 200 * prices, `${all} stretches`);
  t.ok(Math.max(...counted) < 51_000, `at most ${Math.max(...counted)} in one read`);
  t.match(warnings, [
    {
      pointsRequested: prices * DAYS,
      pointsWithoutRate: prices * MONTHS.reduce((sum, day) => sum + lackingAfter(day), 0),
    },
  ]);
});
