import { type Kysely, sql } from 'kysely';
import type { FilterName } from '../catalog/dimensions.ts';
import type { Market } from '../catalog/markets.ts';
import { filtersOf } from '../contract/market.ts';
import { keptReadings } from '../db/kept-readings.ts';
import { headAt } from '../db/newest.ts';
import type { Newest } from '../db/pulse.ts';
import { type Head, headOf } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import { columnOf, valuesAt } from './filters.ts';
import { marketPrices } from './query.ts';

/** A value that at least one price of the market has. */
interface UsedValue {
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

/** The values of a market's filters, and the state that they are of. */
interface ValuesAt {
  readonly head: Head;
  readonly used: readonly UsedValue[];
}

/** The values as of a look at the database, or now where nobody looked. */
type ValuesReader = (db: () => Kysely<Database>, newest: Newest | null) => Promise<ValuesAt>;

/**
 * A reader that keeps the values of the state that was asked for last, as they never change.
 * @param shared reads what is kept; a request that leaves does not end it for the others
 */
export function valuesReader(shared: Kysely<Database>, market: Market): ValuesReader {
  const kept = keptReadings<readonly UsedValue[]>(1);
  return async (db, newest) => {
    if (newest === null) {
      const head = await headOf(db(), [market.slug]);
      return { head, used: await usedValues(db(), market, head.revision) };
    }
    const head = headAt(newest, [market.slug]);
    const { epoch, revision } = head;
    const read = () => usedValues(shared, market, revision);
    return { head, used: await kept(`${epoch}.${revision}`, read) };
  };
}
