import t from 'tap';
import { bodyTests, violationsOf } from '../../support/http/violations.ts';
import { FIELDS, SPECIFIED } from '../../support/prices/specification.ts';

const { refuses, post } = bodyTests(t);

const filters = (members: object) => ({ filters: members });
const options = (members: object) => ({ options: members });

refuses('names that JavaScript gives a meaning are unknown members like others', {
  proto: ['{"filters":{"__proto__":["x"]}}', '/filters/__proto__ unknown_field'],
  'proto of the body': ['{"__proto__":{"filters":{}}}', '/__proto__ unknown_field'],
  'a constructor': [
    '{"filters":{"constructor":{"prototype":{}}}}',
    '/filters/constructor unknown_field',
  ],
  'of every object': [
    '{"options":{"toString":1,"hasOwnProperty":1,"valueOf":1}}',
    '/options/toString unknown_field',
    '/options/hasOwnProperty unknown_field',
    '/options/valueOf unknown_field',
  ],
  'an empty name': [filters({ '': [] }), '/filters/ unknown_field'],
  'a name with / and ~': [filters({ 'a/b~c': [] }), '/filters/a~1b~0c unknown_field'],
});

t.test('an unknown member is refused with the nearest legal name', async (t) => {
  for (const [sent, near] of Object.entries({
    product: 'products',
    Products: 'products',
    PRICECATEGORIES: 'priceCategories',
    price_types: 'priceTypes',
    purity: 'purities',
    regoins: 'regions',
    code: 'codes',
    datefrom: 'dateFrom',
    date_to: 'dateTo',
    service: 'services',
  })) {
    const [violation] = violationsOf(await post('nickel', filters({ [sent]: [] })));
    t.equal(violation?.code, 'unknown_field', sent);
    t.equal(violation?.detail, `There is no member ${sent}; did you mean ${near}?`);
  }
  for (const [body, near] of [
    [{ filter: {} }, 'filters'],
    [{ option: {} }, 'options'],
    [options({ includeseries: true }), 'includeSeries'],
    [options({ Strict: true }), 'strict'],
    [filters({ include_summary: true }), 'includeSummary in options'],
    [{ date_from: '2026-01-01' }, 'dateFrom in filters'],
  ] as const) {
    const [violation] = violationsOf(await post('nickel', body));
    t.match(violation?.detail, `did you mean ${near}?`);
  }
  const [far] = violationsOf(await post('nickel', filters({ xyzzy: [] })));
  for (const legal of ['dateFrom', 'codes', 'products', 'services']) t.match(far?.detail, legal);
});

t.test('a filter or an option in the wrong object is refused with its place', async (t) => {
  for (const [body, pointer, place] of [
    [{ regions: ['Europe'] }, '/regions', 'filters'],
    [{ codes: ['CP-NI-0001'] }, '/codes', 'filters'],
    [options({ dateFrom: '2026-06-01' }), '/options/dateFrom', 'filters'],
    [{ limit: 10 }, '/limit', 'options'],
    [filters({ includeSeries: true }), '/filters/includeSeries', 'options'],
    [options({ aggregate: { strict: true } }), '/options/aggregate/strict', 'options'],
  ] as const) {
    const [violation] = violationsOf(await post('nickel', body));
    const name = pointer.split('/').at(-1);
    const detail = `There is no member ${name} here; put it into ${place}`;
    t.same(violation, { pointer, code: 'unknown_field', detail });
  }
  const [other] = violationsOf(await post('nickel', { meshSizes: ['100'] }));
  t.notMatch(other?.detail, /put it into/, 'nickel has no such filter');
});

t.test('a filter of another market is refused with the filters that this one has', async (t) => {
  for (const { slug, filters: own, ownFilters } of SPECIFIED) {
    for (const filter of Object.keys(FIELDS)) {
      if (own.includes(filter)) continue;
      const answer = await post(slug, filters({ [filter]: ['x'] }));
      const [violation, ...more] = violationsOf(answer);
      t.equal(violation?.code, 'unsupported_filter', `${slug} ${filter}`);
      t.equal(violation?.pointer, `/filters/${filter}`);
      t.same(more, []);
      for (const each of [...ownFilters, 'products', 'codes']) t.match(violation?.detail, each);
    }
  }
});
