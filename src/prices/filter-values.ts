import { type Kysely, sql } from 'kysely';
import type { FilterName } from '../catalog/dimensions.ts';
import type { Market } from '../catalog/markets.ts';
import { filtersOf } from '../contract/market.ts';
import type { Database } from '../db/schema.ts';
import { columnOf, valuesAt } from './filters.ts';
import { marketPrices } from './query.ts';

/** A value that at least one price of the market has. */
export interface UsedValue {
  readonly filter: FilterName;
  readonly id: string;
  readonly name: string;
  readonly matchKey: string;
  readonly prices: number;
}

/** The legal values of a market's filters at a revision, by filter and name. */
export async function usedValues(
  db: Kysely<Database>,
  market: Market,
  revision: string,
  filters: readonly FilterName[] = filtersOf(market),
): Promise<readonly UsedValue[]> {
  if (filters.length === 0) return [];
  const parts = filters.map(
    (name, index) => sql`select ${sql.lit(index)} as position, ${sql.lit(name)} as filter,
      v.uuid as id, v.name, v.match_key as "matchKey", count(*)::int as prices
    from p join ${valuesAt(name, revision)} as v on v.key = ${sql.ref(`p.${columnOf(name).column}`)}
    group by v.uuid, v.name, v.match_key`,
  );
  const { rows } = await sql<UsedValue>`
    with p as materialized ${marketPrices(market.slug, revision)}
    select filter, id, name, "matchKey", prices
    from (${sql.join(parts, sql` union all `)}) as used
    order by position, name collate "C"`.execute(db);
  return rows;
}
