import { sql } from 'kysely';
import { dayOf } from '../../conversion/calendar.ts';
import type { Newest } from '../../db/newest.ts';
import { headAt, revisionOf } from '../../db/newest.ts';
import type { Reads } from '../../db/reads.ts';
import { commitIdOf, numberOf } from '../../db/revisions.ts';
import { type PriceFilters, type SelectedPrice, selectionOf } from '../../prices/select/query.ts';
import type { ReferenceReader } from '../../prices/select/references.ts';
import { columnsOf } from '../../prices/series/copy-binary.ts';
import {
  columnsOfRows,
  daysStatement,
  type FewPointsRow,
  fewPoints,
  type PriceDays,
  seriesStatement,
} from '../../prices/series/from-sql.ts';
import { type Block, emptyColumns } from './block.ts';
import { type BookPrice, bookPrice, Edition, type Shelf } from './edition.ts';
import { blocksOf, replacedIn } from './series.ts';
import { type TurnCounts, Turns } from './turns.ts';

/** The changes of one price between two revisions. */
interface ChangedPrice {
  readonly priceId: number;
  /** The days between which its points changed; null where none did. */
  readonly first: string | null;
  readonly last: string | null;
  /** Number of changed points. */
  readonly points: number;
}

/** Prepared once on each connection: planning it takes longer than answering it. */
const CHANGED = {
  name: 'changed_prices',
  text: `select price_id as "priceId", min(first_date) as first, max(last_date) as last,
      sum(points)::int as points
    from change_segment
    where revision > $1::bigint and revision <= $2::bigint and require_commit($2, $4)
      and market_id = (select id from market where slug = $3)
    group by price_id`,
};

/** The changes of the prices of a market after one revision, up to another. */
export const changedPrices = (
  reads: Reads,
  slug: string,
  after: string,
  until: string,
  signal: AbortSignal,
): Promise<readonly ChangedPrice[]> => {
  const values = [numberOf(after), numberOf(until), slug, commitIdOf(until)];
  return reads.query({ ...CHANGED, values }, signal);
};

/** Where editions are read from, and what is counted of it. */
export interface Press {
  readonly reads: Reads;
  readonly references: ReferenceReader;
  readonly counts: {
    builds: number;
    refreshes: number;
    /** Rows of prices and of series that were read. */
    pricesRead: number;
    pointsRead: number;
  };
  readonly turns: TurnCounts;
}

/** Most prices, and about as many points as, one COPY reads: they are held at once. */
const PRICES_PER_COPY = 50;
const POINTS_PER_COPY = 20_000;

/** Days of points that are few enough to be read as rows. */
const FEW_DAYS = 1_000;

const NO_POINTS = emptyColumns(0);
const ALL_DAYS = { from: null, to: null };

const stateAt = (newest: Newest, slug: string) => ({
  market: revisionOf(newest, slug),
  reference: revisionOf(newest, 'reference'),
});

/** Whether an edition is what a look found: the same state, or a later one. */
export function isFresh({ newest: known, state }: Edition, newest: Newest, slug: string): boolean {
  if (known.order >= newest.order) return true;
  const now = stateAt(newest, slug);
  return (
    known.epoch === newest.epoch && state.market === now.market && state.reference === now.reference
  );
}

/** Whether an edition can be brought to a state by what changed since, without reading it all. */
export const canRefresh = ({ newest: known, state }: Edition, newest: Newest): boolean =>
  known.history === newest.history && state.market !== '0';

const allOf = ({ market }: Shelf): PriceFilters => ({ market, codes: null, lists: [] });

/**
 * Reads a market whole. Null where it takes more than some bytes.
 * @param room bytes that it may take
 */
export async function buildEdition(
  press: Press,
  shelf: Shelf,
  newest: Newest,
  room: number,
  signal: AbortSignal,
): Promise<Edition | null> {
  const { reads, counts } = press;
  const head = headAt(newest, [shelf.market.slug]);
  const references = await press.references(reads.db(), head);
  const selected = await selectionOf(reads.db(signal), allOf(shelf), head.revision).execute();
  counts.pricesRead += selected.length;
  const prices = new Map<number, BookPrice>();
  const turns = new Turns(press.turns);
  let bytes = 0;
  let step = 1;
  for (let start = 0; start < selected.length; ) {
    const chunk = selected.slice(start, start + step);
    const ids = chunk.map(({ id }) => id);
    const statement = seriesStatement(ids, ALL_DAYS, head.revision);
    const series = await reads.copy(statement, columnsOf, signal);
    let points = 0;
    for (const price of chunk) {
      const columns = series.get(price.id);
      const made = bookPrice(price, columns ? blocksOf(columns) : []);
      prices.set(price.id, made);
      bytes += made.bytes;
      points += columns?.length ?? 0;
    }
    if (bytes > room) return null;
    counts.pointsRead += points;
    turns.spend(points);
    await turns.pass();
    start += chunk.length;
    // As many prices as would have made the points that one statement should read.
    const wanted = Math.floor((step * POINTS_PER_COPY) / Math.max(points, 1));
    step = Math.max(1, Math.min(PRICES_PER_COPY, 2 * step, wanted));
  }
  counts.builds += 1;
  const state = stateAt(newest, shelf.market.slug);
  return new Edition(shelf, { newest, state, references, prices, selectsAsBefore: false });
}

/** What a refresh has to read. */
interface Difference {
  readonly changed: readonly ChangedPrice[];
  readonly points: number;
}

/** What changed of a market since its edition. */
export async function differenceOf(
  press: Press,
  { market }: Shelf,
  { state }: Edition,
  newest: Newest,
  signal: AbortSignal,
): Promise<Difference> {
  const until = revisionOf(newest, market.slug);
  if (until === state.market) return { changed: [], points: 0 };
  const changed = await changedPrices(press.reads, market.slug, state.market, until, signal);
  return { changed, points: changed.reduce((sum, { points }) => sum + points, 0) };
}

/** The points of some days, as they are at a revision. */
async function pointsOf(
  { reads }: Press,
  wanted: readonly PriceDays[],
  revision: string,
  signal: AbortSignal,
) {
  const days = wanted.reduce((sum, { first, last }) => sum + 1 + dayOf(last) - dayOf(first), 0);
  if (days > FEW_DAYS) return reads.copy(daysStatement(wanted, revision), columnsOf, signal);
  return columnsOfRows(await reads.query<FewPointsRow>(fewPoints(wanted, revision), signal));
}

/** The series of changed prices as they are now, blocks shared with what they were. */
async function changedBlocks(
  press: Press,
  before: Edition,
  changed: readonly ChangedPrice[],
  revision: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<number, readonly Block[]>> {
  const { counts } = press;
  const turns = new Turns(press.turns);
  const blocks = new Map<number, readonly Block[]>();
  const wanted = changed.flatMap(({ priceId, first, last }) =>
    first === null || last === null ? [] : [{ priceId, first, last }],
  );
  for (let start = 0; start < wanted.length; start += PRICES_PER_COPY) {
    const chunk = wanted.slice(start, start + PRICES_PER_COPY);
    const series = await pointsOf(press, chunk, revision, signal);
    for (const { priceId, first, last } of chunk) {
      const points = series.get(priceId) ?? NO_POINTS;
      const days = { first: dayOf(first), last: dayOf(last) };
      blocks.set(priceId, replacedIn(before.prices.get(priceId)?.blocks ?? [], days, points));
      counts.pointsRead += points.length;
      turns.spend(points.length);
    }
    if (turns.isDue) await turns.pass();
  }
  return blocks;
}

/** The changed prices as they are now, their series aside. */
async function changedPricesAt(
  { reads, counts }: Press,
  shelf: Shelf,
  changed: readonly ChangedPrice[],
  revision: string,
  signal: AbortSignal,
): Promise<readonly SelectedPrice[]> {
  if (changed.length === 0) return [];
  const ids = changed.map(({ priceId }) => priceId);
  const { sql: text, parameters } = selectionOf(reads.db(), allOf(shelf), revision)
    .where(sql<boolean>`p.id = any(${ids}::int[])`)
    .compile();
  // Prepared once on each connection: planning it takes longer than answering it.
  const query = { name: 'changed_prices_at', text, values: [...parameters] };
  const selected = await reads.query<SelectedPrice>(query, signal);
  counts.pricesRead += selected.length;
  return selected;
}

/** Whether the same filters select a price before and after: whether only its series changed. */
function isSelectedAlike(before: BookPrice | undefined, after: BookPrice | undefined): boolean {
  const attributesOf = (each: BookPrice | undefined) =>
    JSON.stringify({ ...each?.price, last_date: null, last_published_at: null });
  return before !== undefined && attributesOf(before) === attributesOf(after);
}

/** Brings an edition to a newer state by reading what changed, and nothing else. */
export async function refreshEdition(
  press: Press,
  shelf: Shelf,
  before: Edition,
  newest: Newest,
  { changed }: Difference,
  signal: AbortSignal,
): Promise<Edition> {
  const { reads } = press;
  const head = headAt(newest, [shelf.market.slug]);
  const state = stateAt(newest, shelf.market.slug);
  const [references, blocks, selected] = await Promise.all([
    press.references(reads.db(), head),
    changedBlocks(press, before, changed, head.revision, signal),
    changedPricesAt(press, shelf, changed, head.revision, signal),
  ]);
  const isSameReference = state.reference === before.state.reference;
  const prices = new Map<number, BookPrice>();
  for (const [id, each] of before.prices) {
    // Records show the reference data, so with it all of them are to be written anew.
    prices.set(id, isSameReference ? each : { ...each, heads: new Map() });
  }
  for (const { priceId } of changed) prices.delete(priceId);
  for (const price of selected) {
    const own = blocks.get(price.id) ?? before.prices.get(price.id)?.blocks ?? [];
    prices.set(price.id, bookPrice(price, own));
  }
  const selectsAsBefore =
    isSameReference &&
    changed.every(({ priceId: id }) => isSelectedAlike(before.prices.get(id), prices.get(id)));
  press.counts.refreshes += 1;
  return new Edition(shelf, { newest, state, references, prices, selectsAsBefore });
}
