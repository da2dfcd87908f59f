import { setTimeout as pause } from 'node:timers/promises';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { parseIntoClientConfig } from 'pg-connection-string';
import { type Health, healthOf } from './health.ts';
import { Link, type LinkOptions } from './link/link.ts';
import { type SessionConfig, SocketClient } from './link/socket-client.ts';
import { poolsTransactions } from './pooler.ts';
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
  /**
   * True if a pooler before the server shares its sessions between clients.
   * @throws the errors of the server
   */
  poolsTransactions(): Promise<boolean>;
  close(): Promise<void>;
}

/** A server with an account. */
export interface ServerAddress {
  readonly url: string;
  /** Returns the password for each connection, unless the address has one. */
  readonly password?: (() => string) | undefined;
}

/** Options that are passed to the link. */
type SharedOptions = 'awayMs' | 'onChange' | 'onError' | 'silenceMs';

export interface ClientOptions extends ServerAddress, Partial<Pick<LinkOptions, SharedOptions>> {
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

/** Added to `statement_timeout`: a server that exceeds both does not respond. */
const ANSWER_MARGIN_MS = 1_000;

/** Added to the longest interruption, so that statements that it ended are retried after it. */
const RETRY_MARGIN_MS = 1_000;

const CLOSE_TIMEOUT_MS = 5_000;

/**
 * The settings of each session. They are set after the login instead of by its parameter `options`,
 * which PgBouncer refuses. They take precedence over `options` of the address.
 */
const sessionSettings = (options: ClientOptions): Readonly<Record<string, string>> => ({
  TimeZone: 'UTC',
  DateStyle: 'ISO',
  jit: 'off',
  statement_timeout: String(options.statementTimeoutMs),
  default_transaction_read_only: options.readOnly ? 'on' : 'off',
  // Overrides the limit of the account (roles.sql): pooled sessions may be idle for hours.
  idle_session_timeout: '0',
  ...(options.lockTimeoutMs === undefined ? {} : { lock_timeout: String(options.lockTimeoutMs) }),
});

/** Reads the address, with the certificates that it names, once: a later fault must not throw. */
function connectionConfigOf(options: ClientOptions) {
  const { password, ...address } = parseIntoClientConfig(options.url);
  return (purpose = ''): SessionConfig => ({
    ...address,
    // The driver calls the function for each connection.
    password: password || options.password,
    connectionTimeoutMillis: options.acquireTimeoutMs,
    application_name: `${options.applicationName} ${purpose}`.trim(),
    settings: sessionSettings(options),
    types,
  });
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
function poolOf(options: ClientOptions, connection: SessionConfig, link: () => Link): EpochPool {
  const { readOnly, statementTimeoutMs, onError } = options;
  const answerMs = statementTimeoutMs + ANSWER_MARGIN_MS;
  const timeout = readOnly || statementTimeoutMs === 0 ? {} : { query_timeout: answerMs };
  const epochs = new Map<SocketClient, number>();
  class Session extends SocketClient {
    constructor(config: pg.ClientConfig) {
      super({ ...config, ...timeout, ...connection });
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
  const connectionConfig = connectionConfigOf(options);
  const { pool, epochOf, renew } = poolOf(options, connectionConfig(), () => link);
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  const link = new Link({
    ...options,
    connection: {
      ...connectionConfig('link'),
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
  return {
    db,
    pool,
    reads,
    link,
    health,
    poolsTransactions: () =>
      poolsTransactions(
        { ...connectionConfig('check'), query_timeout: acquireTimeoutMs },
        () => link.hasAnswered && link.state === 'up',
      ),
    close,
  };
}
