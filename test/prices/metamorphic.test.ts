import fc from 'fast-check';
import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { listeningOn, type Service } from '../support/http/service.ts';
import { filterAnswer } from '../support/prices/filter-answers.ts';
import { type Filters, type OraclePrice, readOracle } from '../support/prices/oracle.ts';
import { day, filterValue, lists } from '../support/prices/requests.ts';
import { SPECIFIED, type SpecifiedMarket } from '../support/prices/specification.ts';
import { recordFigures } from '../support/run/faults.ts';

let service: Service;
let all: readonly OraclePrice[];

t.before(async () => {
  const database = await seededDatabase(t);
  service = await listeningOn(t, database);
  all = await readOracle(database.pool);
});

const market = fc.constantFrom(...SPECIFIED);

/** The codes that a market answers to some filters. */
const codesOf = async ({ slug }: SpecifiedMarket, filters: Filters): Promise<readonly string[]> =>
  (await filterAnswer(service, { slug, filters, includeSeries: false })).codes;

/** A market, filters of it, one filter more of it and two values for that. */
const narrowed = market.chain((each) =>
  fc.constantFrom(...each.filters).chain((more) =>
    fc.record({
      market: fc.constant(each),
      more: fc.constant(more),
      filters: lists(all, each).map((filters) => ({ ...filters, [more]: [] })),
      values: fc.tuple(filterValue(all, each.slug, more), filterValue(all, each.slug, more)),
    }),
  ),
);

/** A market, and three days in order. */
const split = fc.record({
  market,
  days: fc.tuple(day, day, day).map((days) => days.toSorted()),
});

const dayAfter = (date: string): string =>
  new Date(Date.parse(date) + 86_400_000).toISOString().slice(0, 10);

t.test('one filter more never adds a record', async (t) => {
  let dropped = 0;
  await fc.assert(
    fc.asyncProperty(narrowed, async ({ market, more, filters, values }) => {
      const wide = await codesOf(market, filters);
      const narrow = await codesOf(market, { ...filters, [more]: values });
      dropped += wide.length - narrow.length;
      return narrow.every((code) => wide.includes(code));
    }),
    { numRuns: 120 },
  );
  t.ok(dropped > 0, `and took away ${dropped}`);
});

t.test('a list of two values answers what the two answer apart, each once', async (t) => {
  let found = 0;
  await fc.assert(
    fc.asyncProperty(narrowed, async ({ market, more, filters, values }) => {
      const [both, first, second] = await Promise.all(
        [values, values.slice(0, 1), values.slice(1)].map((each) =>
          codesOf(market, { ...filters, [more]: each }),
        ),
      );
      found += both?.length ?? 0;
      const united = [...new Set([...(first ?? []), ...(second ?? [])])].sort();
      return JSON.stringify(both) === JSON.stringify(united);
    }),
    { numRuns: 120 },
  );
  t.ok(found > 0, `${found} records`);
});

t.test('the order of filters, of values and of repeated values changes nothing', async (t) => {
  const turned = market.chain((each) =>
    fc.record({ market: fc.constant(each), filters: lists(all, each) }),
  );
  await fc.assert(
    fc.asyncProperty(turned, async ({ market, filters }) => {
      const reversed = Object.entries(filters)
        .toReversed()
        .map(([name, list]) => [name, Array.isArray(list) ? [...list, ...list].reverse() : list]);
      const [one, other] = await Promise.all([
        codesOf(market, filters),
        codesOf(market, Object.fromEntries(reversed)),
      ]);
      return JSON.stringify(one) === JSON.stringify(other);
    }),
    { numRuns: 100 },
  );
  t.pass('in 100 requests');
});

t.test('two ranges that meet hold together what the whole range holds', async (t) => {
  let points = 0;
  await fc.assert(
    fc.asyncProperty(split, async ({ market: { slug }, days }) => {
      const [first = '', middle = '', last = ''] = days;
      const within = (dateFrom: string, dateTo: string) =>
        filterAnswer(service, { slug, filters: { dateFrom, dateTo }, includeSeries: true });
      const whole = await within(first, last);
      const left = await within(first, middle);
      const right = dayAfter(middle) > last ? null : await within(dayAfter(middle), last);
      const joined = left.points.map((each, index) => [...each, ...(right?.points[index] ?? [])]);
      points += joined.flat().length;
      return JSON.stringify(whole.points) === JSON.stringify(joined);
    }),
    { numRuns: 25 },
  );
  t.ok(points > 1000, `${points} points`);
});

t.test('no request of any market names a record of another', async (t) => {
  const marketOf = new Map(all.map((each) => [each.code, each.market]));
  recordFigures('F27', { codes: marketOf.size, 'markets requested': SPECIFIED.length });
  for (const each of SPECIFIED) {
    const everyCode = [...marketOf.keys()];
    const answers = [await codesOf(each, {}), await codesOf(each, { codes: everyCode })];
    for (const codes of answers) {
      t.same(
        codes,
        everyCode.filter((code) => marketOf.get(code) === each.slug),
        each.slug,
      );
    }
  }
});
