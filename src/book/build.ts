import { sql } from 'kysely';
import type { Market } from '../catalog/markets.ts';
import type { NewestRevision } from '../db/newest-revision.ts';
import { dataRevisionAt, revisionOf } from '../db/newest-revision.ts';
import type { Reads } from '../db/reads.ts';
import { commitIdOf, type DataRevision, numberOf } from '../db/revisions.ts';
import { cachedByRevision } from '../db/shared-work.ts';
import { type PriceFilters, type SelectedPrice, selectionOf } from '../prices/market/query.ts';
import type { ReferenceReader } from '../prices/market/references.ts';
import type { Vocabulary, VocabularyReader } from '../prices/market/vocabulary.ts';
import { columnsOf } from '../prices/series/copy-binary.ts';
import {
  columnsOfRows,
  daysStatement,
  type FewPointsRow,
  fewPoints,
  seriesStatement,
} from '../prices/series/from-sql.ts';
import type { PriceDays } from '../prices/series/ranges.ts';
import { ALL_DAYS, dayOf, daysIn } from '../std/days.ts';
import { Slice } from '../std/turns.ts';
import { type Block, blocksOf, NO_POINTS, withReplaced } from './block.ts';
import { type BookPrice, bookPrice, Edition } from './edition.ts';

/** The changes of one price between two revisions. */
interface BookPriceChange {
  readonly priceId: number;
  /** The first and last day of its changed points; null if none changed. */
  readonly first: string | null;
  readonly last: string | null;
  /** Number of changed points. */
  readonly points: number;
}

/** Prepared once per connection: planning takes longer than execution. */
const CHANGED = {
  name: 'changed_prices',
  text: `select price_id as "priceId", min(first_date) as first, max(last_date) as last,
      sum(points)::int as points
    from change_segment
    where revision > $1::bigint and revision <= $2::bigint and require_commit($2, $4)
      and market_id = (select id from market where slug = $3)
    group by price_id`,
};

/** The changed prices of a market after one revision, up to another. */
export const priceChanges = (
  reads: Reads,
  slug: string,
  after: string,
  until: string,
  signal: AbortSignal,
): Promise<readonly BookPriceChange[]> => {
  const values = [numberOf(after), numberOf(until), slug, commitIdOf(until)];
  return reads.query({ ...CHANGED, values }, signal);
};

/** Reads editions and counts the work. */
export interface BuildContext {
  readonly reads: Reads;
  readonly references: ReferenceReader;
  readonly vocabularies: VocabularyReader;
  readonly counts: {
    builds: number;
    refreshes: number;
    /** Rows that were read. */
    pricesRead: number;
    pointsRead: number;
    /** Vocabularies that were requested from the database. */
    vocabulariesRead: number;
  };
  /** Ends all reads when the book is closed. */
  readonly signal: AbortSignal;
}

/** Most prices of one COPY. */
const PRICES_PER_COPY = 50;
/** Intended points of one COPY: all of them are in memory at once. */
const POINTS_PER_COPY = 20_000;

/** Most days of points that are read as rows instead of by COPY. */
const ROW_DAYS_MAX = 1_000;

const revisionsAt = (newest: NewestRevision, slug: string) => ({
  market: revisionOf(newest, slug),
  reference: revisionOf(newest, 'reference'),
});

/** True if an edition is current at a newest revision, or later than it. */
export function isFresh(
  { newest: known, revisions }: Edition,
  newest: NewestRevision,
  slug: string,
): boolean {
  if (known.order >= newest.order) return true;
  const now = revisionsAt(newest, slug);
  return (
    known.epoch === newest.epoch &&
    revisions.market === now.market &&
    revisions.reference === now.reference
  );
}

/** True if the changes since an edition are enough to make the next one. */
export const canRefresh = (
  { newest: known, revisions }: Edition,
  newest: NewestRevision,
): boolean => known.history === newest.history && revisions.market !== '0';

const allOf = (market: Market): PriceFilters => ({ market, codes: null, lists: [] });

/** Reads the vocabulary at a revision on first use. */
const vocabularyAt = ({ vocabularies, counts }: BuildContext, market: Market, data: DataRevision) =>
  cachedByRevision(
    1,
    () => market.slug,
    (): Promise<Vocabulary> => {
      counts.vocabulariesRead += 1;
      return vocabularies(market, data);
    },
  );

/**
 * Reads a whole market.
 * @param room most bytes of the edition
 * @returns null if the edition needs more
 */
export async function buildEdition(
  context: BuildContext,
  market: Market,
  newest: NewestRevision,
  room: number,
): Promise<Edition | null> {
  const { reads, counts, signal } = context;
  const data = dataRevisionAt(newest, [market.slug]);
  const references = await context.references(reads.db(), data);
  const selected = await selectionOf(reads.db(signal), allOf(market), data.revision).execute();
  counts.pricesRead += selected.length;
  const prices = new Map<number, BookPrice>();
  const slice = new Slice();
  let bytes = 0;
  let step = 1;
  for (let start = 0; start < selected.length; ) {
    const chunk = selected.slice(start, start + step);
    const ids = chunk.map(({ id }) => id);
    const statement = seriesStatement(ids, ALL_DAYS, data.revision);
    const series = await reads.copy(statement, columnsOf, signal);
    let points = 0;
    for (const price of chunk) {
      const columns = series.get(price.id);
      const made = bookPrice(price, columns ? blocksOf(columns) : []);
      prices.set(price.id, made);
      bytes += made.bytes;
      points += columns?.length ?? 0;
      await slice.yieldIfOver();
    }
    if (bytes > room) return null;
    counts.pointsRead += points;
    start += chunk.length;
    // The number of prices that would have given the intended points of one COPY.
    const wanted = Math.floor((step * POINTS_PER_COPY) / Math.max(points, 1));
    step = Math.max(1, Math.min(PRICES_PER_COPY, 2 * step, wanted));
  }
  counts.builds += 1;
  const revisions = revisionsAt(newest, market.slug);
  const vocabulary = vocabularyAt(context, market, data);
  return new Edition({ newest, revisions, references, prices, vocabulary });
}

/** The changes that a refresh reads. */
interface RefreshChanges {
  readonly changed: readonly BookPriceChange[];
  readonly points: number;
}

/** The changes of a market since its edition. */
export async function differenceOf(
  { reads, signal }: BuildContext,
  market: Market,
  { revisions }: Edition,
  newest: NewestRevision,
): Promise<RefreshChanges> {
  const until = revisionOf(newest, market.slug);
  if (until === revisions.market) return { changed: [], points: 0 };
  const changed = await priceChanges(reads, market.slug, revisions.market, until, signal);
  return { changed, points: changed.reduce((sum, { points }) => sum + points, 0) };
}

/** The points of some days at a revision. */
async function pointsOf(
  { reads, signal }: BuildContext,
  wanted: readonly PriceDays[],
  revision: string,
) {
  const days = wanted.reduce((sum, each) => sum + daysIn(each), 0);
  if (days > ROW_DAYS_MAX) return reads.copy(daysStatement(wanted, revision), columnsOf, signal);
  return columnsOfRows(await reads.query<FewPointsRow>(fewPoints(wanted, revision), signal));
}

/** The series of changed prices at a revision. Unchanged blocks are shared with the old edition. */
async function changedBlocks(
  context: BuildContext,
  before: Edition,
  changed: readonly BookPriceChange[],
  revision: string,
): Promise<ReadonlyMap<number, readonly Block[]>> {
  const { counts } = context;
  const slice = new Slice();
  const blocks = new Map<number, readonly Block[]>();
  const wanted = changed.flatMap(({ priceId, first, last }) =>
    first === null || last === null ? [] : [{ priceId, first: dayOf(first), last: dayOf(last) }],
  );
  for (let start = 0; start < wanted.length; start += PRICES_PER_COPY) {
    const chunk = wanted.slice(start, start + PRICES_PER_COPY);
    const series = await pointsOf(context, chunk, revision);
    for (const days of chunk) {
      const { priceId } = days;
      const points = series.get(priceId) ?? NO_POINTS;
      blocks.set(priceId, withReplaced(before.prices.get(priceId)?.blocks ?? [], days, points));
      counts.pointsRead += points.length;
      await slice.yieldIfOver();
    }
  }
  return blocks;
}

/** The changed prices at a revision, without their series. */
async function changedPricesAt(
  { reads, counts, signal }: BuildContext,
  market: Market,
  changed: readonly BookPriceChange[],
  revision: string,
): Promise<readonly SelectedPrice[]> {
  if (changed.length === 0) return [];
  const ids = changed.map(({ priceId }) => priceId);
  const { sql: text, parameters } = selectionOf(reads.db(), allOf(market), revision)
    .where(sql<boolean>`p.id = any(${ids}::int[])`)
    .compile();
  // Prepared once per connection: planning takes longer than execution.
  const query = { name: 'changed_prices_at', text, values: [...parameters] };
  const selected = await reads.query<SelectedPrice>(query, signal);
  counts.pricesRead += selected.length;
  return selected;
}

/** True if only the series of a price changed: the same filters select it before and after. */
function isSelectedAsBefore(before: BookPrice | undefined, after: BookPrice | undefined): boolean {
  const attributesOf = (each: BookPrice | undefined) =>
    JSON.stringify({ ...each?.price, last_date: null, last_published_at: null });
  return before !== undefined && attributesOf(before) === attributesOf(after);
}

/** Makes the next edition from the previous one. Reads only the changes. */
export async function refreshEdition(
  context: BuildContext,
  market: Market,
  before: Edition,
  newest: NewestRevision,
  { changed }: RefreshChanges,
): Promise<Edition> {
  const { reads } = context;
  const data = dataRevisionAt(newest, [market.slug]);
  const revisions = revisionsAt(newest, market.slug);
  const [references, blocks, selected] = await Promise.all([
    context.references(reads.db(), data),
    changedBlocks(context, before, changed, data.revision),
    changedPricesAt(context, market, changed, data.revision),
  ]);
  const prices = new Map(before.prices);
  for (const { priceId } of changed) prices.delete(priceId);
  for (const price of selected) {
    const own = blocks.get(price.id) ?? before.prices.get(price.id)?.blocks ?? [];
    prices.set(price.id, bookPrice(price, own));
  }
  const selectsAsBefore =
    revisions.reference === before.revisions.reference &&
    changed.every(({ priceId: id }) => isSelectedAsBefore(before.prices.get(id), prices.get(id)));
  context.counts.refreshes += 1;
  const vocabulary = selectsAsBefore ? before.vocabulary : vocabularyAt(context, market, data);
  return new Edition({ newest, revisions, references, prices, vocabulary });
}
