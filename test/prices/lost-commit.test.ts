import t from 'tap';
import { priceChanges as changedIn } from '../../src/book/build.ts';
import { MARKETS, type Market } from '../../src/catalog/markets.ts';
import { newestRevision, numberOf, readDataRevision } from '../../src/db/revisions.ts';
import { problemOf } from '../../src/http/problems.ts';
import { runsOf } from '../../src/prices/changes/segments.ts';
import { changedPoints, changedPrices } from '../../src/prices/changes/values.ts';
import { selectionOf } from '../../src/prices/market/query.ts';
import { rateSource, ratesReader } from '../../src/prices/market/rates.ts';
import { referenceReader } from '../../src/prices/market/references.ts';
import { usedValues } from '../../src/prices/market/vocabulary.ts';
import { columnsOf } from '../../src/prices/series/copy-binary.ts';
import { extentsQuery } from '../../src/prices/series/extents.ts';
import {
  daysStatement,
  fewPoints,
  lastPoints,
  seriesStatement,
} from '../../src/prices/series/from-sql.ts';
import { ALL_DAYS, dayOf } from '../../src/std/days.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { lockWaits } from '../support/database/lock-waits.ts';
import { failureOf, inTransaction } from '../support/database/minimal-data.ts';
import { serviceOn } from '../support/http/service.ts';
import { until } from '../support/http/sockets.ts';

const NICKEL = MARKETS.find(({ slug }) => slug === 'nickel') as Market;
const ALL = { market: NICKEL, codes: null, lists: [] };

/** All reads at a revision, by kind. */
function readersAt({ db, client }: TestDatabase, revision: string) {
  const { reads } = client;
  const signal = new AbortController().signal;
  const wanted = [{ priceId: 1, first: dayOf('2026-01-01'), last: dayOf('2026-12-31') }];
  const run = async () => {
    const number = numberOf((await newestRevision(db)).revision);
    const [found] = await runsOf(db, {
      markets: new Map([[1, 'nickel']]),
      after: '0',
      until: '999999999',
      limit: 1,
      revision: number,
    });
    if (!found) throw new Error('nothing changed');
    return [{ ...found, revision, hasPrice: true, points: 1 }];
  };
  const base = { id: 1, iso: 'EUR' };
  const rates = { slug: 'SAMPLE', base, isSample: true, revision, scopes: [] };
  return {
    'the newest revision up to it': () => readDataRevision(db, ['nickel'], revision),
    prices: () => selectionOf(db, ALL, revision).execute(),
    'the days of points': () => reads.query(extentsQuery([], revision)),
    'a page of prices': () =>
      selectionOf(db, ALL, revision, { after: null, pricesMax: 1 }).execute(),
    'values of filters': () => usedValues(db, NICKEL, revision),
    series: () => reads.copy(seriesStatement([1], ALL_DAYS, revision), columnsOf),
    'some days': () => reads.copy(daysStatement(wanted, revision), columnsOf),
    'a few points': () => reads.query(fewPoints(wanted, revision)),
    'the last points': () => reads.query(lastPoints([1], ALL_DAYS, 1, revision)),
    'reference data': () => referenceReader(1)(db, { epoch: 'e', reference: revision }),
    'the source of rates': () => rateSource(db, 'ECB', revision),
    rates: () => ratesReader(1)(db, 'e', rates),
    'the refresh of the book': () => changedIn(reads, 'nickel', '0', revision, signal),
    'positions in the feed': () =>
      runsOf(db, { markets: new Map([[1, 'x']]), after: '0', until: '9', limit: 1, revision }),
    'changed points': async () => changedPoints(db, await run()),
    'changed prices': async () => changedPrices(db, await run()),
  };
}

t.test('no statement reads at a number that another commit has taken', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const { revision } = await newestRevision(database.db);
  for (const [what, read] of Object.entries(readersAt(database, revision))) {
    t.equal((await failureOf(read())).message, 'nothing failed', `${what}: the commit is there`);
  }
  const lost = `${numberOf(revision)}.zzzzzz`;
  for (const [what, read] of Object.entries(readersAt(database, lost))) {
    const failure = await failureOf(read());
    t.match(failure.message, /is not the commit zzzzzz/, what);
    t.equal(problemOf(failure).code, 'database_unavailable', `${what}: it is a 503`);
  }
});

t.test(
  'a request that is under way when its commit is lost answers nothing of another',
  async (t) => {
    const database = await testDatabase(t, { seeded: true });
    const service = await serviceOn(t, database, { PRICE_BOOK_BYTES: '0' });
    const body = { filters: { codes: ['CP-NI-0001'] }, options: { includeSeries: true } };
    t.equal((await service.post('nickel', body)).status, 200);
    const pending = await inTransaction(database.pool, async (session) => {
      await session.query('lock table price in access exclusive mode');
      const answer = service.post('nickel', body);
      await until('the request waits', async () => (await lockWaits(database.pool)) > 0);
      // Like a standby that lacks the commit and has taken its number.
      await session.query('set local session_replication_role = replica');
      await session.query(`update revision set commit_id = new_commit_id()`);
      return { answer };
    });
    const { status, json, headers } = await pending.answer;
    t.same([status, json.code], [503, 'database_unavailable']);
    t.ok(headers['retry-after']);
    t.equal((await service.post('nickel', body)).status, 200, 'the next one is answered');
  },
);
