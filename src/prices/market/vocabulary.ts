import { type Kysely, sql } from 'kysely';
import type { FilterName } from '../../catalog/dimensions.ts';
import { MARKETS, type Market } from '../../catalog/markets.ts';
import { Names } from '../../catalog/nearest.ts';
import { filtersOf } from '../../contract/schemas/market.ts';
import type { DataRevision } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { cachedByRevision } from '../../db/shared-work.ts';
import type { ListFilter } from '../plan/plan.ts';
import { columnOf, marketPrices, valuesAt } from './query.ts';

/** A filter value of at least one price of a market. */
interface UsedValue {
  readonly filter: FilterName;
  readonly id: string;
  readonly name: string;
  readonly matchKey: string;
  /** The text of its key in the column of `price`. */
  readonly key: string;
  readonly prices: number;
}

/** The legal values of a market's filters at a revision, by filter and name. */
export async function usedValues(
  db: Kysely<Database>,
  market: Market,
  revision: string,
): Promise<readonly UsedValue[]> {
  const filters = filtersOf(market);
  if (filters.length === 0) return [];
  const parts = filters.map(
    (name, index) => sql`select ${sql.lit(index)} as position, ${sql.lit(name)} as filter,
      v.uuid as id, v.name, v.match_key as "matchKey",
      v.key::text as key, count(*)::int as prices
    from p join ${valuesAt(name, revision)} as v on v.key = ${sql.ref(`p.${columnOf(name).column}`)}
    group by v.uuid, v.name, v.match_key, v.key`,
  );
  const { rows } = await sql<UsedValue>`
    with p as materialized ${marketPrices(market.slug, revision)}
    select filter, id, name, "matchKey", key, prices
    from (${sql.join(parts, sql` union all `)}) as used
    order by position, name collate "C"`.execute(db);
  return rows;
}

/** The values of one filter in a market. */
interface FilterVocabulary {
  /** Match keys and ids: a request may name a value by either. */
  readonly keys: ReadonlySet<string>;
  readonly names: Names;
}

/** All values and codes that a request can name in a market at one revision. */
export interface Vocabulary {
  /** Every value, in the order of the filters and of the names. */
  readonly used: readonly UsedValue[];
  of(filter: FilterName): FilterVocabulary;
  /** The keys of the values that a list names, as `price` stores them. */
  storedKeys(filter: ListFilter): readonly string[];
  codes(): Promise<Names>;
}

const EMPTY: FilterVocabulary = { keys: new Set(), names: new Names([]) };

/** The codes of a market, read as one text: a row for each would take much longer. */
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
  const byFilter = Map.groupBy(used, (each) => each.filter);
  for (const [filter, values] of byFilter) {
    filters.set(filter, {
      keys: new Set(values.flatMap((each) => [each.matchKey, each.id])),
      names: new Names(values.map((each) => each.name)),
    });
  }
  return {
    used,
    of: (filter) => filters.get(filter) ?? EMPTY,
    storedKeys: ({ name, keys }) => {
      const sent = new Set(keys);
      const values = byFilter.get(name) ?? [];
      return values
        .filter(({ id, matchKey }) => sent.has(matchKey) || sent.has(id))
        .map(({ key }) => key);
    },
    codes: cachedByRevision(
      1,
      () => 'codes',
      () => codesOf(db, market, revision),
    ),
  };
}

/** Reads the vocabulary of a market at a data revision. */
export type VocabularyReader = (market: Market, data: DataRevision) => Promise<Vocabulary>;

/** Cached vocabularies: the newest of each market, and one before. */
const CACHED = 2 * MARKETS.length;

/**
 * A reader with an LRU cache of vocabularies.
 * @param shared the database of loads that requests share; an aborted request does not cancel them
 */
export const vocabularyReader = (shared: Kysely<Database>): VocabularyReader =>
  cachedByRevision(
    CACHED,
    (market, { epoch, revision }) => `${market.slug} ${epoch}.${revision}`,
    (market, { revision }) => vocabularyOf(shared, market, revision),
  );
