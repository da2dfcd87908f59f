import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { type Notices, noticesOf } from './notices.ts';
import { type Pulse, pulseOf } from './pulse.ts';
import type { Database } from './schema.ts';

/**
 * A pool of PostgreSQL connections, the Kysely handle over it, and two connections beside it: one
 * for the looks that requests share, and one that hears what is committed. Each is made when it is
 * needed first.
 */
export interface Client {
  readonly db: Kysely<Database>;
  readonly pool: pg.Pool;
  readonly pulse: Pulse;
  readonly notices: Notices;
  close(): Promise<void>;
}

export interface ClientOptions {
  readonly url: string;
  readonly connectionsMax: number;
  /** How long a caller waits for a free connection, in milliseconds. */
  readonly acquireTimeoutMs: number;
  /** Server-side limit of one statement in milliseconds; 0 for none. */
  readonly statementTimeoutMs: number;
  /** Whether sessions refuse to write; the service reads only. */
  readonly readOnly: boolean;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
  readonly onError?: (error: Error) => void;
}

const asText = (value: string): string => value;

/**
 * DATE, TIMESTAMP(TZ), NUMERIC and BIGINT stay the text that PostgreSQL sent: a Date would shift
 * days by time zone, a Number would lose digits.
 */
const TEXT_TYPES = new Set([
  pg.types.builtins.DATE,
  pg.types.builtins.TIMESTAMP,
  pg.types.builtins.TIMESTAMPTZ,
  pg.types.builtins.NUMERIC,
  pg.types.builtins.INT8,
]);
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    TEXT_TYPES.has(oid) ? asText : pg.types.getTypeParser(oid, format),
};

/**
 * Parts the parameter `options` from an address: the driver would let it replace ours, and with
 * them the time zone that dates are read in. Ours come after it, so that they win.
 */
function withoutOptions(url: string): { address: string; given: string } {
  const address = new URL(url);
  const given = address.searchParams.get('options') ?? '';
  address.searchParams.delete('options');
  return { address: address.href, given };
}

/** Opens a pool; no connection is made before the first query. */
export function openClient(options: ClientOptions): Client {
  const settings = [
    '-c TimeZone=UTC',
    '-c DateStyle=ISO',
    '-c jit=off',
    `-c statement_timeout=${options.statementTimeoutMs}`,
    `-c default_transaction_read_only=${options.readOnly ? 'on' : 'off'}`,
  ];
  const { address, given } = withoutOptions(options.url);
  const session = {
    connectionString: address,
    connectionTimeoutMillis: options.acquireTimeoutMs,
    application_name: options.applicationName,
    options: [given, ...settings].join(' ').trim(),
    types,
  };
  const pool = new pg.Pool({ ...session, max: options.connectionsMax, keepAlive: true });
  // A connection that breaks, idle or in use, emits an error; unheard it would end the service.
  const onError = (error: Error) => options.onError?.(error);
  pool.on('error', onError);
  pool.on('connect', (client) => client.on('error', onError));
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  const pulse = pulseOf({
    connection: { ...session, application_name: `${options.applicationName} pulse` },
    pool,
    patienceMs: options.acquireTimeoutMs,
    onError,
  });
  const notices = noticesOf({
    connection: {
      ...session,
      application_name: `${options.applicationName} notices`,
      // It has nothing to say for hours.
      options: `${session.options} -c idle_session_timeout=0`,
    },
    onError,
  });
  const close = async (): Promise<void> => {
    await Promise.all([pulse.close(), notices.close()]);
    await db.destroy();
    // Kysely leaves a pool alone that it never took a connection from.
    if (!pool.ended) await pool.end();
  };
  return { db, pool, pulse, notices, close };
}
