import { setTimeout as pause } from 'node:timers/promises';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { LineBounds } from '../std/places.ts';
import { type Health, healthOf } from './health.ts';
import { Breaker, type BreakerOptions } from './link/breaker.ts';
import { ANSWER_MS, type Notices, noticesOf } from './link/notices.ts';
import { Primary } from './link/primary.ts';
import { type Pulse, pulseOf } from './link/pulse.ts';
import { Servers } from './link/servers.ts';
import { destroy } from './link/silence.ts';
import { type Watch, watchOf } from './link/watch.ts';
import { type Around, type Reads, readsOf } from './reads.ts';
import type { Database } from './schema.ts';
import { orAborted } from './shared-work.ts';

/**
 * A pool of PostgreSQL connections, the Kysely handle over it, and three connections beside it: one
 * for the looks that requests share, one that hears what is committed, and one that watches whether
 * the database answers. Each is made when it is needed first.
 */
export interface Client {
  readonly db: Kysely<Database>;
  readonly pool: pg.Pool;
  /** Statements that end with the requests that they are for. */
  readonly reads: Reads;
  readonly pulse: Pulse;
  readonly notices: Notices;
  readonly watch: Watch;
  /** Asks the primary, where a standby is in use. */
  readonly primary: Primary;
  readonly breaker: Breaker;
  readonly health: Health;
  /** Where the database is, of which several servers may hold the same. */
  readonly servers: Servers;
  close(): Promise<void>;
}

export interface ClientOptions {
  readonly url: string;
  /** Servers that hold the same, to go to when that one is away, in this order. */
  readonly others?: readonly string[];
  readonly connectionsMax: number;
  /** How long making a connection may take, in milliseconds. */
  readonly acquireTimeoutMs: number;
  /** How long a read waits for a free one; as long as that when it is not given. */
  readonly waitMs?: number;
  /** How many reads may wait for one; no limit when it is 0 or not given. */
  readonly waitingMax?: number;
  /** Server-side limit of one statement in milliseconds; 0 for none. */
  readonly statementTimeoutMs: number;
  /** How long statements wait for a lock, in milliseconds; 0 for no limit. */
  readonly lockTimeoutMs?: number;
  /** Whether sessions refuse to write; the service reads only. */
  readonly readOnly: boolean;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
  /** How long the database may say nothing before it counts as away, in milliseconds. */
  readonly silenceMs?: number;
  /** How long statements wait for a database that went away; longer than a restart by default. */
  readonly rideOutMs?: number;
  /** Bounds of the waiting lines until the backlog of an interruption is gone. */
  readonly catchUp?: LineBounds;
  /** How long a standby may be behind before another server is used, in milliseconds. */
  readonly behindMs?: number;
  /** What is done around each statement that is read. */
  readonly around?: Around | undefined;
  readonly onError?: (error: Error) => void;
  /** Told when the database goes away and comes back. */
  readonly onChange?: BreakerOptions['onChange'];
  /** Told when another server is used from now on, why, and its address. */
  readonly onMove?: (why: Error, url: string) => void;
  /** Told when a standby is behind, and no other server can take its place. */
  readonly onBehind?: (why: Error) => void;
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

/** Whether only a server will do that can be written to, as the address of libpq says it. */
const mustWrite = ({ url, readOnly }: ClientOptions): boolean =>
  !readOnly ||
  /^(primary|read-write)$/.test(new URL(url).searchParams.get('target_session_attrs') ?? '');

/**
 * A pool of connections to the server in use, each of which belongs to an epoch of the breaker.
 * Clients that write give up a silent server by themselves; readers do so for each statement.
 */
function poolOf(options: ClientOptions, servers: Servers, breaker: Breaker) {
  const { readOnly, statementTimeoutMs, onError } = options;
  const answerMs = statementTimeoutMs + ANSWER_MARGIN_MS;
  const patience = readOnly || statementTimeoutMs === 0 ? {} : { query_timeout: answerMs };
  const epochs = new Map<pg.ClientBase, number>();
  class Session extends pg.Client {
    constructor(config: pg.ClientConfig) {
      super({ ...config, ...patience, ...sessionOf(options, servers.current) });
      epochs.set(this, breaker.epoch);
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
      const isNew = epochOf(client) === breaker.epoch;
      client.release(!isNew);
      if (isNew) return;
    }
  };
  /** Ends the connections of earlier epochs, and makes as many as there were before. */
  const renew = async (): Promise<void> => {
    // A transaction that writes may still be whole.
    if (!readOnly) return;
    for (const [client, epoch] of epochs) if (epoch < breaker.epoch) destroy(client as pg.Client);
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

const primaryOf = (options: ClientOptions, servers: Servers): Primary =>
  new Primary({
    urls: () => servers.others,
    connection: (url) => sessionOf(options, url, 'as of'),
    silenceMs: options.silenceMs ?? options.acquireTimeoutMs,
  });

/** Opens a pool; no connection is made before the first query. */
export function openClient(options: ClientOptions): Client {
  const { acquireTimeoutMs, statementTimeoutMs, rideOutMs } = options;
  const servers = new Servers([options.url, ...(options.others ?? [])]);
  const onError = (error: Error) => options.onError?.(error);
  const breaker = new Breaker({ ...options, verify: () => watch.verify() });
  const { pool, epochOf, renew: renewPool } = poolOf(options, servers, breaker);
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  const watch = watchOf({
    connection: (url) => sessionOf(options, url, 'watch'),
    servers,
    mustWrite: mustWrite(options),
    behindMs: options.behindMs ?? BEHIND_MS,
    breaker,
    silenceMs: options.silenceMs ?? acquireTimeoutMs,
    newest: () => pulse.newest,
    onAnswer: () => void health.refresh(),
    onMove: (why) => options.onMove?.(why, servers.current),
    renew: () => {
      breaker.renew();
      pulse.move();
      notices.move();
      breaker.warmUp(renewPool());
    },
    onBehind: (why) => options.onBehind?.(why),
  });
  const reads = readsOf({
    pool,
    epochOf,
    breaker,
    watch,
    connectionsMax: options.connectionsMax,
    waitMs: options.waitMs ?? acquireTimeoutMs,
    waitingMax: options.waitingMax || Number.POSITIVE_INFINITY,
    answerMs: statementTimeoutMs && statementTimeoutMs + ANSWER_MARGIN_MS,
    retryForMs: rideOutMs && rideOutMs + RETRY_MARGIN_MS,
    around: options.around,
  });
  const pulse = pulseOf({
    connection: () => sessionOf(options, servers.current, 'pulse'),
    reads,
    breaker,
    patienceMs: acquireTimeoutMs,
    onError,
  });
  const health = healthOf({ reads, pulse, breaker, watch });
  const notices = noticesOf({
    connection: () => sessionOf(options, servers.current, 'notices'),
    onError,
    // Who lets the database say nothing for longer means this connection as well.
    answerMs: Math.max(ANSWER_MS, options.silenceMs ?? acquireTimeoutMs),
  });
  const primary = primaryOf(options, servers);
  const close = async (): Promise<void> => {
    primary.close();
    await Promise.all([watch.close(), pulse.close(), notices.close()]);
    await end(pool, db);
  };
  return { db, pool, reads, pulse, notices, watch, primary, breaker, health, servers, close };
}

/**
 * Asks short statements over the connection that hears notices, which is there when one is heard: a
 * pool that was not used for a while has to make its own first, and prepare the statement there.
 * Without that connection they use the pool.
 */
export const atOnce =
  ({ notices, reads, breaker }: Pick<Client, 'notices' | 'reads' | 'breaker'>): Reads['query'] =>
  async <Row extends pg.QueryResultRow>(query: pg.QueryConfig, signal?: AbortSignal) =>
    (await orAborted(notices.ask<Row>(query), breaker.lifeline)) ?? reads.query<Row>(query, signal);
