import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely';
import { MARKETS, type Market } from '../../../src/catalog/markets.ts';
import { bodyCheckOf } from '../../../src/contract/request/validate.ts';
import { requestSchemasOf, schemasOf } from '../../../src/contract/schemas/market.ts';
import { readDataRevision } from '../../../src/db/revisions.ts';
import type { Database } from '../../../src/db/schema.ts';
import { type FilteredRange, windowOf } from '../../../src/prices/changes/candidates.ts';
import { wantedPricesOf } from '../../../src/prices/changes/codes.ts';
import {
  type ChangeRun,
  type PageRange,
  runsOf,
  tipOf,
} from '../../../src/prices/changes/segments.ts';
import { changedPoints, changedPrices } from '../../../src/prices/changes/values.ts';
import { extentsNow } from '../../../src/prices/market/market-list.ts';
import { selectionOf } from '../../../src/prices/market/query.ts';
import { referenceReader } from '../../../src/prices/market/references.ts';
import { unmatchedIn } from '../../../src/prices/market/unmatched.ts';
import { usedValues, vocabularyReader } from '../../../src/prices/market/vocabulary.ts';
import { planOf } from '../../../src/prices/plan/plan.ts';
import { extentsQuery } from '../../../src/prices/series/extents.ts';
import {
  daysStatement,
  fewPoints,
  lastPoints,
  seriesStatement,
} from '../../../src/prices/series/from-sql.ts';
import { ALL_DAYS, dayOf } from '../../../src/std/days.ts';
import { failureOf } from '../database/minimal-data.ts';

/** A dry-run handle that records its statements. */
function recorder() {
  const statements: string[] = [];
  const db = new Kysely<Database>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (each) => new PostgresIntrospector(each),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
    log: ({ query }) => {
      statements.push(query.sql);
    },
  });
  return { db, statements };
}

const market = (slug: string) => MARKETS.find((each) => each.slug === slug) as Market;
const LIMITS = { codesMax: 500, itemsMax: 200, itemLengthMax: 128, recordsMax: 10 };

const planFor = (slug: string, filters: object) =>
  planOf(
    market(slug),
    bodyCheckOf(market(slug), schemasOf(market(slug), requestSchemasOf(LIMITS))),
    { filters },
  );

/** The selection of a plan, compiled. */
export function compiled(
  slug: string,
  filters: object,
): { sql: string; parameters: readonly unknown[] } {
  return selectionOf(recorder().db, planFor(slug, filters), '42.abc123').compile();
}

/** Records the statements of some work, which may fail on their empty results. */
async function statementsOf(work: (db: Kysely<Database>) => Promise<unknown>): Promise<string[]> {
  const { db, statements } = recorder();
  await failureOf(work(db));
  return statements;
}

const readable = (statement: string): string =>
  statement
    .trim()
    .split('\n')
    .map((line) => line.trim())
    .join('\n  ');

const HEAD = { epoch: 'e', revision: '42.abc123', reference: '7', committedAt: '' };

/** A run of changes of a page of the feed. */
const RUN: ChangeRun = {
  revision: '42.abc123',
  recordedAt: '2026-03-05T16:00:00Z',
  priceId: 7,
  market: 'nickel',
  code: 'X',
  firstDate: '2024-01-01',
  lastDate: '2024-12-31',
  number: 99n,
  hasPrice: true,
  skipped: 0,
  points: 3,
};

/** The statements of the feed for a principal with so many markets. */
/** A page of the changes of some markets. */
const pageOf = (markets: number): PageRange => ({
  markets: new Map(Array.from({ length: markets }, (_, id) => [id, `market ${id}`])),
  after: '5',
  until: '99',
  limit: 10,
  revision: '42.abc123',
});

const changesOf = (markets: number) => statementsOf((db) => runsOf(db, pageOf(markets)));

const windowStatementOf = (filters: Partial<FilteredRange>) =>
  statementsOf((db) => windowOf(db, { ...pageOf(2), prices: null, operations: null, ...filters }));

/** Reads the vocabulary of nickel. */
const vocabulary = (db: Kysely<Database>) => () => vocabularyReader(db)(market('nickel'), HEAD);

/** Every shape of statement of the change feed, by purpose. */
async function shapesOfChanges(): Promise<Record<string, readonly string[]>> {
  const one = ['x'];
  return {
    'how far the feed goes': await statementsOf((db) => tipOf(db, { after: 'k3f9a1abc123.5' })),
    'the position of an instant': await statementsOf((db) =>
      tipOf(db, { since: '2026-03-05T18:00:00.000000Z' }),
    ),
    'prices of a request for changes': await statementsOf((db) =>
      wantedPricesOf(db, { markets: ['nickel'], readableMarkets: ['nickel'], codes: one }),
    ),
    'changes of some prices': await windowStatementOf({ prices: [1] }),
    'corrections of two markets': await windowStatementOf({ operations: ['corrected'] }),
    'every kind of change by its condition': await windowStatementOf({
      operations: ['price-changed', 'published', 'withdrawn'],
    }),
    'changes of two markets': await changesOf(2),
    'changes of many markets': await changesOf(17),
    'points that changed': await statementsOf((db) => changedPoints(db, [RUN])),
    'prices that changed': await statementsOf((db) => changedPrices(db, [RUN])),
  };
}

/** Every shape of statement of an answer, by purpose. */
async function shapes(): Promise<Record<string, readonly string[]>> {
  const select = (slug: string, filters: object) => [compiled(slug, filters).sql];
  const one = ['x'];
  return {
    'the newest revision of a market': await statementsOf((db) => readDataRevision(db, ['nickel'])),
    'the reference data': await statementsOf((db) =>
      referenceReader(1)(db, { epoch: 'e', reference: '7' }),
    ),
    'prices, unfiltered': select('nickel', {}),
    'prices by code': select('nickel', { codes: one }),
    'a page of prices': [
      selectionOf(recorder().db, planFor('nickel', { products: one }), '42.abc123', {
        after: 'X',
        pricesMax: 3,
      }).compile().sql,
    ],
    'prices by product': select('nickel', { products: one }),
    'prices by category': select('nickel', { priceCategories: one }),
    'prices by type': select('nickel', { priceTypes: one }),
    'prices by a dimension of the market': select('lithium-ion-battery', { cellFormats: one }),
    'prices by several lists': select('nickel', { regions: one, products: one, services: one }),
    'series, unbounded': [seriesStatement([1, 2], ALL_DAYS, '42.abc123')],
    'series between days': [
      seriesStatement([1], { first: dayOf('2024-01-01'), last: dayOf('2024-12-31') }, '42.abc123'),
    ],
    'some days of each of some prices': [
      daysStatement(
        [{ priceId: 1, first: dayOf('2024-01-01'), last: dayOf('2024-01-03') }],
        '42.abc123',
      ),
    ],
    'a few days of each of some prices': [fewPoints([], '42.abc123').text],
    'the last points of some prices': [lastPoints([1], ALL_DAYS, 1, '42.abc123').text],
    'the days and number of points': [extentsQuery([], '42.abc123').text],
    'values that were named': await statementsOf((db) =>
      unmatchedIn(() => db, vocabulary(db), planFor('nickel', { products: one }), HEAD, []),
    ),
    'codes that were not found': await statementsOf((db) =>
      unmatchedIn(() => db, vocabulary(db), planFor('nickel', { codes: one }), HEAD, []),
    ),
    'the values of every filter': await statementsOf((db) =>
      usedValues(db, market('copper'), '42.abc123'),
    ),
    ...(await shapesOfChanges()),
    'the list of markets': await statementsOf(extentsNow),
  };
}

/** The text of `test/prices/statements.sql`: every shape of statement under its purpose. */
export async function statementsText(): Promise<string> {
  const found = Object.entries(await shapes()).map(
    ([name, statements]) =>
      `-- ${name}\n${statements.map((each) => `${readable(each)};\n`).join('')}`,
  );
  return found.join('\n');
}
