import { type Kysely, sql } from 'kysely';
import { instantOf } from './instant.ts';
import { isSchemaCurrent } from './migrate.ts';
import type { Database } from './schema.ts';

export interface DatabaseHealth {
  readonly database: 'ok' | 'unavailable';
  readonly schema: 'ok' | 'schema_outdated' | 'unknown';
  /** Publication of the newest assessment, RFC 3339; null when there is none. */
  readonly latestPublishedAt: string | null;
}

/** How long a look at the database may take, and how long its result holds, in milliseconds. */
const PATIENCE_MS = 500;
const HOLDS_MS = 1_000;

const DOWN: DatabaseHealth = {
  database: 'unavailable',
  schema: 'unknown',
  latestPublishedAt: null,
};

async function look(db: Kysely<Database>): Promise<DatabaseHealth> {
  if (!(await isSchemaCurrent(db))) {
    return { database: 'ok', schema: 'schema_outdated', latestPublishedAt: null };
  }
  const { rows } = await sql<{ newest: string | null }>`
    select max((select published_at from series where price_id = price.id
      order by date desc limit 1)) as newest from price`.execute(db);
  const newest = rows[0]?.newest ?? null;
  return { database: 'ok', schema: 'ok', latestPublishedAt: newest && instantOf(newest) };
}

/**
 * A probe of the database that never fails and never takes longer than half a second. Callers
 * within one second share one look.
 */
export function healthProbe(db: Kysely<Database>): () => Promise<DatabaseHealth> {
  let shared: Promise<DatabaseHealth> | undefined;
  let until = 0;
  return () => {
    if (shared && performance.now() < until) return shared;
    until = performance.now() + HOLDS_MS;
    const patience = Promise.withResolvers<DatabaseHealth>();
    const timer = setTimeout(() => patience.resolve(DOWN), PATIENCE_MS);
    const seen = look(db).catch(() => DOWN);
    shared = Promise.race([seen, patience.promise]).finally(() => clearTimeout(timer));
    return shared;
  };
}
