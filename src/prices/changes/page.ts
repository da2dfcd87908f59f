import type { Kysely } from 'kysely';
import { marketOf } from '../../catalog/markets.ts';
import type { ChangeOperation } from '../../contract/schemas/changes.ts';
import type { Reads } from '../../db/reads.ts';
import { commitIdOf, findRevision, numberOf, wireText } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { brokenRules, type Problem, startAgain } from '../../errors.ts';
import { Slice } from '../../std/turns.ts';
import type { Warning } from '../answer/warnings.ts';
import type { ReferenceReader, References } from '../market/references.ts';
import { IN_THE_FUTURE } from '../plan/options.ts';
import { attributesOf, currencyAndUnitOf } from '../write/record.ts';
import { type FilteredRange, windowOf } from './candidates.ts';
import { wantedPricesOf } from './codes.ts';
import { type ChangeForm, type ChangeValues, WRITERS } from './forms.ts';
import {
  type ChangeRun,
  type ChangesStart,
  LATEST,
  lengthOf,
  type PageRange,
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
  type PriceAt,
} from './values.ts';

/*
 * The change feed: each committed change of a point or a price, in the order of commits. This file
 * reads a page, `values.ts` the values before and after, and `follow.ts` waits for the next change.
 * `candidates.ts` finds the changes of some prices or kinds.
 */

/**
 * Reads a page of the feed. It reads the number of the newest change first and no change beyond it,
 * so a full page is consistent and never changes again.
 * @throws Problem `unknown_revision` for a position of another epoch, one beyond the newest change,
 *   or one that a failover has lost; `validation_failed` for a revision without `revision:`, and
 *   for an instant in the future; errors of the database
 */
export async function readPage(
  readers: ChangeReaders,
  request: ChangesRequest,
  signal?: AbortSignal,
): Promise<ChangesPage> {
  const db = readers.reads.db(signal);
  const tip = await tipOf(db, request.start);
  if (tip.isFuture) {
    throw brokenRules([{ pointer: '/since', code: 'out_of_range', detail: IN_THE_FUTURE }]);
  }
  const after = await startOf(db, request.start, tip);
  const wantedPrices = await wantedPricesOf(db, request);
  const range = {
    markets: idsOf(request.markets, tip),
    after,
    until: numberOf(tip.number),
    limit: request.limit,
    revision: tip.revision,
  };
  const write = (runs: readonly ChangeRun[]) =>
    changesOf(db, readers, { ...request, epoch: tip.epoch }, runs);
  const { operations } = request;
  const isFiltered = wantedPrices !== null || operations !== null;
  const { changes, end } = isFiltered
    ? await filteredChanges(db, { ...range, prices: wantedPrices?.ids ?? null, operations }, write)
    : await allChanges(db, range, write);
  const read = end ?? tip.number;
  return {
    next: wireText(tip.epoch, read),
    revision: wireText(tip.epoch, tip.revision),
    hasMore: numberOf(read) !== numberOf(tip.number),
    changes: changes.map(({ text }) => text),
    warnings: wantedPrices?.warnings ?? [],
  };
}

/** A change of a page. */
interface WrittenChange {
  /** Its number and the id of its commit. */
  readonly number: string;
  readonly operation: ChangeOperation;
  readonly text: string;
}

/** The changes of a page, and the position of the last one that was read; null for the newest. */
interface PageChanges {
  readonly changes: readonly WrittenChange[];
  readonly end: string | null;
}

/** Reads and writes the changes of runs. */
type Write = (runs: readonly ChangeRun[]) => Promise<WrittenChange[]>;

async function allChanges(
  db: Kysely<Database>,
  range: PageRange,
  write: Write,
): Promise<PageChanges> {
  const runs = range.after === range.until ? [] : await runsOf(db, range);
  const changes = await write(runs);
  return { changes, end: changes.length === range.limit ? (changes.at(-1)?.number ?? null) : null };
}

/** Most windows of the feed that a page reads; see `candidates.ts`. */
const WINDOWS = 10;

/** True if only the changes of prices that there are afterwards are wanted, and no points. */
const isOfPrices = (operations: readonly ChangeOperation[] | null): boolean =>
  operations?.every((each) => each === 'price-added' || each === 'price-changed') ?? false;

/** The runs that begin with the change of the price itself, without their points. */
const withoutPoints = (runs: readonly ChangeRun[]): ChangeRun[] =>
  runs.filter(({ hasPrice }) => hasPrice).map((run) => ({ ...run, points: 0 }));

/**
 * Reads the wanted changes window by window, until the page is full. A page that has read all its
 * windows ends there, so that rare changes cannot make it read a whole history.
 */
async function filteredChanges(
  db: Kysely<Database>,
  range: FilteredRange,
  write: Write,
): Promise<PageChanges> {
  const { limit, operations } = range;
  const changes: WrittenChange[] = [];
  let end: string | null = range.after;
  for (let windows = 0; windows < WINDOWS; windows += 1) {
    const after: string = numberOf(end);
    if (after === range.until) return { changes, end: null };
    const window = await windowOf(db, { ...range, after, limit: limit - changes.length });
    const found = await write(isOfPrices(operations) ? withoutPoints(window.runs) : window.runs);
    const wanted = found.filter((each) => operations?.includes(each.operation) ?? true);
    changes.push(...wanted.slice(0, limit - changes.length));
    if (changes.length === limit) return { changes, end: changes.at(-1)?.number ?? null };
    ({ end } = window);
    if (end === null) break;
  }
  return { changes, end };
}

/** Reads the reference data at one of its revisions. */
type ReferencesAt = (reference: string) => Promise<References>;

async function priceText(slug: string, changed: PriceAt | null, at: ReferencesAt) {
  if (changed === null) return null;
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
  added: ChangeOperation,
  changed: ChangeOperation,
): ChangeOperation {
  if (after === null) return 'withdrawn';
  return before === null ? added : changed;
}

/** The form and the epoch of the changes of a page. */
interface PageForm extends Pick<ChangesRequest, 'form'> {
  readonly epoch: string;
}

/** The changes of a run: the change of the price itself, then those of its points by date. */
async function changesOfRun(
  { form, epoch }: PageForm,
  run: ChangeRun,
  price: ChangedPrice | undefined,
  points: readonly ChangedPoint[],
  at: ReferencesAt,
  slice: Slice,
): Promise<WrittenChange[]> {
  const { market, code, recordedAt } = run;
  const id = commitIdOf(run.revision);
  const revision = wireText(epoch, run.revision);
  const changes: WrittenChange[] = [];
  const add = (operation: ChangeOperation, date: string | null, values: ChangeValues): void => {
    const number = `${run.number + BigInt(changes.length)}.${id}`;
    const seq = wireText(epoch, number);
    const members = { seq, recordedAt, operation, market, code, date, revision };
    changes.push({ number, operation, text: WRITERS[form](members, values) });
  };
  if (price) {
    const before = await priceText(market, price.before, at);
    const after = await priceText(market, price.after, at);
    add(operationOf(price, 'price-added', 'price-changed'), null, { of: 'price', before, after });
  }
  for (const point of points) {
    if (slice.isOver) await slice.yieldIfOver();
    const { before, after } = point;
    add(operationOf(point, 'published', 'corrected'), point.date, { of: 'point', before, after });
  }
  // A number without a change would be a permanent gap.
  if (changes.length !== lengthOf(run)) {
    throw new Error(`revision ${run.revision} lacks changes that were numbered`);
  }
  return changes;
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
  /** Slugs of all markets that the credential may read. */
  readonly readableMarkets: readonly string[];
  readonly start: ChangesStart;
  /** The wanted prices by their codes, ignoring case; null for all. */
  readonly codes: readonly string[] | null;
  /** The wanted kinds of changes; null for all. */
  readonly operations: readonly ChangeOperation[] | null;
  /** Most changes of the page. */
  readonly limit: number;
  readonly form: ChangeForm;
}

/** Changes in the order of their commits. */
export interface ChangesPage {
  /** The position of the next page: after all changes that were read, also of other markets. */
  readonly next: string;
  /** The newest revision, as on the wire. */
  readonly revision: string;
  /** True if changes may follow `next` already. A page without changes may have more. */
  readonly hasMore: boolean;
  /** Each change as the text of a JSON object, or as a row of CSV. */
  readonly changes: readonly string[];
  /** About codes that no price of the markets has or had. */
  readonly warnings: readonly Warning[];
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
      `The newest ${what} is ${wireText(tip.epoch, last)}: repeat the request once after five ` +
        `seconds; if it fails again, discard the ${what} and the data, and start without after`,
    );
  }
  return unknownPosition(
    `This ${what} is of another epoch or was lost in a failover; start without after`,
  );
}

/** The number to continue after. @throws Problem for a position that this database never issued */
async function startOf(db: Kysely<Database>, requested: ChangesStart, tip: Tip): Promise<string> {
  const { start, number } = tip;
  const after = requested !== null && 'after' in requested ? requested.after : '';
  if (after === LATEST) return numberOf(number);
  if (start !== null && BigInt(start) <= BigInt(numberOf(number))) return start;
  throw await refusalOf(db, after, tip);
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

async function changesOf(
  db: Kysely<Database>,
  { reads, references }: ChangeReaders,
  form: PageForm,
  runs: readonly ChangeRun[],
): Promise<WrittenChange[]> {
  const [points, prices] = await Promise.all([changedPoints(db, runs), changedPrices(db, runs)]);
  const at = (reference: string) => references(reads.db(), { epoch: form.epoch, reference });
  const changes: WrittenChange[] = [];
  const slice = new Slice();
  for (const each of runs) {
    const ofPoints = points.get(each) ?? [];
    changes.push(...(await changesOfRun(form, each, prices.get(each), ofPoints, at, slice)));
    await slice.yieldIfOver();
  }
  return changes;
}
