import t from 'tap';
import { FORMATS } from '../../src/contract/schemas/formats.ts';
import { requestSchemasOf } from '../../src/contract/schemas/market.ts';
import type { OptionName } from '../../src/contract/schemas/options.ts';
import { testDatabase } from '../support/database/database.ts';
import { inRevision } from '../support/database/minimal-data.ts';
import { answerOf, fill, twinsOn } from './support.ts';

const LIMITS = { codesMax: 500, itemsMax: 200, itemLengthMax: 128, recordsMax: 1_000 };

const { options } = requestSchemasOf(LIMITS);
const database = await testDatabase(t, { seeded: true });
// The samples are values of days, which every value of `rates` converts equally.
await inRevision(
  database.pool,
  "update price set observes = 'month-mean' where code in ('CP-NI-0003', 'CP-NI-0004')",
);
const twins = await twinsOn(t, database);
await fill(twins);

/** Nickel, with a warning for a region that no price has. */
const PLAIN = {
  slug: 'nickel',
  filters: { dateFrom: '2026-03-01', dateTo: '2026-05-31', regions: ['Europe', 'Atlantis'] },
  accept: 'application/json',
};
const first = await answerOf(twins.plain, { ...PLAIN, options: { includeSeries: true, limit: 1 } });
const { revision, nextCursor: cursor } = JSON.parse(first.body.toString()).$metadata;

/** Two values of each option whose answers differ, with the options that they need. */
const VALUES: Readonly<Record<OptionName, readonly object[]>> = {
  includeSeries: [{ includeSeries: true }, { includeSeries: false }],
  includeSummary: [{ includeSummary: true }, { includeSummary: false }],
  currency: [{ currency: 'EUR' }, { currency: 'CNY' }],
  unitOfMeasure: [{ unitOfMeasure: 'kg' }, { unitOfMeasure: 'lb' }],
  onUnconvertible: [
    { currency: 'EUR', onUnconvertible: 'omit' },
    { currency: 'EUR', onUnconvertible: 'keep' },
  ],
  decimals: [
    { currency: 'EUR', decimals: 0 },
    { currency: 'EUR', decimals: 5 },
  ],
  aggregate: [
    { aggregate: { period: 'week', method: 'average' } },
    { aggregate: { period: 'month', method: 'last' } },
  ],
  asOf: [{ asOf: '2020-01-01T00:00:00Z' }, {}],
  revision: [{ revision }, {}],
  limit: [{ limit: 1 }, { limit: 2 }],
  cursor: [{ cursor, limit: 1 }, { limit: 1 }],
  strict: [{ strict: true }, { strict: false }],
  lastObservations: [{ lastObservations: 1 }, { lastObservations: 3 }],
  decimalsAsText: [{ decimalsAsText: true }, { decimalsAsText: false }],
  columns: [{ columns: 'code,date,mid' }, { columns: 'all' }],
  layout: [{ layout: 'wide' }, { layout: 'long' }],
  warnings: [{ warnings: 'row' }, { warnings: 'header' }],
  movingAverage: [{ movingAverage: 5 }, { movingAverage: 20 }],
  rates: [
    { currency: 'EUR', rates: 'period-mean' },
    { currency: 'EUR', rates: 'day' },
  ],
  csvDialect: [{ csvDialect: 'semicolon' }, { csvDialect: 'comma' }],
  vat: [{ vat: 'exclude' }, { vat: 'as-published' }],
};

/** `strict` refuses instead of changing an answer; the revision is the newest one. */
const SAME_BYTES = new Set(['strict', 'revision']);

const MEDIA = Object.values(FORMATS).map(({ media }) => media);

t.test('two values of each option are compared', async (t) => {
  t.same(Object.keys(VALUES).toSorted(), Object.keys(options.properties).toSorted());
});

for (const [name, values] of Object.entries(VALUES)) {
  t.test(`the book never answers with bytes of another value of ${name}`, async (t) => {
    const fromMemory = () => twins.book.counts.answers + twins.answers.state.repeats;
    const before = fromMemory();
    const bodies: Record<string, Set<string>> = {};
    // Each value follows itself and the others, with what the book has cached of them.
    for (const value of [{}, ...values, {}, ...values, ...values.toReversed()]) {
      for (const accept of MEDIA) {
        const asked = {
          ...PLAIN,
          options: { includeSeries: true, ...value },
          accept,
        };
        const [cached, plain] = [
          await answerOf(twins.cached, asked),
          await answerOf(twins.plain, asked),
        ];
        const shown = `${accept} ${JSON.stringify(value)}`;
        t.equal(cached.status, plain.status, shown);
        t.same(cached.said, plain.said, shown);
        t.ok(cached.body.equals(plain.body), `the same bytes: ${shown}`);
        bodies[accept] ??= new Set();
        if (plain.status === 200) bodies[accept].add(plain.body.toString());
      }
    }
    t.ok(fromMemory() > before, 'memory answered');
    const different = Math.max(...Object.values(bodies).map(({ size }) => size));
    t.ok(different >= (SAME_BYTES.has(name) ? 1 : 2), `${different} different answers`);
  });
}
