import { type Kysely, sql } from 'kysely';
import { instantOf } from './instant.ts';
import type { Breaker } from './link/breaker.ts';
import type { Newest, Pulse } from './link/pulse.ts';
import type { Watch } from './link/watch.ts';
import { isSchemaCurrent } from './migrate.ts';
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

interface HealthOptions {
  readonly reads: Reads;
  readonly pulse: Pulse;
  readonly breaker: Breaker;
  readonly watch: Watch;
}

class Board implements Health {
  readonly #options: HealthOptions;
  #seen: DatabaseHealth | null = null;
  #looking: Promise<void> | null = null;

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  known(): DatabaseHealth | null {
    return this.#options.breaker.state === 'closed' ? this.#seen : DOWN;
  }

  async seen(): Promise<DatabaseHealth> {
    const { watch } = this.#options;
    watch.start();
    if (this.#seen === null) {
      const patience = Promise.withResolvers<void>();
      const timer = setTimeout(patience.resolve, PATIENCE_MS);
      const first = watch.firstLook.then(() => this.#looking);
      await Promise.race([first, patience.promise]);
      clearTimeout(timer);
    }
    return this.known() ?? DOWN;
  }

  refresh(): Promise<void> {
    this.#looking ??= this.#look()
      .then((seen) => {
        this.#seen = seen;
      })
      // What was seen last holds; whether the database answers at all is the breaker's to say.
      .catch(() => {})
      .finally(() => {
        this.#looking = null;
      });
    return this.#looking;
  }

  async #look(): Promise<DatabaseHealth> {
    const { reads, pulse } = this.#options;
    const db = reads.db();
    if (!(await isSchemaCurrent(db))) return OUTDATED;
    const newest = await pulse.look();
    // Nothing was committed since.
    if (this.#seen !== null && this.#seen.newest === newest) return this.#seen;
    const [rateSources, publishedAt] = await Promise.all([rateSourceSlugs(db), publications(db)]);
    return { database: 'ok', schema: 'ok', rateSources, publishedAt, newest };
  }
}

/** How the database is; it is looked at in the background, whenever it answers. */
export const healthOf = (options: HealthOptions): Health => new Board(options);
