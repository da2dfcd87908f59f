import type { Kysely } from 'kysely';
import type { Reads } from '../../db/reads.ts';
import { commitIdOf, numberOf, wireText } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { type Problem, startAgain } from '../../errors.ts';
import { Slice } from '../../turns.ts';
import type { ReferenceReader } from '../references.ts';
import { changeTexts } from './encode.ts';
import { lengthOf, type Stretch, stretchesOf, type Tip, tipOf } from './segments.ts';
import { changedPoints, changedPrices } from './values.ts';

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
