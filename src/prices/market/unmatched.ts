import { type Kysely, sql } from 'kysely';
import type { FilterName } from '../../catalog/dimensions.ts';
import type { MarketSlug } from '../../catalog/markets.ts';
import { codeKey, matchKey } from '../../catalog/match-key.ts';
import { instantOf } from '../../db/instant.ts';
import { type DataRevision, numberIn, requireCommit } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { Slice } from '../../std/turns.ts';
import { namesPast } from '../plan/options.ts';
import type { Plan } from '../plan/plan.ts';
import type { LazyDatabase, SelectedPrice } from './query.ts';
import type { Vocabulary } from './vocabulary.ts';

/** A price that was added after a revision. */
export interface LaterPrice {
  readonly code: string;
  /** The revision that added it, as on the wire, and when it was committed (RFC 3339). */
  readonly revision: string;
  readonly committedAt: string;
}

/** The prices of a market that were added after a revision, by the keys of their codes. */
export async function laterPrices(
  db: Kysely<Database>,
  slug: string,
  revision: string,
  codeKeys: readonly string[],
): Promise<ReadonlyMap<string, LaterPrice>> {
  const { rows } = await sql<{ key: string } & LaterPrice>`
    select p.code_key as key, p.code, revision_text(added.number) as revision,
      added.committed_at as "committedAt"
    from price as p
      join revision as added on added.number = least(p.revision,
        (select min(h.revision) from price_history as h where h.id = p.id))
    where p.code_key = any(${[...codeKeys]}::text[]) and added.number > ${numberIn(revision)}
      and p.market_id = (select id from market where slug = ${slug})
      and ${requireCommit(revision)}`.execute(db);
  return new Map(
    rows.map(({ key, ...price }) => [key, { ...price, committedAt: instantOf(price.committedAt) }]),
  );
}

/** A value of a request that matches nothing in its market. */
export interface Unmatched {
  readonly list: FilterName | 'codes';
  readonly index: number;
  readonly value: string;
  readonly suggestions: readonly string[];
  /** The market that has the code; null for a value, and for a code that no market has. */
  readonly elsewhere: MarketSlug | null;
  /** The price that got the code after the requested revision; null if there is none. */
  readonly later: LaterPrice | null;
}

const SUGGESTIONS = 3;

/** Most values of a request that get suggestions: hundreds of unknown values are no typo. */
const SUGGESTED_MAX = 5;

type UnmatchedItem = Pick<Unmatched, 'list' | 'index' | 'value'>;

/** The unknown items of a list of a request. */
const unknownItems = (
  list: UnmatchedItem['list'],
  values: readonly string[],
  isKnown: (value: string) => boolean,
): UnmatchedItem[] =>
  values.flatMap((value, index) => (isKnown(value) ? [] : [{ list, index, value }]));

/** The codes of a request that select no price. There are at most as many prices as codes. */
function unknownCodes(sent: readonly string[], found: readonly SelectedPrice[]): UnmatchedItem[] {
  const codes = new Set(found.map((each) => codeKey(each.code)));
  return unknownItems('codes', sent, (code) => codes.has(codeKey(code)));
}

/** The markets that have the unmatched codes, by the key of the code. */
async function marketsOf(
  db: Kysely<Database>,
  missing: readonly UnmatchedItem[],
  revision: string,
): Promise<ReadonlyMap<string, MarketSlug>> {
  const keys = missing.map(({ value }) => codeKey(value));
  const { rows } = await sql<{ key: string; slug: MarketSlug }>`
    select p.code_key as key, market.slug
    from price_at_4(${numberIn(revision)}) as p join market on market.id = p.market_id
    where p.code_key = any(${keys}::text[]) and ${requireCommit(revision)}`.execute(db);
  return new Map(rows.map(({ key, slug }) => [key, slug]));
}

/**
 * Finds the codes of a plan that its market does not have, in other markets and later revisions.
 */
async function foreignCodes(
  lazyDb: LazyDatabase,
  { market, options }: Plan,
  { revision }: DataRevision,
  missing: readonly UnmatchedItem[],
) {
  if (missing.length === 0) return null;
  const db = lazyDb();
  const keys = missing.map(({ value }) => codeKey(value));
  const later = namesPast(options) ? await laterPrices(db, market.slug, revision, keys) : null;
  return { elsewhere: await marketsOf(db, missing, revision), later };
}

/** The values of a plan that match nothing in its market, in the order of the filters. */
export async function unmatchedIn(
  lazyDb: LazyDatabase,
  readVocabulary: () => Promise<Vocabulary>,
  plan: Plan,
  data: DataRevision,
  found: readonly SelectedPrice[],
): Promise<readonly Unmatched[]> {
  const missing = plan.codes === null ? [] : unknownCodes(plan.codes, found);
  if (plan.lists.length === 0 && missing.length === 0) return [];
  const vocabulary = await readVocabulary();
  for (const { name, values } of plan.lists) {
    const { keys } = vocabulary.of(name);
    missing.push(...unknownItems(name, values, (value) => keys.has(matchKey(value))));
  }
  const foreign = plan.codes && (await foreignCodes(lazyDb, plan, data, missing));
  const names = foreign && (await vocabulary.codes());
  const slice = new Slice();
  const unmatched: Unmatched[] = [];
  for (const each of missing) {
    const known = each.list === 'codes' ? names : vocabulary.of(each.list).names;
    const isSuggested = unmatched.length < SUGGESTED_MAX;
    const key = codeKey(each.value);
    unmatched.push({
      ...each,
      suggestions: (isSuggested && known?.nearest(each.value, SUGGESTIONS)) || [],
      elsewhere: foreign?.elsewhere.get(key) ?? null,
      later: foreign?.later?.get(key) ?? null,
    });
    if (isSuggested) await slice.yieldIfOver();
  }
  return unmatched;
}
