import { type Kysely, sql } from 'kysely';
import { MARKETS } from '../catalog/markets.ts';
import { ALL_MARKETS, scopeOf } from '../catalog/scopes.ts';
import type { Database } from './schema.ts';

/** Writes the markets and scopes of the catalog that the database lacks; never removes one. */
export async function writeCatalog(db: Kysely<Database>): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await trx
      .insertInto('market')
      .values(MARKETS.map(({ slug, name }) => ({ slug, name })))
      .onConflict((conflict) => conflict.column('slug').doNothing())
      .execute();
    const markets = await trx.selectFrom('market').select(['id', 'slug']).execute();
    const idOf = new Map(markets.map((each) => [each.slug, each.id]));
    await trx
      .insertInto('access_scope')
      .values([
        { scope: ALL_MARKETS, market_id: null },
        ...MARKETS.map(({ slug }) => ({
          scope: scopeOf(slug),
          market_id: idOf.get(slug) ?? null,
        })),
      ])
      .onConflict((conflict) => conflict.column('scope').doNothing())
      .execute();
  });
}

/** Whether every market and scope of the catalog was written. */
export async function hasCatalog(db: Kysely<Database>): Promise<boolean> {
  const { rows } = await sql<{ present: number }>`
    select count(*)::int as present from market join access_scope on market_id = market.id
    where slug = any(${MARKETS.map((each) => each.slug)}::text[])`.execute(db);
  return rows[0]?.present === MARKETS.length;
}
