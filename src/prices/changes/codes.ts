import { type Kysely, sql } from 'kysely';
import { codeKey } from '../../catalog/match-key.ts';
import type { Database } from '../../db/schema.ts';
import { quoted } from '../../errors.ts';
import type { Warning } from '../answer/warnings.ts';

/** The prices that a request for changes names by their codes. */
interface WantedPrices {
  readonly ids: readonly number[];
  /** About the codes of none. */
  readonly warnings: readonly Warning[];
}

interface CodesRequest {
  /** Slugs of the requested markets, and of those that the credential may read. */
  readonly markets: readonly string[];
  readonly readableMarkets: readonly string[];
  readonly codes: readonly string[] | null;
}

/**
 * Finds the prices that a request names, in the requested markets. A code of another market matches
 * nothing; the warning names that market only if the credential may read it.
 * @returns null for a request without codes
 */
export async function wantedPricesOf(
  db: Kysely<Database>,
  { markets, readableMarkets, codes }: CodesRequest,
): Promise<WantedPrices | null> {
  if (codes === null) return null;
  const { rows } = await pricesWith(db, codes.map(codeKey));
  const found = rows.filter(({ market }) => markets.includes(market));
  const known = new Set(found.map(({ key }) => key));
  const warnings = codes.flatMap((code, index): Warning[] => {
    const key = codeKey(code);
    if (known.has(key)) return [];
    const other = rows.find((each) => each.key === key && readableMarkets.includes(each.market));
    const detail = other
      ? `"${quoted(code)}" is a code of ${other.market}; ask market=${other.market} for it`
      : `"${quoted(code)}" matches nothing in the markets of this request`;
    return [{ code: 'unmatched_value', pointer: `?codes/${index}`, detail, suggestions: [] }];
  });
  return { ids: found.map(({ id }) => id), warnings };
}

interface FoundPrice {
  readonly key: string;
  readonly id: number;
  readonly market: string;
}

/** Prices that have one of the codes, or had it: the code of a withdrawn price may be reused. */
const pricesWith = (db: Kysely<Database>, keys: readonly string[]) =>
  sql<FoundPrice>`
  with wanted as (select distinct key from unnest(${[...keys]}::text[]) as k (key))
  select p.key, p.id, market.slug as market
  from (
    select key, id, market_id from wanted join price on code_key = key
    union select key, id, market_id from wanted join price_history on code_key = key) as p
    join market on market.id = p.market_id
  order by p.id`.execute(db);
