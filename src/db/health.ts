import { type Kysely, sql } from 'kysely';
import { instantOf } from './instant.ts';
import { isSchemaCurrent } from './migrate.ts';
import type { Database } from './schema.ts';

export interface DatabaseHealth {
  readonly database: 'ok' | 'unavailable';
  readonly schema: 'ok' | 'schema_outdated' | 'unknown';
  /** Whether the configured source of exchange rates exists; without it none are converted. */
  readonly rates: 'ok' | 'unknown_source' | 'unknown';
  /** Publication of the newest assessment, RFC 3339; null when there is none. */
  readonly latestPublishedAt: string | null;
}

/** How long a look at the database may take, and how long its result holds, in milliseconds. */
const PATIENCE_MS = 500;
const HOLDS_MS = 1_000;

const DOWN: DatabaseHealth = {
  database: 'unavailable',
  schema: 'unknown',
  rates: 'unknown',
  latestPublishedAt: null,
};

async function look(db: Kysely<Database>, rateSource: string): Promise<DatabaseHealth> {
  if (!(await isSchemaCurrent(db))) {
    return { ...DOWN, database: 'ok', schema: 'schema_outdated' };
  }
  const { rows } = await sql<{ newest: string | null; hasSource: boolean }>`
    select max((select published_at from series where price_id = price.id
        order by date desc limit 1)) as newest,
      exists (select from fx_source where slug = ${rateSource}) as "hasSource"
    from price`.execute(db);
  const { newest = null, hasSource = false } = rows[0] ?? {};
  return {
    database: 'ok',
    schema: 'ok',
    rates: hasSource ? 'ok' : 'unknown_source',
    latestPublishedAt: newest && instantOf(newest),
  };
}

/** The slugs of the sources of exchange rates that there are. Throws what the database throws. */
export async function rateSourceSlugs(db: Kysely<Database>): Promise<readonly string[]> {
  const rows = await db.selectFrom('fx_source').select('slug').orderBy('slug').execute();
  return rows.map(({ slug }) => slug);
}

/**
 * A probe of the database that never fails and never takes longer than half a second. Callers
 * within one second share one look.
 * @param rateSource slug of the configured source of exchange rates
 */
export function healthProbe(
  db: Kysely<Database>,
  rateSource: string,
): () => Promise<DatabaseHealth> {
  let shared: Promise<DatabaseHealth> | undefined;
  let until = 0;
  return () => {
    if (shared && performance.now() < until) return shared;
    until = performance.now() + HOLDS_MS;
    const patience = Promise.withResolvers<DatabaseHealth>();
    const timer = setTimeout(() => patience.resolve(DOWN), PATIENCE_MS);
    const seen = look(db, rateSource).catch(() => DOWN);
    shared = Promise.race([seen, patience.promise]).finally(() => clearTimeout(timer));
    return shared;
  };
}
