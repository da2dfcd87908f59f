import { type Kysely, sql } from 'kysely';
import type { FilterName } from '../catalog/dimensions.ts';
import type { Market } from '../catalog/markets.ts';
import { Names } from '../catalog/nearest.ts';
import { keptReadings } from '../db/kept-readings.ts';
import type { Head } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import { usedValues } from './filter-values.ts';
import { marketPrices } from './query.ts';

/** The values that the prices of a market have in one filter. */
interface FilterVocabulary {
  /** Match keys and ids: all that a request may name a value by. */
  readonly keys: ReadonlySet<string>;
  readonly names: Names;
}

/** What a request can name in a market at one state. */
interface Vocabulary {
  of(filter: FilterName): FilterVocabulary;
  codes(): Promise<Names>;
}

const NOTHING: FilterVocabulary = { keys: new Set(), names: new Names([]) };

/** Every code of a market, as one text: as many rows would cost far more to read. */
async function codesOf(db: Kysely<Database>, market: Market, revision: string): Promise<Names> {
  const { rows } = await sql<{ codes: string | null }>`
    select string_agg(code, e'\n') as codes
    from ${marketPrices(market.slug, revision)} as p`.execute(db);
  const codes = rows[0]?.codes ?? null;
  return new Names(codes === null ? [] : codes.split('\n'));
}

async function vocabularyOf(
  db: Kysely<Database>,
  market: Market,
  revision: string,
): Promise<Vocabulary> {
  const used = await usedValues(db, market, revision);
  const filters = new Map<FilterName, FilterVocabulary>();
  for (const [filter, values] of Map.groupBy(used, (each) => each.filter)) {
    filters.set(filter, {
      keys: new Set(values.flatMap((each) => [each.matchKey, each.id])),
      names: new Names(values.map((each) => each.name)),
    });
  }
  const codes = keptReadings<Names>(1);
  return {
    of: (filter) => filters.get(filter) ?? NOTHING,
    codes: () => codes('', () => codesOf(db, market, revision)),
  };
}

/** Reads the vocabulary of a market at the state of a head. */
export type VocabularyReader = (market: Market, head: Head) => Promise<Vocabulary>;

/** States of markets that are kept; what a revision holds never changes. */
const KEPT = 8;

/**
 * A reader that keeps the vocabularies of the states that were asked for last.
 * @param shared reads what is kept; a request that leaves does not end it for the others
 */
export function vocabularyReader(shared: Kysely<Database>): VocabularyReader {
  const kept = keptReadings<Vocabulary>(KEPT);
  return (market, { epoch, revision }) =>
    kept(`${market.slug} ${epoch}.${revision}`, () => vocabularyOf(shared, market, revision));
}
