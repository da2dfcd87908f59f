import type { Kysely } from 'kysely';
import { MARKETS, type Market, type MarketSlug } from '../../catalog/markets.ts';
import { headAt, type NewestRevision } from '../../db/newest-revision.ts';
import type { Head } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { Semaphore } from '../../std/semaphore.ts';
import { selectionOf } from '../select/query.ts';
import type { ReferenceReader } from '../select/references.ts';
import { type FoundPrice, foundPrice, indexOf, type MarketIndex } from './market-index.ts';

/** Maximum number of prices in one statement: the driver parses its rows without a pause. */
const PRICES_PER_STATEMENT = 500;

/** Concurrent reads of markets: each takes a connection. */
const READ_AT_ONCE = 2;

interface SearchSources {
  /** Reads data that requests share. A cancelled request does not cancel it for the others. */
  readonly db: Kysely<Database>;
  readonly references: ReferenceReader;
}

async function readIndex(
  { db, references }: SearchSources,
  market: Market,
  head: Head,
): Promise<MarketIndex> {
  const shown = await references(db, head);
  const filters = { market, codes: null, lists: [] };
  const prices: FoundPrice[] = [];
  for (;;) {
    const range = { after: prices.at(-1)?.code ?? null, most: PRICES_PER_STATEMENT };
    const rows = await selectionOf(db, filters, head.revision, range).execute();
    for (const row of rows) prices.push(foundPrice(market, row, shown));
    if (rows.length < PRICES_PER_STATEMENT) return indexOf(market, prices);
  }
}

interface IndexEntry {
  readonly index: Promise<MarketIndex>;
  readonly slug: MarketSlug;
  bytes: number;
}

/** Cached indexes of a market: the newest, and one for requests that began before it. */
const REVISIONS = 2;

/**
 * An LRU cache of indexes, within a budget of bytes. Concurrent callers share one build; failures
 * are not cached. An index that alone exceeds the budget is not cached.
 */
class Indexes {
  readonly #entries = new Map<string, IndexEntry>();
  readonly #bytesMax: number;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get(slug: MarketSlug, key: string, build: () => Promise<MarketIndex>): Promise<MarketIndex> {
    const found = this.#entries.get(key);
    const entry = found ?? { index: build(), slug, bytes: 0 };
    // Deleting and setting an entry keeps the map in the order of use.
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    if (!found) this.#watch(key, entry);
    return entry.index;
  }

  #watch(key: string, entry: IndexEntry): void {
    const isCached = () => this.#entries.get(key) === entry;
    entry.index.then(
      ({ bytes }) => {
        entry.bytes = bytes;
        this.#evict();
      },
      () => {
        if (isCached()) this.#entries.delete(key);
      },
    );
    const revisions = [...this.#entries].filter(([, { slug }]) => slug === entry.slug);
    for (const [old] of revisions.slice(0, -REVISIONS)) this.#entries.delete(old);
  }

  #evict(): void {
    let bytes = [...this.#entries.values()].reduce((sum, each) => sum + each.bytes, 0);
    for (const [key, entry] of this.#entries) {
      if (bytes <= this.#bytesMax) return;
      this.#entries.delete(key);
      bytes -= entry.bytes;
    }
  }
}

/** The indexes of some markets at one revision, and its head. */
interface IndexesAt {
  readonly head: Head;
  readonly indexes: readonly MarketIndex[];
}

/** Reads the indexes of markets at the newest revision. Does not wait for other markets. */
type IndexReader = (slugs: readonly MarketSlug[], newest: NewestRevision) => Promise<IndexesAt>;

/**
 * A reader that builds the index of a market once for each of its revisions, on first use.
 * @param bytesMax budget of all cached indexes in bytes
 */
export function indexReader(sources: SearchSources, bytesMax: number): IndexReader {
  const cached = new Indexes(bytesMax);
  const semaphore = new Semaphore(READ_AT_ONCE, { waitingMax: 0, waitMs: 0 });
  const read = async (market: Market, head: Head): Promise<MarketIndex> => {
    const release = await semaphore.acquire({ isUntimed: true });
    try {
      return await readIndex(sources, market, head);
    } finally {
      release?.();
    }
  };
  return async (slugs, newest) => {
    const head = headAt(newest, slugs);
    const requested = MARKETS.filter(({ slug }) => slugs.includes(slug));
    const indexes = requested.map((market) => {
      // The revision of one market changes less often than that of all markets.
      const own = headAt(newest, [market.slug]);
      const key = `${market.slug} ${own.epoch}.${own.revision}`;
      return cached.get(market.slug, key, () => read(market, own));
    });
    return { head, indexes: await Promise.all(indexes) };
  };
}
