import t from 'tap';
import { marketOf } from '../../src/catalog/markets.ts';
import { canonicalText, type Plan, planOf } from '../../src/prices/plan/plan.ts';

const POSITION = { revision: '8da0a47hq2mx.4', code: 'CP-NI-0001' };

/** Cursors of version 1.0.0 after `POSITION`, by the checksum at their end. */
const RELEASED = [
  ['nickel', {}, 'jeW4a0I8WnMXLhIS'],
  [
    'copper',
    {
      filters: { regions: ['Europe', 'asia'], dateFrom: '2026-01-01' },
      options: { includeSeries: true, strict: true, limit: 2 },
    },
    'rehiDtH013wpYTD0',
  ],
  [
    'nickel',
    {
      filters: { codes: ['CP-NI-0001', 'CP-NI-0002'], dateTo: '2026-06-30' },
      options: {
        includeSeries: true,
        includeSummary: true,
        currency: 'EUR',
        unitOfMeasure: 'kg',
        decimals: 2,
        onUnconvertible: 'omit',
      },
    },
    'cMNIAZ_8u7_E3EHp',
  ],
  [
    'nickel',
    {
      options: {
        includeSeries: true,
        aggregate: { period: 'month', method: 'mean' },
        lastObservations: 3,
        decimalsAsText: true,
      },
    },
    '5zkAEH2RDjMixwXu',
  ],
  [
    'nickel',
    { options: { includeSeries: true, columns: 'short', warnings: 'row' } },
    'bTibyuAyQN4SquA7',
  ],
  ['nickel', { options: { includeSeries: true, layout: 'wide' } }, '18Q_lekyU9f5jBwQ'],
] as const;

/** The plan of a body that the schema accepts, in a format that its options apply to. */
function planned(slug: string, body: object): Plan {
  const market = marketOf(slug);
  if (!market) throw new Error(`there is no market ${slug}`);
  const isTable = /"(columns|layout)"/.test(JSON.stringify(body));
  const format = isTable ? 'csv' : 'json';
  return planOf(market, () => [], body, { by: 'body', readableMarkets: () => [], format });
}

const withOptions = (body: object, more: object) => {
  const { options = {} } = body as { options?: object };
  return { ...body, options: { ...options, ...more } };
};

t.test('a cursor that version 1.0.0 issued continues its request in every later version', (t) => {
  for (const [slug, body, sum] of RELEASED) {
    const parts = [POSITION.revision, POSITION.code, sum];
    const cursor = Buffer.from(JSON.stringify(parts)).toString('base64url');
    t.same(planned(slug, withOptions(body, { cursor })).page.after, POSITION, sum);
    // The checksum is of this request alone.
    const other = withOptions(body, { cursor, currency: 'CNY' });
    t.throws(() => planned(slug, other), { code: 'invalid_cursor' }, sum);
  }
  t.end();
});

t.test('a later option changes the canonical text where it is used, and only there', (t) => {
  const plan = planned('nickel', {});
  const text = canonicalText(plan);
  const using = (options: object): string =>
    canonicalText({ ...plan, options: { ...plan.options, ...options } });
  t.equal(using({ later: undefined }), text, 'an option at its default');
  const used = [using({ later: true }), using({ later: 1 }), using({ other: true })];
  t.equal(new Set([text, ...used]).size, 4);
  t.equal(using({ requested: { kind: 'revision', text: 'abcd.1' } }), text, 'not the revision');
  t.end();
});
