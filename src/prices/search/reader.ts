import { type Kysely, sql } from 'kysely';
import { MARKETS, type Market, type MarketSlug } from '../../catalog/markets.ts';
import { dataRevisionAt, type NewestRevision } from '../../db/newest-revision.ts';
import { type DataRevision, numberIn, requireCommit } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { cachedByRevision } from '../../db/shared-work.ts';
import { Semaphore } from '../../std/semaphore.ts';
import { selectionOf } from '../market/query.ts';
import type { ReferenceReader } from '../market/references.ts';
import {
  type Alias,
  type FoundPrice,
  foundPrice,
  indexOf,
  type MarketIndex,
} from './market-index.ts';

/** Maximum number of prices in one statement: the driver parses its rows without a pause. */
const PRICES_PER_STATEMENT = 500;

/** Concurrent reads of markets: each takes a connection. */
const READ_AT_ONCE = 2;

interface SearchReaders {
  /** Reads data that requests share. A cancelled request does not cancel it for the others. */
  readonly db: Kysely<Database>;
  readonly references: ReferenceReader;
}

/**
 * A reader that builds the index of a market once for each of its revisions, on first use. An index
 * has about 800 bytes a price.
 */
export function indexReader(readers: SearchReaders): IndexReader {
  const semaphore = new Semaphore(READ_AT_ONCE, { waitingMax: 0, waitMs: 0 });
  const read = async (market: Market, data: DataRevision): Promise<MarketIndex> => {
    const release = await semaphore.acquire({ isUntimed: true });
    try {
      return await readIndex(readers, market, data);
    } finally {
      release?.();
    }
  };
  const indexes = MARKETS.map((market) => {
    const keyOf = ({ epoch, revision }: DataRevision): string => `${epoch}.${revision}`;
    const cached = cachedByRevision(REVISIONS, keyOf, (data: DataRevision) => read(market, data));
    return { slug: market.slug, cached };
  });
  return async (slugs, newest) => {
    const data = dataRevisionAt(newest, slugs);
    const requested = indexes.filter(({ slug }) => slugs.includes(slug));
    // The revision of one market changes less often than that of all markets.
    const wanted = requested.map(({ slug, cached }) => cached(dataRevisionAt(newest, [slug])));
    return { data, indexes: await Promise.all(wanted) };
  };
}

async function readIndex(
  { db, references }: SearchReaders,
  market: Market,
  data: DataRevision,
): Promise<MarketIndex> {
  const known = await references(db, data);
  const { rows: aliases } = await sql<Alias>`
    select words, alias from search_alias_at(${numberIn(data.reference)})
    where ${requireCommit(data.reference)} order by id`.execute(db);
  const filters = { market, codes: null, lists: [] };
  const prices: FoundPrice[] = [];
  for (;;) {
    const range = { after: prices.at(-1)?.code ?? null, pricesMax: PRICES_PER_STATEMENT };
    const rows = await selectionOf(db, filters, data.revision, range).execute();
    for (const row of rows) prices.push(foundPrice(market, row, known));
    if (rows.length < PRICES_PER_STATEMENT) return indexOf(market, prices, aliases);
  }
}

/** Cached indexes of a market: the newest, and one for requests that began before it. */
const REVISIONS = 2;

/** The indexes of some markets at one revision of the data. */
interface IndexesAt {
  readonly data: DataRevision;
  readonly indexes: readonly MarketIndex[];
}

/** Reads the indexes of markets at the newest revision. Does not wait for other markets. */
type IndexReader = (slugs: readonly MarketSlug[], newest: NewestRevision) => Promise<IndexesAt>;
