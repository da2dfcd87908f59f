import t from 'tap';
import { seededDatabase, type TestDatabase } from '../support/database/database.ts';
import { keyFor, type Reply, type Service, serviceOn } from '../support/http/service.ts';
import { filterAnswer } from '../support/prices/filter-answers.ts';
import { type Filters, type OraclePrice, readOracle, selected } from '../support/prices/oracle.ts';
import { SPECIFIED } from '../support/prices/specification.ts';

let database: TestDatabase;
let service: Service;
let all: readonly OraclePrice[];

t.before(async () => {
  database = await seededDatabase(t);
  service = await serviceOn(t, database);
  all = await readOracle(database.pool);
});

const codesOf = ({ json }: Reply): string[] => json.data.map((each: { code: string }) => each.code);
const warningsOf = ({ json }: Reply) => json.$metadata.warnings;
const nickel = (filters: Filters, options: object = {}): Promise<Reply> =>
  service.post('nickel', { filters, options });

/** The values that prices of a market have of a filter, each once: id → name. */
const valuesOf = (slug: string, filter: string): ReadonlyMap<string, string> =>
  new Map(
    all.flatMap(({ market, values }) => {
      const value = values.get(filter);
      return market === slug && value ? [[value.id, value.name]] : [];
    }),
  );

t.test('each filter of each market selects by each of its values, by name and by id', async (t) => {
  for (const { slug, filters } of SPECIFIED) {
    for (const filter of filters) {
      const wrong: string[] = [];
      const values = valuesOf(slug, filter);
      const check = async (sent: string, id: string) => {
        const request = { slug, filters: { [filter]: [sent] }, includeSeries: false };
        const { codes, unmatched } = await filterAnswer(service, request);
        const wanted = selected(all, slug, { [filter]: [id] }).map((each) => each.code);
        const isRight = wanted.length > 0 && codes.join() === wanted.join();
        if (!isRight || unmatched.length > 0) wrong.push(sent);
      };
      await Promise.all(
        [...values].flatMap(([id, name]) => [check(name, id), check(id.toUpperCase(), id)]),
      );
      t.ok(values.size > 0, `${slug} has ${filter}`);
      t.same(wrong, [], `${slug} ${filter}`);
    }
  }
});

t.test('values of one list are alternatives, lists narrow each other', async (t) => {
  const of = async (filters: Filters) => codesOf(await nickel(filters));
  const sulphate = ['Nickel sulphate hexahydrate, battery grade'];
  const both = await of({ products: [...sulphate, 'Nickel briquette'] });
  t.same(
    both,
    [
      ...(await of({ products: ['Nickel briquette'] })),
      ...(await of({ products: sulphate })),
    ].sort(),
  );
  const narrowed = await of({ products: sulphate, countries: ['China'] });
  const china = await of({ countries: ['China'] });
  t.ok(narrowed.length > 0 && narrowed.length < china.length);
  t.same(
    narrowed,
    china.filter((code) => both.includes(code)),
  );
  t.same(await of({ products: sulphate, countries: ['Chile'] }), []);
});

t.test('names are compared whatever their case, width, composition and white space', async (t) => {
  const wanted = codesOf(await nickel({ products: ['Nickel briquette'] }));
  t.ok(wanted.length > 0);
  for (const spelling of [
    'nickel briquette',
    'NICKEL BRIQUETTE',
    '  Nickel   briquette ',
    'Nickel\u00a0briquette',
    'Nickel\u3000briquette',
    'Ｎｉｃｋｅｌ　ｂｒｉｑｕｅｔｔｅ',
  ]) {
    const answer = await nickel({ products: [spelling] });
    t.same(codesOf(answer), wanted, spelling);
    t.same(warningsOf(answer), [], spelling);
  }
  for (const other of ['Nickelbriquette', 'Nickel briquette.', 'Nickel briquett', 'Nickel%']) {
    t.same(codesOf(await nickel({ products: [other] })), [], other);
  }
});

t.test('codes select exactly, whatever their case, each record once', async (t) => {
  const answer = await nickel({ codes: ['cp-ni-0002', 'CP-NI-0001', 'Cp-Ni-0002', 'CP-NI-0002'] });
  t.same(codesOf(answer), ['CP-NI-0001', 'CP-NI-0002']);
  t.same(warningsOf(answer), []);
  for (const part of ['CP-NI', 'CP-NI-000', 'CP-NI-00011', '%', 'CP-NI-000_']) {
    t.same(codesOf(await nickel({ codes: [part] })), [], part);
  }
});

t.test('a code of another market names it, and only to who may read that market', async (t) => {
  const body = { filters: { codes: ['cp-co-0001', 'CP-NI-0001', 'CP-XX-0001'] } };
  const warnings = [
    { code: 'unmatched_value', pointer: '/filters/codes/0' },
    { code: 'unmatched_value', pointer: '/filters/codes/2' },
  ];
  const detail = '"cp-co-0001" is a code of cobalt; ask /v3/prices/cobalt for it';
  const both = await keyFor(database, ['prices:nickel', 'prices:cobalt']);
  const few = await keyFor(database, ['prices:nickel', 'prices:copper']);
  const filterAnswer = (key: string) =>
    service.request({
      method: 'POST',
      url: '/v3/prices/nickel',
      headers: { 'x-api-key': key },
      payload: body,
    });
  // Alternating, so that an answer cached for one key would be visible to the other.
  const answers = [];
  for (const key of [both, few, both, few]) answers.push(await filterAnswer(key));
  for (const [index, answer] of answers.entries()) {
    t.same(codesOf(answer), ['CP-NI-0001']);
    t.match(warningsOf(answer), warnings);
    const [cobalt] = warningsOf(answer);
    if (index % 2 === 0) t.match(cobalt, { detail, suggestions: [] });
    else t.notMatch(JSON.stringify(cobalt), 'cobalt', 'to others it is a code that there is not');
  }
  const others = answers.filter((_, index) => index % 2 === 1).flatMap(warningsOf);
  t.equal(others.length, 4);
  for (const { suggestions } of others) {
    t.ok(suggestions.length > 0 && suggestions.length <= 3);
    t.same(
      suggestions.filter((each: string) => !each.startsWith('CP-NI-')),
      [],
    );
  }
});

t.test(
  'a value that matches nothing is reported with near values, and still filters',
  async (t) => {
    const answer = await nickel({ products: ['Nickel briquet'], regions: ['Atlantis'] });
    t.same(codesOf(answer), []);
    t.equal(answer.json.$metadata.count, 0);
    const [product, region] = warningsOf(answer);
    t.match(product, { code: 'unmatched_value', pointer: '/filters/products/0' });
    t.equal(product.suggestions[0], 'Nickel briquette');
    t.match(region, { code: 'unmatched_value', pointer: '/filters/regions/0', suggestions: [] });
    t.match(region.detail, 'Atlantis');
    const [short] = warningsOf(await nickel({ regions: ['EU'] }));
    t.equal(short.suggestions[0], 'Europe', 'an abbreviation is no typo');
    const mixed = await nickel({ products: ['Nickel briquette', 'Nickel briquet'] });
    t.same(codesOf(mixed), codesOf(await nickel({ products: ['Nickel briquette'] })));
    t.match(warningsOf(mixed), [{ pointer: '/filters/products/1' }]);
  },
);

t.test('a value that only other markets have is unmatched and not suggested', async (t) => {
  const cells = all.find((each) => each.market === 'lithium-ion-battery')?.values.get('products');
  const answer = await nickel({ products: [cells?.name ?? '', cells?.id ?? ''] });
  t.same(
    warningsOf(answer).map((each: { pointer: string }) => each.pointer),
    ['/filters/products/0', '/filters/products/1'],
  );
  t.notMatch(
    JSON.stringify(warningsOf(answer).map((each: { suggestions: unknown }) => each.suggestions)),
    cells?.name,
  );
});

t.test('a warning repeats at most 64 characters of what was sent', async (t) => {
  const [warning] = warningsOf(await nickel({ products: [`${'x'.repeat(100)}`] }));
  t.notMatch(JSON.stringify(warning), 'x'.repeat(65));
  t.match(warning.detail, 'x'.repeat(63));
});

t.test('an empty list counts as absent', async (t) => {
  const whole = codesOf(await nickel({}));
  const empty = Object.fromEntries(
    SPECIFIED.find((each) => each.slug === 'nickel')?.filters.map((each) => [each, []]) ?? [],
  );
  t.same(codesOf(await nickel(empty)), whole);
  t.same(codesOf(await nickel({ ...empty, codes: ['CP-NI-0003'] })), ['CP-NI-0003']);
});

t.test('the most values that a list may have are answered', async (t) => {
  const many = (count: number, last: string) => [
    ...Array.from({ length: count - 1 }, (_, n) => `value ${n}`),
    last,
  ];
  const lists = await nickel({
    products: many(200, 'Nickel briquette'),
    regions: many(200, 'Europe'),
  });
  t.equal(warningsOf(lists).length, 398);
  t.ok(codesOf(lists).length > 0);
  t.same(codesOf(await nickel({ codes: many(500, 'CP-NI-0001') })), ['CP-NI-0001']);
  const long = await nickel({ products: ['ñ'.repeat(128), '\u{1f4c8}'.repeat(128)] });
  t.equal(warningsOf(long).length, 2);
});

t.test('dates bound the series, both days included, and never drop a record', async (t) => {
  const price = all.find((each) => each.code === 'CP-NI-0001') as OraclePrice;
  const days = price.points.map(([date]) => date);
  const series = async (filters: Filters) => {
    const { json } = await nickel({ codes: ['CP-NI-0001'], ...filters }, { includeSeries: true });
    t.equal(json.data.length, 1);
    return json.data[0].series.map((each: { date: string }) => each.date);
  };
  const [from = '', to = ''] = [days[100], days[103]];
  t.same(await series({ dateFrom: from, dateTo: to }), days.slice(100, 104));
  t.same(await series({ dateFrom: from, dateTo: from }), [from]);
  t.same(await series({ dateFrom: days.at(-1) ?? '' }), days.slice(-1));
  t.same(await series({ dateTo: days[0] ?? '' }), days.slice(0, 1));
  t.same(await series({ dateTo: '1800-01-01' }), []);
  t.same(await series({ dateFrom: '2199-12-31' }), []);
  t.same(await series({ dateFrom: '1800-01-01', dateTo: '2199-12-31' }), days);
  t.same(await series({ dateFrom: '2024-02-29', dateTo: '2024-02-29' }), ['2024-02-29']);
  const none = await service.post('nickel', {
    filters: { dateTo: '1900-01-01' },
    options: { includeSeries: true },
  });
  t.equal(codesOf(none).length, all.filter((each) => each.market === 'nickel').length);
});

t.test('strict changes nothing while every value matches', async (t) => {
  const filters = { products: ['nickel briquette'], regions: ['EUROPE'] };
  t.equal((await nickel(filters, { strict: true })).text, (await nickel(filters)).text);
});
