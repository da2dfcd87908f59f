import type { Kysely } from 'kysely';
import { marketOf } from '../../catalog/markets.ts';
import { instantOf } from '../../db/instant.ts';
import type { Reads } from '../../db/reads.ts';
import { commitIdOf, findRevision, numberOf, wireText } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { brokenRules, type Problem, startAgain } from '../../errors.ts';
import { decimalOf, decimalText } from '../../std/decimal.ts';
import { Slice } from '../../std/turns.ts';
import type { ReferenceReader, References } from '../market/references.ts';
import { attributesOf, currencyAndUnitOf } from '../write/record.ts';
import {
  type ChangeRun,
  LATEST,
  lengthOf,
  revisionIn,
  runsOf,
  type Tip,
  tipOf,
} from './segments.ts';
import {
  type ChangedPoint,
  type ChangedPrice,
  changedPoints,
  changedPrices,
  type PointValue,
  type PriceAt,
} from './values.ts';

/*
 * The change feed: each committed change of a point or a price, in the order of commits. This file
 * reads a page, `values.ts` the values before and after, and `follow.ts` waits for the next change.
 */

/** Reads the reference data at one of its revisions. */
type ReferencesAt = (reference: string) => Promise<References>;

/**
 * Reads a page of the feed. It reads the number of the newest change first and no change beyond it,
 * so a page is consistent and never changes again.
 * @throws Problem `unknown_revision` for a position of another epoch, one beyond the newest change,
 *   or one that a failover has lost; `validation_failed` for a revision without `revision:`; errors
 *   of the database
 */
export async function readPage(
  readers: ChangeReaders,
  request: ChangesRequest,
  signal?: AbortSignal,
): Promise<ChangesPage> {
  const db = readers.reads.db(signal);
  const tip = await tipOf(db, request.after);
  const { limit } = request;
  const until = numberOf(tip.number);
  const after = await startOf(db, request.after, tip);
  const markets = idsOf(request.markets, tip);
  const wanted = { markets, after, until, limit, revision: tip.revision };
  const runs = after === until ? [] : await runsOf(db, wanted);
  const changes = await textsOf(db, readers, tip.epoch, runs);
  const last = runs.at(-1);
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

/** A JSON number with every stored digit. */
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

async function priceText(slug: string, changed: PriceAt | null, at: ReferencesAt): Promise<string> {
  if (changed === null) return 'null';
  const market = marketOf(slug);
  if (!market) throw new Error(`the catalog has no market ${slug}`);
  const references = await at(changed.reference);
  const { price } = changed;
  return JSON.stringify(
    attributesOf(market, price, references, currencyAndUnitOf(price, references)),
  );
}

/** The operation of a change, from its values before and after. */
function operationOf(
  { before, after }: { readonly before: unknown; readonly after: unknown },
  added: string,
  changed: string,
): string {
  if (after === null) return 'withdrawn';
  return before === null ? added : changed;
}

/** Writes a change of a run: its common members, then its own. */
function writerOf(run: ChangeRun, epoch: string) {
  const { market, code, revision, recordedAt } = run;
  const id = commitIdOf(revision);
  const seqOf = (index: number): string => `${run.number + BigInt(index)}.${id}`;
  const names = `"market":${JSON.stringify(market)},"code":${JSON.stringify(code)}`;
  return (index: number, operation: string, date: string | null, values: string): string =>
    `{"seq":"${wireText(epoch, seqOf(index))}",` +
    `"recordedAt":"${recordedAt}","operation":"${operation}",${names},` +
    `"date":${JSON.stringify(date)},"revision":"${wireText(epoch, revision)}",${values}}`;
}

/**
 * The changes of a run, each as the text of a JSON object: the change of the price itself, then
 * those of its points by date.
 */
async function changeTexts(
  epoch: string,
  run: ChangeRun,
  price: ChangedPrice | undefined,
  points: readonly ChangedPoint[],
  at: ReferencesAt,
  slice: Slice,
): Promise<string[]> {
  const write = writerOf(run, epoch);
  const texts: string[] = [];
  if (price) {
    const before = await priceText(run.market, price.before, at);
    const after = await priceText(run.market, price.after, at);
    const operation = operationOf(price, 'price-added', 'price-changed');
    texts.push(write(0, operation, null, `"before":${before},"after":${after}`));
  }
  for (const point of points) {
    if (slice.isOver) await slice.yieldIfOver();
    const values = `"before":${pointText(point.before)},"after":${pointText(point.after)}`;
    const operation = operationOf(point, 'published', 'corrected');
    texts.push(write(texts.length, operation, point.date, values));
  }
  // A number without a change would be a permanent gap.
  if (texts.length !== lengthOf(run)) {
    throw new Error(`revision ${run.revision} lacks changes that were numbered`);
  }
  return texts;
}

/** The readers of the feed. */
export interface ChangeReaders {
  readonly reads: Reads;
  readonly references: ReferenceReader;
}

/** A validated request for changes. */
export interface ChangesRequest {
  /** Slugs of the requested markets; the credential may read all of them. */
  readonly markets: readonly string[];
  /** The position to continue after, as on the wire (see `tipOf`); null for the start. */
  readonly after: string | null;
  /** Most changes of the page. */
  readonly limit: number;
}

/** Changes in the order of their commits. */
export interface ChangesPage {
  /** The position of the next page: after all changes that were read, also of other markets. */
  readonly next: string;
  /** The newest revision, as on the wire. */
  readonly revision: string;
  /** Each change as the text of a JSON object. */
  readonly changes: readonly string[];
}

const unknownPosition = (detail: string): Problem =>
  startAgain('unknown_revision', '/after', detail);

/** The refusal of a position that this database does not have. */
async function refusalOf(db: Kysely<Database>, after: string, tip: Tip): Promise<Problem> {
  const named = revisionIn(after);
  const text = named ?? after;
  const { newest, revision } = await findRevision(db, text);
  if (named === null && revision !== null) {
    const detail = `This is a revision, not a position; send after=revision:${text}`;
    return brokenRules([{ pointer: '/after', code: 'invalid_format', detail }]);
  }
  const [what, last] = named === null ? ['position', tip.number] : ['revision', newest];
  const [prefix = '', number = ''] = text.split('.');
  if (prefix.startsWith(tip.epoch) && BigInt(number) > BigInt(numberOf(last))) {
    return unknownPosition(
      `The newest ${what} is ${wireText(tip.epoch, last)}; continue after that or an earlier one`,
    );
  }
  return unknownPosition(
    `This ${what} is of another epoch or was lost in a failover; start without after`,
  );
}

/** The number to continue after. @throws Problem for a position that this database never issued */
async function startOf(db: Kysely<Database>, after: string | null, tip: Tip): Promise<string> {
  const { start, number } = tip;
  if (after === LATEST) return numberOf(number);
  if (start !== null && BigInt(start) <= BigInt(numberOf(number))) return start;
  throw await refusalOf(db, after ?? '', tip);
}

/** The requested slugs, by the ids of their markets. */
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
  { reads, references }: ChangeReaders,
  epoch: string,
  runs: readonly ChangeRun[],
): Promise<string[]> {
  const [points, prices] = await Promise.all([changedPoints(db, runs), changedPrices(db, runs)]);
  const at = (reference: string) => references(reads.db(), { epoch, reference });
  const texts: string[] = [];
  const slice = new Slice();
  for (const each of runs) {
    const ofPoints = points.get(each) ?? [];
    texts.push(...(await changeTexts(epoch, each, prices.get(each), ofPoints, at, slice)));
    await slice.yieldIfOver();
  }
  return texts;
}
