import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Kysely, sql } from 'kysely';
import { type Migration, type MigrationProvider, Migrator } from 'kysely/migration';
import { MARKETS } from '../catalog/markets.ts';
import { ALL_MARKETS, scopeOf } from '../catalog/scopes.ts';
import { asOnlyRunner, untilUnlocked } from './only-runner.ts';
import { renewRights } from './roles.ts';
import type { Database } from './schema.ts';

const FOLDER = fileURLToPath(new URL('../../migrations/', import.meta.url));

/** The migrations beside the project, by file name. */
const provider: MigrationProvider = {
  async getMigrations() {
    const files = (await readdir(FOLDER)).filter((file) => /^\d{4}-.*\.ts$/.test(file)).sort();
    const loaded = files.map(async (file): Promise<[string, Migration]> => {
      const module = await import(new URL(`../../migrations/${file}`, import.meta.url).href);
      return [file.replace(/\.ts$/, ''), module];
    });
    return Object.fromEntries(await Promise.all(loaded));
  },
};

const migratorOf = (db: Kysely<Database>): Migrator => new Migrator({ db, provider });

export interface MigrationStatus {
  readonly name: string;
  /** When it ran, or null when it is pending. */
  readonly executedAt: string | null;
}

/** Every migration, in order, with when it ran. */
export async function migrationStatus(db: Kysely<Database>): Promise<MigrationStatus[]> {
  const all = await migratorOf(db).getMigrations();
  return all.map((each) => ({
    name: each.name,
    executedAt: each.executedAt?.toISOString() ?? null,
  }));
}

/**
 * Brings the database to the newest schema, and the rights of its accounts with it; returns the
 * names of the migrations it ran.
 */
export const migrateUp = (db: Kysely<Database>): Promise<string[]> =>
  asOnlyRunner(db, async (one) => {
    const results = await untilUnlocked(one, async () => {
      const { error, results } = await migratorOf(one).migrateToLatest();
      if (error) throw error;
      return results ?? [];
    });
    await writeCatalog(one);
    await renewRights(one);
    return results.map((each) => each.migrationName);
  });

/** Takes back the newest migration; returns its name, or null when there is none. */
export async function migrateDown(db: Kysely<Database>): Promise<string | null> {
  const { error, results } = await migratorOf(db).migrateDown();
  if (error) throw error;
  return results?.[0]?.migrationName ?? null;
}

/** Writes the markets and scopes of the catalog that the database lacks; never removes one. */
async function writeCatalog(db: Kysely<Database>): Promise<void> {
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
async function hasCatalog(db: Kysely<Database>): Promise<boolean> {
  const { rows } = await sql<{ present: number }>`
    select count(*)::int as present from market join access_scope on market_id = market.id
    where slug = any(${MARKETS.map((each) => each.slug)}::text[])`.execute(db);
  return rows[0]?.present === MARKETS.length;
}

/**
 * Whether the database has every migration of this version and the catalog's markets: what the
 * readiness probe asks. A database that is ahead of this version counts as current.
 */
export async function isSchemaCurrent(db: Kysely<Database>): Promise<boolean> {
  const { rows } = await sql<{ present: boolean }>`
    select to_regclass('kysely_migration') is not null as present`.execute(db);
  if (!rows[0]?.present) return false;
  const ran = await sql<{ name: string }>`select name from kysely_migration`.execute(db);
  const names = new Set(ran.rows.map((each) => each.name));
  const needed = Object.keys(await provider.getMigrations());
  return needed.every((name) => names.has(name)) && (await hasCatalog(db));
}
