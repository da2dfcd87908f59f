import { type Kysely, sql } from 'kysely';
import { instantOf } from './instant.ts';
import type { Link } from './link/link.ts';
import { isSchemaCurrent } from './migrate/migrate.ts';
import type { NewestRevision } from './newest-revision.ts';
import type { Reads } from './reads.ts';
import type { Database } from './schema.ts';

export interface DatabaseHealth {
  readonly database: 'ok' | 'unavailable';
  readonly schema: 'ok' | 'schema_outdated' | 'unknown';
  /** Slugs of the sources of exchange rates; null if unknown. */
  readonly rateSources: readonly string[] | null;
  /** Newest publication time by slug of the market, RFC 3339. */
  readonly publishedAt: ReadonlyMap<string, string>;
  readonly newest: NewestRevision | null;
}

/** The health of the database, read in the background. */
export interface Health {
  /** Never throws. Waits up to two seconds for the first read. */
  current(): Promise<DatabaseHealth>;
  /** The same without waiting; null before the first read. */
  cached(): DatabaseHealth | null;
  /** Reads the health again. */
  refresh(): Promise<void>;
}

const FIRST_READ_TIMEOUT_MS = 2_000;

const DOWN: DatabaseHealth = {
  database: 'unavailable',
  schema: 'unknown',
  rateSources: null,
  publishedAt: new Map(),
  newest: null,
};
const OUTDATED: DatabaseHealth = { ...DOWN, database: 'ok', schema: 'schema_outdated' };

/** The slugs of all sources of exchange rates. @throws the errors of the database */
export async function rateSourceSlugs(db: Kysely<Database>): Promise<readonly string[]> {
  const rows = await db.selectFrom('fx_source').select('slug').orderBy('slug').execute();
  return rows.map(({ slug }) => slug);
}

/** Newest publication time by slug, for markets with points. */
async function publications(db: Kysely<Database>): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<{ slug: string; at: string | null }>`
    select market.slug, max((select published_at from series where price_id = price.id
        order by date desc limit 1)) as at
    from price join market on market.id = price.market_id group by market.slug`.execute(db);
  return new Map(rows.flatMap(({ slug, at }) => (at === null ? [] : [[slug, instantOf(at)]])));
}

/** Creates a health whose owner calls `refresh` after each successful check. */
export function healthOf(reads: Reads, link: Link): Health {
  let last: DatabaseHealth | null = null;
  let reading: Promise<void> | null = null;

  const read = async (): Promise<DatabaseHealth> => {
    const db = reads.db();
    if (!(await isSchemaCurrent(db))) return OUTDATED;
    const newest = await link.newestRevision();
    // The same object means that nothing was committed since.
    if (last !== null && last.newest === newest) return last;
    const [rateSources, publishedAt] = await Promise.all([rateSourceSlugs(db), publications(db)]);
    return { database: 'ok', schema: 'ok', rateSources, publishedAt, newest };
  };
  const cached = (): DatabaseHealth | null => (link.state === 'up' ? last : DOWN);
  return {
    cached,
    current: async () => {
      link.start();
      if (last === null) {
        const timeout = Promise.withResolvers<void>();
        const timer = setTimeout(timeout.resolve, FIRST_READ_TIMEOUT_MS);
        await Promise.race([link.firstCheck.then(() => reading), timeout.promise]);
        clearTimeout(timer);
      }
      return cached() ?? DOWN;
    },
    refresh: () => {
      reading ??= read()
        .then((found) => {
          last = found;
        })
        // The last health stays valid; the link reports whether the database is up.
        .catch(() => {})
        .finally(() => {
          reading = null;
        });
      return reading;
    },
  };
}
