import type { Kysely } from 'kysely';
import type { Market } from '../../catalog/markets.ts';
import type { Reads } from '../../db/reads.ts';
import type { DataRevision } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { sqlExtents } from '../series/extents.ts';
import { sqlSeries } from '../series/from-sql.ts';
import { marketPricesReader } from './market-prices.ts';
import type { MarketReader } from './reader.ts';
import type { ReferenceReader } from './references.ts';
import { sqlSelector } from './select.ts';
import type { VocabularyReader } from './vocabulary.ts';

interface SqlMarketOptions {
  /** Reads data that requests share. An aborted request does not cancel it for the others. */
  readonly db: Kysely<Database>;
  /** Reads for one request. */
  readonly reads: Reads;
  readonly references: ReferenceReader;
  readonly vocabularies: VocabularyReader;
  /** Most prices whose series one statement reads. */
  readonly pricesPerStatement: number;
}

/**
 * Opens a reader of a market in the database at a data revision.
 * @param work its signal cancels the statements of the reader
 */
export type SqlMarket = (
  market: Market,
  data: DataRevision,
  work: { readonly signal: AbortSignal },
) => MarketReader;

/** The readers of markets in the database. Requests share references, vocabularies and markets. */
export function sqlMarket(options: SqlMarketOptions): SqlMarket {
  const { db, reads, references, vocabularies, pricesPerStatement } = options;
  const select = sqlSelector(reads, vocabularies, marketPricesReader(db));
  const series = sqlSeries(reads);
  return (market, data, work) => ({
    references: () => references(db, data),
    select: (plan) => select(plan, data, () => work.signal),
    vocabulary: () => vocabularies(market, data),
    series: (priceIds, wanted) => series(priceIds, wanted, data.revision, work.signal),
    extents: (stretches) => sqlExtents(reads, stretches, data.revision, work.signal),
    pricesPerRead: pricesPerStatement,
  });
}
