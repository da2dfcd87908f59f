import { setTimeout as pause } from 'node:timers/promises';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { Primary } from './as-of.ts';
import { type Health, healthOf } from './health.ts';
import { Link, type LinkOptions } from './link/link.ts';
import { destroy } from './link/silence.ts';
import { type Around, type Reads, readsOf } from './reads.ts';
import type { Database } from './schema.ts';

/**
 * A pool of PostgreSQL connections, the Kysely handle over it, and the link beside it: one more
 * connection, made when it is needed first, by which the state of the database is known.
 */
export interface Client {
  readonly db: Kysely<Database>;
  readonly pool: pg.Pool;
  /** Statements that end with the requests that they are for. */
  readonly reads: Reads;
  readonly link: Link;
  /** Asks the primary, where a standby is in use. */
  readonly primary: Primary;
  readonly health: Health;
  close(): Promise<void>;
}

/** Options of the link that are those of the client. */
type Shared =
  | 'awayMs'
  | 'behindMs'
  | 'catchUp'
  | 'onBehind'
  | 'onChange'
  | 'onError'
  | 'onMove'
  | 'silenceMs';

export interface ClientOptions extends Partial<Pick<LinkOptions, Shared>> {
  readonly url: string;
  /** Servers that hold the same, to go to when that one is away, in this order. */
  readonly others?: readonly string[];
  readonly connectionsMax: number;
  /** How long making a connection may take, in milliseconds. */
  readonly acquireTimeoutMs: number;
  /** How long a read waits for a free connection; `acquireTimeoutMs` by default. */
  readonly waitMs?: number;
  /** How many reads may wait for one; no limit by default. */
  readonly waitingMax?: number;
  /** Server-side limit of one statement in milliseconds; 0 for none. */
  readonly statementTimeoutMs: number;
  /** How long statements wait for a lock, in milliseconds; 0 for no limit. */
  readonly lockTimeoutMs?: number;
  /** True if sessions refuse to write; the service reads only. */
  readonly readOnly: boolean;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
  /** What is done around each statement that is read. */
  readonly around?: Around | undefined;
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

/** Beyond the server's own limit of a statement: a server that still says nothing stands still. */
const ANSWER_MARGIN_MS = 1_000;

/** Beyond a database that comes back: what failed as it went away is tried then. */
const RETRY_MARGIN_MS = 1_000;

const GOODBYE_MS = 5_000;
const BEHIND_MS = 5_000;

/** How a connection to a server is made. */
function sessionOf(options: ClientOptions, url: string, purpose = '') {
  const settings = [
    '-c TimeZone=UTC',
    '-c DateStyle=ISO',
    '-c jit=off',
    `-c statement_timeout=${options.statementTimeoutMs}`,
    `-c default_transaction_read_only=${options.readOnly ? 'on' : 'off'}`,
    // Accounts have a limit for sessions of others; ours may be idle for hours.
    '-c idle_session_timeout=0',
    ...(options.lockTimeoutMs === undefined ? [] : [`-c lock_timeout=${options.lockTimeoutMs}`]),
  ];
  const { address, given } = withoutOptions(url);
  return {
    connectionString: address,
    connectionTimeoutMillis: options.acquireTimeoutMs,
    application_name: `${options.applicationName} ${purpose}`.trim(),
    options: [given, ...settings].join(' ').trim(),
    types,
  };
}

/** True if only a server will do that can be written to, as the address of libpq says it. */
const mustWrite = ({ url, readOnly }: ClientOptions): boolean =>
  !readOnly ||
  /^(primary|read-write)$/.test(new URL(url).searchParams.get('target_session_attrs') ?? '');

/** The connections of a pool, each of which belongs to an epoch of the link. */
interface Epochs {
  readonly pool: pg.Pool;
  /** Closes connections of earlier epochs, and makes as many as there were before. */
  renew(): Promise<void>;
  epochOf(client: pg.ClientBase): number;
}

/**
 * A pool of connections to the server in use. Clients that write give up a silent server by
 * themselves; readers do so for each statement.
 */
function poolOf(options: ClientOptions, link: () => Link): Epochs {
  const { readOnly, statementTimeoutMs, onError } = options;
  const answerMs = statementTimeoutMs + ANSWER_MARGIN_MS;
  const patience = readOnly || statementTimeoutMs === 0 ? {} : { query_timeout: answerMs };
  const epochs = new Map<pg.ClientBase, number>();
  class Session extends pg.Client {
    constructor(config: pg.ClientConfig) {
      super({ ...config, ...patience, ...sessionOf(options, link().url) });
      epochs.set(this, link().epoch);
      this.once('end', () => epochs.delete(this));
    }
  }
  const pool = new pg.Pool({
    connectionTimeoutMillis: options.acquireTimeoutMs,
    max: options.connectionsMax,
    // Readers keep the connections that they have made.
    min: readOnly ? options.connectionsMax : 0,
    keepAlive: true,
    Client: Session as unknown as new () => pg.ClientBase,
  });
  // An error of a connection, idle or in use, would end the service without a listener.
  const heed = (error: Error) => onError?.(error);
  pool.on('error', heed);
  let most = 0;
  pool.on('connect', (client) => {
    client.on('error', heed);
    most = Math.max(most, pool.totalCount);
  });
  const epochOf = (client: pg.ClientBase): number => epochs.get(client) ?? -1;
  const warm = async (): Promise<void> => {
    for (;;) {
      const client = await pool.connect();
      const isNew = epochOf(client) === link().epoch;
      client.release(!isNew);
      if (isNew) return;
    }
  };
  const renew = async (): Promise<void> => {
    // A transaction that writes may still be whole.
    if (!readOnly) return;
    const { epoch } = link();
    for (const [client, made] of epochs) if (made < epoch) destroy(client as pg.Client);
    await Promise.allSettled(Array.from({ length: pool.ending ? 0 : most }, warm));
  };
  return { pool, renew, epochOf };
}

async function end(pool: pg.Pool, db: Kysely<Database>): Promise<void> {
  // Kysely leaves a pool alone that it never took a connection from.
  const ended = db.destroy().then(() => (pool.ended ? undefined : pool.end()));
  // A database that stands still never says goodbye.
  await Promise.race([ended, pause(GOODBYE_MS, undefined, { ref: false })]);
}

/** Opens a pool; no connection is made before the first query. */
export function openClient(options: ClientOptions): Client {
  const { acquireTimeoutMs, statementTimeoutMs, awayMs } = options;
  const silenceMs = options.silenceMs ?? acquireTimeoutMs;
  const { pool, epochOf, renew } = poolOf(options, () => link);
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  const link = new Link({
    ...options,
    urls: [options.url, ...(options.others ?? [])],
    connection: (url) => ({
      ...sessionOf(options, url, 'link'),
      keepAlive: true,
      // A reading of the newest revision may wait for a lock.
      query_timeout: acquireTimeoutMs,
    }),
    mustWrite: mustWrite(options),
    behindMs: options.behindMs ?? BEHIND_MS,
    silenceMs,
    renewPool: renew,
    // It reads the newest revision as well.
    onAnswer: () => void health.refresh(),
  });
  const reads = readsOf({
    pool,
    epochOf,
    link,
    connectionsMax: options.connectionsMax,
    waitMs: options.waitMs ?? acquireTimeoutMs,
    waitingMax: options.waitingMax ?? Number.POSITIVE_INFINITY,
    answerMs: statementTimeoutMs && statementTimeoutMs + ANSWER_MARGIN_MS,
    retryForMs: awayMs && awayMs + RETRY_MARGIN_MS,
    around: options.around,
  });
  const health = healthOf(reads, link);
  const primary = new Primary({
    urls: () => link.others,
    connection: (url) => sessionOf(options, url, 'as of'),
    silenceMs,
  });
  const close = async (): Promise<void> => {
    primary.close();
    link.close();
    await end(pool, db);
  };
  return { db, pool, reads, link, primary, health, close };
}
