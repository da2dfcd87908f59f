import { type Kysely, sql } from 'kysely';
import { codeKey, matchKey } from '../catalog/match-key.ts';
import { nearest } from '../catalog/nearest.ts';
import type { Database } from '../db/schema.ts';
import { Problem, shown, type WarningCode } from '../errors.ts';
import { type UsedValue, usedValues } from './filter-values.ts';
import { type LaterPrice, laterPrices } from './later-prices.ts';
import type { ListFilter, Plan } from './plan.ts';
import { namesPast } from './plan-options.ts';
import { marketPrices, type PriceTerms } from './query.ts';

/** Something about the answer that its reader should know. */
export interface Warning {
  readonly code: WarningCode;
  readonly pointer: string;
  readonly detail: string;
  readonly suggestions: readonly string[];
  /** Of `not_yet_existing`: the code as it was published, and the commit that added the price. */
  readonly priceCode?: string;
  readonly existsSinceRevision?: string;
  readonly existsSince?: string;
}

const SUGGESTIONS = 3;

/** Values that suggestions are looked for; a list of hundreds of strangers is not a typo. */
const SUGGESTED_MAX = 20;

const unmatched = (pointer: string, value: string, market: string, names: string[]): Warning => {
  const suggestions = nearest(value, names, SUGGESTIONS);
  const hint = suggestions.length > 0 ? `; did you mean ${suggestions.join(', ')}?` : '';
  const detail = `"${shown(value)}" matches nothing in ${market}${hint}`;
  return { code: 'unmatched_value', pointer, detail, suggestions };
};

function unmatchedInList(list: ListFilter, used: readonly UsedValue[], market: string): Warning[] {
  const values = used.filter((each) => each.filter === list.name);
  const known = new Set(values.flatMap((each) => [each.matchKey, each.id]));
  const names = values.map((each) => each.name);
  const missing = list.values.flatMap((value, index) =>
    known.has(matchKey(value)) ? [] : [{ value, pointer: `/filters/${list.name}/${index}` }],
  );
  return missing.map(({ value, pointer }, order) =>
    unmatched(pointer, value, market, order < SUGGESTED_MAX ? names : []),
  );
}

function notYetExisting(pointer: string, { code, revision, committedAt }: LaterPrice): Warning {
  const since = `it exists since ${committedAt} (revision ${revision})`;
  return {
    code: 'not_yet_existing',
    pointer,
    detail: `"${code}" did not exist yet at the requested moment; ${since}`,
    suggestions: [],
    priceCode: code,
    existsSinceRevision: revision,
    existsSince: committedAt,
  };
}

async function unmatchedCodes(
  db: Kysely<Database>,
  plan: Plan,
  revision: string,
  found: readonly PriceTerms[],
): Promise<Warning[]> {
  const known = new Set(found.map((each) => codeKey(each.code)));
  const missing = (plan.codes ?? []).flatMap((code, index) =>
    known.has(codeKey(code)) ? [] : [{ code, index }],
  );
  if (missing.length === 0) return [];
  const later = namesPast(plan.options)
    ? await laterPrices(
        db,
        plan.market.slug,
        revision,
        missing.map(({ code }) => codeKey(code)),
      )
    : new Map<string, LaterPrice>();
  const { rows } = await sql<{ code: string }>`
    select code from ${marketPrices(plan.market.slug, revision)} as p`.execute(db);
  const codes = rows.map((each) => each.code);
  return missing.map(({ code, index }, order) => {
    const pointer = `/filters/codes/${index}`;
    const price = later.get(codeKey(code));
    if (price) return notYetExisting(pointer, price);
    const names = order < SUGGESTED_MAX ? codes : [];
    return unmatched(pointer, code, plan.market.slug, names);
  });
}

/**
 * One warning for each value of the request that matches nothing in its market at a revision; of a
 * code that came later it says since when the price exists.
 */
export async function unmatchedIn(
  db: Kysely<Database>,
  plan: Plan,
  revision: string,
  found: readonly PriceTerms[],
): Promise<readonly Warning[]> {
  const names = plan.lists.map((each) => each.name);
  const used = await usedValues(db, plan.market, revision, names);
  return [
    ...plan.lists.flatMap((list) => unmatchedInList(list, used, plan.market.slug)),
    ...(await unmatchedCodes(db, plan, revision, found)),
  ];
}

/**
 * Refuses what matches nothing, where the plan is strict.
 * @throws Problem `validation_failed` with the places of the warnings
 */
export function checkStrict({ options }: Plan, warnings: readonly Warning[]): void {
  const unmatched = warnings.filter(({ code }) => code === 'unmatched_value');
  if (!options.strict || unmatched.length === 0) return;
  const errors = unmatched.map(({ pointer, detail }) => ({
    pointer,
    code: 'unmatched_value' as const,
    detail,
  }));
  throw new Problem(
    'validation_failed',
    'With options.strict every value must match; errors names those that do not',
    { errors },
  );
}
