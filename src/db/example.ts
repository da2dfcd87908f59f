import { type Kysely, sql } from 'kysely';
import type { Database } from './schema.ts';

/** A price to ask for, and a week before its last day. */
export interface ExamplePrice {
  readonly market: string;
  readonly code: string;
  readonly since: string;
}

/**
 * A price that has values: nickel on the exchange, where the samples are loaded; null when no
 * price has any.
 */
export async function examplePrice(db: Kysely<Database>): Promise<ExamplePrice | null> {
  const { rows } = await sql<ExamplePrice>`
    select m.slug as market, p.code, (s.newest - 7)::text as since
    from price p join market m on m.id = p.market_id
    cross join lateral (select max(date) as newest from series where price_id = p.id) s
    where s.newest is not null
    order by p.code <> 'CP-NI-0001', p.code limit 1`.execute(db);
  return rows[0] ?? null;
}
