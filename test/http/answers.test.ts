import t from 'tap';
import { seededDatabase, type TestDatabase } from '../support/database/database.ts';
import { type Reply, type Service, serviceOn } from '../support/http/service.ts';
import { type OraclePrice, parseExact, pointText, readOracle } from '../support/prices/oracle.ts';
import { FIELDS, SPECIFIED } from '../support/prices/specification.ts';

let database: TestDatabase;
let service: Service;
let all: readonly OraclePrice[];

t.before(async () => {
  database = await seededDatabase(t);
  service = await serviceOn(t, database);
  all = await readOracle(database.pool);
});

/** Members that every record has, in the order of the contract; dimensions stand at the mark. */
const MEMBERS = [
  'code',
  'name',
  'shortName',
  'specification',
  'assessmentLaunchedAt',
  'lastAssessedAt',
  'latestPublishedAt',
  'nextExpectedAt',
  'product',
  'priceCategory',
  'frequency',
  '…',
  'unitOfMeasure',
  'currency',
  'priceType',
  'observes',
  'vatCountry',
  'reference',
  'series',
];

const codesOf = ({ json }: Reply): string[] => json.data.map((each: { code: string }) => each.code);

t.test('every market answers {} with all of its prices, in the order of their codes', async (t) => {
  for (const { slug } of SPECIFIED) {
    const answer = await service.post(slug, {});
    t.equal(answer.status, 200, slug);
    const own = all.filter((each) => each.market === slug).map((each) => each.code);
    t.same(codesOf(answer), own.toSorted(), slug);
    t.ok(own.length > 0);
  }
});

t.test(
  'a record carries exactly the dimensions of its market, null where it has none',
  async (t) => {
    for (const { slug, ownFilters } of SPECIFIED) {
      const { json } = await service.post(slug, { options: {} });
      const dimensions = ownFilters.map((filter) => FIELDS[filter] as string);
      for (const record of json.data) {
        const names = Object.keys(record);
        const wanted = MEMBERS.flatMap((each) => (each === '…' ? dimensions : [each]));
        t.same(names.toSorted(), wanted.toSorted(), record.code);
        t.same(
          names.filter((each) => MEMBERS.includes(each)),
          MEMBERS.filter((each) => each !== '…'),
          'in the order of the contract',
        );
        const price = all.find((each) => each.code === record.code);
        for (const filter of [...ownFilters, 'products', 'priceCategories', 'priceTypes']) {
          const value = record[FIELDS[filter] as string];
          const { id, name } = value ?? {};
          t.same(value && { id, name }, price?.values.get(filter) ?? null, filter);
        }
      }
    }
  },
);

t.test('$metadata is complete, and names the revision and its instant', async (t) => {
  const { rows } = await database.pool.query(
    `select revision_text(number) as revision,
       to_char(committed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as instant
     from revision where number = (select max(revision) from revision_scope
       where scope in ('copper', 'reference'))`,
  );
  const answer = await service.post('copper', {});
  const { asOf, ...metadata } = answer.json.$metadata;
  t.same(metadata, {
    market: 'copper',
    revision: rows[0].revision,
    count: answer.json.data.length,
    nextCursor: null,
    warnings: [],
  });
  t.same(Object.keys(answer.json), ['$metadata', 'data']);
  t.equal(asOf, `${rows[0].instant.replace(/\.?0+$/, '')}Z`);
  t.equal(answer.headers['x-data-revision'], rows[0].revision);
  t.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
  t.equal(answer.headers['cache-control'], 'no-store');
});

t.test('the same request at the same revision is answered with the same bytes', async (t) => {
  const body = { options: { includeSeries: true } };
  const [first, second] = [
    await service.post('solvent', body),
    await service.post('solvent', body),
  ];
  t.equal(first.text, second.text);
});

t.test('series is an empty list unless it is asked for', async (t) => {
  for (const options of [undefined, {}, { includeSeries: false }]) {
    const { json } = await service.post('nickel', options === undefined ? {} : { options });
    t.ok(json.data.every((each: { series: unknown[] }) => each.series.length === 0));
    t.ok(json.data.some((each: { lastAssessedAt: unknown }) => each.lastAssessedAt !== null));
  }
});

t.test('series holds every point of every price to the last digit, in date order', async (t) => {
  let points = 0;
  for (const { slug } of SPECIFIED) {
    const answer = await service.app.inject({
      method: 'POST',
      url: `/v3/prices/${slug}`,
      headers: { 'x-api-key': service.key },
      payload: { options: { includeSeries: true } },
    });
    for (const { code, series } of parseExact(answer.body).data) {
      const texts = series.map((each: Record<string, string>) => pointText(...Object.values(each)));
      const price = all.find((each) => each.code === code);
      points += texts.length;
      t.ok(
        JSON.stringify(texts) === JSON.stringify(price?.points.map(([, text]) => text)),
        `${code}: ${texts.length} points`,
      );
    }
  }
  t.ok(points > 100_000, `${points} points`);
});

t.test(
  'numbers are plain decimals: negative, below 1, over 100 per cent, never in e-notation',
  async (t) => {
    const texts = new Set(all.flatMap((each) => each.points.map(([, text]) => text.split(' ')[2])));
    t.ok([...texts].some((each) => each?.startsWith('-')));
    t.ok([...texts].some((each) => each?.startsWith('0.')));
    const answer = await service.app.inject({
      method: 'POST',
      url: '/v3/prices/recycling',
      headers: { 'x-api-key': service.key },
      payload: { options: { includeSeries: true } },
    });
    const tokens = answer.body.match(/"mid":[^,]+/g) ?? [];
    t.ok(tokens.length > 0);
    t.same(
      tokens.filter((each) => !/^"mid":-?(0|[1-9]\d*)(\.\d*[1-9])?$/.test(each)),
      [],
    );
  },
);

t.test(
  'a payable has no currency and the unit Percent, a price has money for another unit',
  async (t) => {
    const types = new Set<string>();
    for (const { slug } of SPECIFIED) {
      const { json } = await service.post(slug, {});
      for (const { code, priceType, currency, unitOfMeasure } of json.data) {
        types.add(priceType.name);
        if (priceType.name === 'Payable') {
          t.same(
            [currency, unitOfMeasure.name, unitOfMeasure.symbol],
            [null, 'Percent', '%'],
            code,
          );
        } else {
          t.match(currency.iso, /^[A-Z]{3}$/, code);
          t.not(unitOfMeasure.name, 'Percent', code);
        }
      }
    }
    t.same([...types].sort(), ['Payable', 'Price']);
  },
);

t.test('a price without a single point has neither a last day nor a publication', async (t) => {
  const bare = all.filter((each) => each.points.length === 0);
  t.ok(bare.length > 0);
  for (const { market, code } of bare) {
    const { json } = await service.post(market, {
      filters: { codes: [code] },
      options: { includeSeries: true },
    });
    t.match(json.data, [{ lastAssessedAt: null, latestPublishedAt: null, series: [] }], code);
  }
});

t.test(
  'lastAssessedAt and latestPublishedAt are of the latest point, whatever the dates',
  async (t) => {
    const ranges = [{}, { dateTo: '2022-01-01' }, { dateFrom: '2199-12-31' }];
    for (const filters of ranges) {
      const { json } = await service.post('nickel', { filters, options: { includeSeries: true } });
      for (const { code, lastAssessedAt, latestPublishedAt } of json.data) {
        const latest = all
          .find((each) => each.code === code)
          ?.points.at(-1)?.[1]
          .split(' ');
        t.same([lastAssessedAt, latestPublishedAt], [latest?.[0], latest?.[4]], code);
      }
    }
  },
);

t.test('a request id of the client comes back, a bad one is replaced by a UUIDv7', async (t) => {
  const idFor = async (sent?: string) => {
    const { headers } = await service.request({
      method: 'POST',
      url: '/v3/prices/nickel',
      payload: {},
      ...(sent === undefined ? {} : { headers: { 'x-request-id': sent } }),
    });
    return headers['x-request-id'] as string;
  };
  for (const good of ['trace-0815', 'A_b-1234', 'x'.repeat(64)]) t.equal(await idFor(good), good);
  const version7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  for (const bad of [
    undefined,
    '',
    'short',
    'x'.repeat(65),
    'has space',
    'quote"mark"',
    '<script>',
  ]) {
    t.match(await idFor(bad), version7, String(bad));
  }
  t.not(await idFor(), await idFor());
});
