import { type Kysely, sql } from 'kysely';
import { instantOf } from './instant.ts';
import type { Link } from './link/link.ts';
import { isSchemaCurrent } from './migrate/migrate.ts';
import type { Newest } from './newest.ts';
import type { Reads } from './reads.ts';
import type { Database } from './schema.ts';

export interface DatabaseHealth {
  readonly database: 'ok' | 'unavailable';
  readonly schema: 'ok' | 'schema_outdated' | 'unknown';
  /** Slugs of the sources of exchange rates; null while that is not known. */
  readonly rateSources: readonly string[] | null;
  /** Publication of the newest assessment of each market that has one, RFC 3339, by slug. */
  readonly publishedAt: ReadonlyMap<string, string>;
  /** When each scope was last changed, as PostgreSQL prints it. */
  readonly newest: Newest | null;
}

/** How the database is, as a look in the background found it. */
export interface Health {
  /** Never fails, and waits only while nothing is known yet: up to two seconds. */
  seen(): Promise<DatabaseHealth>;
  /** The same, or null while nothing is known yet. */
  known(): DatabaseHealth | null;
  /** Looks once more. */
  refresh(): Promise<void>;
}

const PATIENCE_MS = 2_000;

const DOWN: DatabaseHealth = {
  database: 'unavailable',
  schema: 'unknown',
  rateSources: null,
  publishedAt: new Map(),
  newest: null,
};
const OUTDATED: DatabaseHealth = { ...DOWN, database: 'ok', schema: 'schema_outdated' };

/** The slugs of the sources of exchange rates that there are. Throws what the database throws. */
export async function rateSourceSlugs(db: Kysely<Database>): Promise<readonly string[]> {
  const rows = await db.selectFrom('fx_source').select('slug').orderBy('slug').execute();
  return rows.map(({ slug }) => slug);
}

/** The newest publication of each market that has one. */
async function publications(db: Kysely<Database>): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<{ slug: string; at: string | null }>`
    select market.slug, max((select published_at from series where price_id = price.id
        order by date desc limit 1)) as at
    from price join market on market.id = price.market_id group by market.slug`.execute(db);
  return new Map(rows.flatMap(({ slug, at }) => (at === null ? [] : [[slug, instantOf(at)]])));
}

/** The health of the database, read in the background whenever a check of it is answered. */
export function healthOf(reads: Reads, link: Link): Health {
  let seen: DatabaseHealth | null = null;
  let looking: Promise<void> | null = null;

  const look = async (): Promise<DatabaseHealth> => {
    const db = reads.db();
    if (!(await isSchemaCurrent(db))) return OUTDATED;
    const newest = await link.look();
    // Nothing was committed since.
    if (seen !== null && seen.newest === newest) return seen;
    const [rateSources, publishedAt] = await Promise.all([rateSourceSlugs(db), publications(db)]);
    return { database: 'ok', schema: 'ok', rateSources, publishedAt, newest };
  };
  const known = (): DatabaseHealth | null => (link.state === 'up' ? seen : DOWN);
  return {
    known,
    seen: async () => {
      link.start();
      if (seen === null) {
        const patience = Promise.withResolvers<void>();
        const timer = setTimeout(patience.resolve, PATIENCE_MS);
        await Promise.race([link.firstCheck.then(() => looking), patience.promise]);
        clearTimeout(timer);
      }
      return known() ?? DOWN;
    },
    refresh: () => {
      looking ??= look()
        .then((found) => {
          seen = found;
        })
        // The last health holds; the link knows whether the database answers at all.
        .catch(() => {})
        .finally(() => {
          looking = null;
        });
      return looking;
    },
  };
}
