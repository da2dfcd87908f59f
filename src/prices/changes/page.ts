import type { Kysely } from 'kysely';
import { marketOf } from '../../catalog/markets.ts';
import { decimalOf, decimalText } from '../../conversion/decimal.ts';
import { instantOf } from '../../db/instant.ts';
import type { Reads } from '../../db/reads.ts';
import { commitIdOf, numberOf, wireText } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { type Problem, startAgain } from '../../errors.ts';
import { Slice } from '../../std/turns.ts';
import type { ReferenceReader, References } from '../select/references.ts';
import { attributesOf, ownTerms } from '../write/record.ts';
import { lengthOf, type Stretch, stretchesOf, type Tip, tipOf } from './segments.ts';
import {
  type ChangedPoint,
  type ChangedPrice,
  changedPoints,
  changedPrices,
  type PointValue,
  type PriceState,
} from './values.ts';

/** The reference data at a revision of theirs. */
type ReferencesAt = (reference: string) => Promise<References>;

/** A JSON number with every digit that is stored. */
const numberText = (text: string | null): string =>
  text === null ? 'null' : decimalText(decimalOf(text));

function pointText(value: PointValue | null): string {
  if (value === null) return 'null';
  const [low, mid, high] = [value.low, value.mid, value.high].map(numberText);
  const publishedAt = instantOf(value.publishedAt);
  return (
    `{"low":${low},"mid":${mid},"high":${high},` +
    `"publishedAt":"${publishedAt}","corrections":${value.corrections}}`
  );
}

async function priceText(
  slug: string,
  state: PriceState | null,
  at: ReferencesAt,
): Promise<string> {
  if (state === null) return 'null';
  const market = marketOf(slug);
  if (!market) throw new Error(`the catalog has no market ${slug}`);
  const references = await at(state.reference);
  const terms = ownTerms(state.price, references);
  return JSON.stringify(attributesOf(market, state.price, references, terms));
}

/** The operation of a change, from the values before and after it. */
function operationOf(
  { before, after }: { readonly before: unknown; readonly after: unknown },
  added: string,
  changed: string,
): string {
  if (after === null) return 'withdrawn';
  return before === null ? added : changed;
}

/** The members of the changes of a stretch that are the same for all. */
function frameOf(stretch: Stretch, epoch: string) {
  const { market, code, revision, recordedAt } = stretch;
  const id = commitIdOf(revision);
  const seqOf = (index: number): string => `${stretch.number + BigInt(index)}.${id}`;
  const names = `"market":${JSON.stringify(market)},"code":${JSON.stringify(code)}`;
  return (index: number, operation: string, date: string | null, values: string): string =>
    `{"seq":"${wireText(epoch, seqOf(index))}",` +
    `"recordedAt":"${recordedAt}","operation":"${operation}",${names},` +
    `"date":${JSON.stringify(date)},"revision":"${wireText(epoch, revision)}",${values}}`;
}

/**
 * The changes of a stretch, each as the text of a JSON object: that of the price itself first,
 * then its points by date.
 */
async function changeTexts(
  epoch: string,
  stretch: Stretch,
  price: ChangedPrice | undefined,
  points: readonly ChangedPoint[],
  at: ReferencesAt,
  slice: Slice,
): Promise<string[]> {
  const frame = frameOf(stretch, epoch);
  const texts: string[] = [];
  if (price) {
    const before = await priceText(stretch.market, price.before, at);
    const after = await priceText(stretch.market, price.after, at);
    const operation = operationOf(price, 'price-added', 'price-changed');
    texts.push(frame(0, operation, null, `"before":${before},"after":${after}`));
  }
  for (const point of points) {
    if (slice.isOver) await slice.pass();
    const values = `"before":${pointText(point.before)},"after":${pointText(point.after)}`;
    const operation = operationOf(point, 'published', 'corrected');
    texts.push(frame(texts.length, operation, point.date, values));
  }
  // A number without a change would be a gap for ever.
  if (texts.length !== lengthOf(stretch)) {
    throw new Error(`revision ${stretch.revision} has not the changes that were numbered`);
  }
  return texts;
}

/** What reading the feed needs. */
export interface ChangeSources {
  readonly reads: Reads;
  readonly references: ReferenceReader;
}

/** A validated request for changes. */
export interface ChangesAsked {
  /** Slugs of the markets whose changes are wanted; the caller may see them all. */
  readonly markets: readonly string[];
  /** Where to go on, as on the wire; null for the beginning. */
  readonly after: string | null;
  /** The most changes of the page. */
  readonly limit: number;
}

/** Some changes in the order of their commits, and how far they go. */
export interface Page {
  /** Where the next page goes on: past all that was read, also past changes of other markets. */
  readonly next: string;
  /** Newest revision that was there, as on the wire. */
  readonly revision: string;
  /** Each change as the text of a JSON object. */
  readonly changes: readonly string[];
}

const unknownPosition = (detail: string): Problem =>
  startAgain('unknown_revision', '/after', detail);

/** The number to go on after. @throws Problem for a position that this database never gave */
function startOf(after: string | null, tip: Tip): string {
  if (after === null) return '0';
  const [prefix = '', number = ''] = after.split('.');
  if (prefix.startsWith(tip.epoch) && BigInt(number) > BigInt(numberOf(tip.number))) {
    throw unknownPosition(`The newest position is ${wireText(tip.epoch, tip.number)}`);
  }
  if (tip.isKnown) return number;
  const detail = 'This position is of another epoch or was lost in a failover; start without after';
  throw unknownPosition(detail);
}

/** The slugs asked for, by the ids of their markets. */
function idsOf(slugs: readonly string[], tip: Tip): ReadonlyMap<number, string> {
  return new Map(
    slugs.map((slug) => {
      const id = tip.markets[slug];
      if (id === undefined) throw new Error(`the database has no market ${slug}`);
      return [id, slug];
    }),
  );
}

async function textsOf(
  db: Kysely<Database>,
  { reads, references }: ChangeSources,
  epoch: string,
  stretches: readonly Stretch[],
): Promise<string[]> {
  const [points, prices] = await Promise.all([
    changedPoints(db, stretches),
    changedPrices(db, stretches),
  ]);
  const at = (reference: string) => references(reads.db(), { epoch, reference });
  const texts: string[] = [];
  const slice = new Slice();
  for (const each of stretches) {
    const ofPoints = points.get(each) ?? [];
    texts.push(...(await changeTexts(epoch, each, prices.get(each), ofPoints, at, slice)));
    await slice.pass();
  }
  return texts;
}

/**
 * Reads a page of the feed. The newest change is read first and nothing beyond it, so that a page
 * is of one state; what it consists of never changes again.
 * @throws Problem `unknown_revision` for a position of another epoch, one beyond the newest change,
 *   or one that a failover has lost; errors of the database
 */
export async function readPage(
  sources: ChangeSources,
  asked: ChangesAsked,
  signal?: AbortSignal,
): Promise<Page> {
  const db = sources.reads.db(signal);
  const tip = await tipOf(db, asked.after);
  const { limit } = asked;
  const until = numberOf(tip.number);
  const after = startOf(asked.after, tip);
  const markets = idsOf(asked.markets, tip);
  const wanted = { markets, after, until, limit, revision: tip.revision };
  const stretches = after === until ? [] : await stretchesOf(db, wanted);
  const changes = await textsOf(db, sources, tip.epoch, stretches);
  const last = stretches.at(-1);
  const isFull = last !== undefined && changes.length === limit;
  const read = isFull
    ? `${last.number + BigInt(lengthOf(last) - 1)}.${commitIdOf(last.revision)}`
    : tip.number;
  return {
    next: wireText(tip.epoch, read),
    revision: wireText(tip.epoch, tip.revision),
    changes,
  };
}
