import { setTimeout as pause } from 'node:timers/promises';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { type Health, healthOf } from './health.ts';
import { Link, type LinkOptions } from './link/link.ts';
import { SocketClient } from './link/socket-client.ts';
import { Reads } from './reads.ts';
import type { Database } from './schema.ts';

/**
 * A pool of PostgreSQL connections with its Kysely handle, and a link: two separate connections,
 * made on first use, that check the database.
 */
export interface Client {
  readonly db: Kysely<Database>;
  readonly pool: pg.Pool;
  /** Runs statements that are cancelled together with their requests. */
  readonly reads: Reads;
  readonly link: Link;
  readonly health: Health;
  close(): Promise<void>;
}

/** Options that are passed to the link. */
type SharedOptions = 'awayMs' | 'onChange' | 'onError' | 'silenceMs';

export interface ClientOptions extends Partial<Pick<LinkOptions, SharedOptions>> {
  readonly url: string;
  readonly connectionsMax: number;
  /** Timeout of connecting to a server, in milliseconds. */
  readonly acquireTimeoutMs: number;
  /** Timeout of a read for a free connection; `acquireTimeoutMs` by default. */
  readonly waitMs?: number;
  /** Most reads that wait for a connection; no limit by default. */
  readonly waitingMax?: number;
  /** Server-side limit of one statement in milliseconds; 0 for none. */
  readonly statementTimeoutMs: number;
  /** `lock_timeout` of the sessions, in milliseconds; 0 for no limit. */
  readonly lockTimeoutMs?: number;
  /** True if sessions reject writes, as those of the service do. */
  readonly readOnly: boolean;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
}

const asText = (value: string): string => value;

/**
 * DATE, TIMESTAMP(TZ), NUMERIC and BIGINT are returned as the text that PostgreSQL sends: a Date
 * would shift days by time zone, and a Number would lose digits.
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
 * Separates the parameter `options` from an address. The driver would let the parameter replace the
 * options of the service, such as the time zone of dates. `connectionConfig` puts them after it, so
 * that they take precedence.
 */
function withoutOptions(url: string): { address: string; urlOptions: string } {
  const address = new URL(url);
  const urlOptions = address.searchParams.get('options') ?? '';
  address.searchParams.delete('options');
  return { address: address.href, urlOptions };
}

/** Added to `statement_timeout`: a server that exceeds both does not respond. */
const ANSWER_MARGIN_MS = 1_000;

/** Added to the longest interruption, so that statements that it ended are retried after it. */
const RETRY_MARGIN_MS = 1_000;

const CLOSE_TIMEOUT_MS = 5_000;

function connectionConfig(options: ClientOptions, purpose = '') {
  const settings = [
    '-c TimeZone=UTC',
    '-c DateStyle=ISO',
    '-c jit=off',
    `-c statement_timeout=${options.statementTimeoutMs}`,
    `-c default_transaction_read_only=${options.readOnly ? 'on' : 'off'}`,
    // Overrides the limit of the account (roles.sql): pooled sessions may be idle for hours.
    '-c idle_session_timeout=0',
    ...(options.lockTimeoutMs === undefined ? [] : [`-c lock_timeout=${options.lockTimeoutMs}`]),
  ];
  const { address, urlOptions } = withoutOptions(options.url);
  return {
    connectionString: address,
    connectionTimeoutMillis: options.acquireTimeoutMs,
    application_name: `${options.applicationName} ${purpose}`.trim(),
    options: [urlOptions, ...settings].join(' ').trim(),
    types,
  };
}

/** A pool whose connections each belong to an epoch of the link. */
interface EpochPool {
  readonly pool: pg.Pool;
  /** Replaces the connections of earlier epochs. */
  renew(): Promise<void>;
  epochOf(client: pg.ClientBase): number;
}

/**
 * A pool of connections to the server. Writers get a query timeout from the driver; readers
 * have one for each statement (`reads.ts`).
 */
function poolOf(options: ClientOptions, link: () => Link): EpochPool {
  const { readOnly, statementTimeoutMs, onError } = options;
  const answerMs = statementTimeoutMs + ANSWER_MARGIN_MS;
  const timeout = readOnly || statementTimeoutMs === 0 ? {} : { query_timeout: answerMs };
  const epochs = new Map<SocketClient, number>();
  class Session extends SocketClient {
    constructor(config: pg.ClientConfig) {
      super({ ...config, ...timeout, ...connectionConfig(options) });
      epochs.set(this, link().epoch);
      this.once('end', () => epochs.delete(this));
    }
  }
  const pool = new pg.Pool({
    connectionTimeoutMillis: options.acquireTimeoutMs,
    max: options.connectionsMax,
    // Readers do not close idle connections.
    min: readOnly ? options.connectionsMax : 0,
    keepAlive: true,
    Client: Session as unknown as new () => pg.ClientBase,
  });
  // Without a listener, an error of an idle connection ends Node.
  const report = (error: Error) => onError?.(error);
  pool.on('error', report);
  let connectionsSeen = 0;
  pool.on('connect', (client) => {
    client.on('error', report);
    connectionsSeen = Math.max(connectionsSeen, pool.totalCount);
  });
  const epochOf = (client: pg.ClientBase): number => epochs.get(client as SocketClient) ?? -1;
  const connectCurrent = async (): Promise<void> => {
    for (;;) {
      const client = await pool.connect();
      const isNew = epochOf(client) === link().epoch;
      client.release(!isNew);
      if (isNew) return;
    }
  };
  const renew = async (): Promise<void> => {
    // The transaction of a writer may have survived.
    if (!readOnly) return;
    const { epoch } = link();
    for (const [client, madeIn] of epochs) {
      if (madeIn < epoch) client.destroySocket();
    }
    const count = pool.ending ? 0 : connectionsSeen;
    await Promise.allSettled(Array.from({ length: count }, connectCurrent));
  };
  return { pool, renew, epochOf };
}

async function closePool(pool: pg.Pool, db: Kysely<Database>): Promise<void> {
  // Kysely does not end a pool that it never used.
  const ended = db.destroy().then(() => (pool.ended ? undefined : pool.end()));
  // A database that does not respond never closes its connections.
  await Promise.race([ended, pause(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
}

/** Opens a pool; no connection is made before the first query. */
export function openClient(options: ClientOptions): Client {
  const { acquireTimeoutMs, statementTimeoutMs, awayMs } = options;
  const { pool, epochOf, renew } = poolOf(options, () => link);
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  const link = new Link({
    ...options,
    connection: {
      ...connectionConfig(options, 'link'),
      keepAlive: true,
      // A revision check may wait for a lock.
      query_timeout: acquireTimeoutMs,
    },
    silenceMs: options.silenceMs ?? acquireTimeoutMs,
    renewPool: renew,
    // Runs a revision check as well.
    onAnswer: () => void health.refresh(),
  });
  const reads = new Reads({
    pool,
    epochOf,
    link,
    connectionsMax: options.connectionsMax,
    waitMs: options.waitMs ?? acquireTimeoutMs,
    waitingMax: options.waitingMax ?? Number.POSITIVE_INFINITY,
    answerMs: statementTimeoutMs && statementTimeoutMs + ANSWER_MARGIN_MS,
    retryForMs: awayMs && awayMs + RETRY_MARGIN_MS,
  });
  const health = healthOf(reads, link);
  const close = async (): Promise<void> => {
    link.close();
    await closePool(pool, db);
  };
  return { db, pool, reads, link, health, close };
}
