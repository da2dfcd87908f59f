import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp } from '../app.ts';
import { type Config, ConfigError } from '../config/config.ts';
import { type Client, openClient, type ServerAddress } from '../db/client.ts';
import { TooFewConnections } from '../db/failures.ts';
import type { LinkOptions } from '../db/link/link.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { addressOf } from './banner.ts';
import { checkDatabase, requireOwnSessions, watchClock } from './check-database.ts';
import { sentenceOf } from './failure.ts';
import type { Lifecycle } from './lifecycle.ts';
import { listenError } from './ports.ts';

/*
 * The process of the service: `prepare.ts` opens the log, the database and the ports, this file
 * listens and drains, and `lifecycle.ts` orders the stop.
 */

/**
 * Listen backlog; the kernel may cap it. A client whose connection attempt is dropped retries only
 * after a second.
 */
const BACKLOG = 4_096;

/** Keeps serving during the notice, while `/ready` returns 503 to load balancers. */
async function announceStop(app: FastifyInstance, noticeMs: number): Promise<void> {
  app.isStopping = true;
  app.log.info(`stopping: /ready answers 503, and the listener closes in ${noticeMs} ms`);
  await pause(noticeMs);
}

/** Closes the listener and waits for running requests; after the timeout closes all connections. */
async function drain(app: FastifyInstance, timeoutMs: number): Promise<void> {
  const closing = app.close().then(() => true);
  const inTime = await Promise.race([closing, pause(timeoutMs, false, { ref: false })]);
  if (inTime) return;
  app.log.warn('answers were still running at the end of SHUTDOWN_TIMEOUT_MS');
  app.server.closeAllConnections();
  await Promise.race([closing, pause(1_000, false)]);
}

/** Listens, and returns the port. @throws ConfigError if the port or host cannot be used */
async function listen(app: FastifyInstance, config: Config): Promise<number> {
  try {
    await app.listen({ port: config.PORT, host: config.HOST, backlog: BACKLOG });
  } catch (error) {
    throw listenError(error as Error, { host: config.HOST, port: config.PORT, prefix: '' });
  }
  return (app.server.address() as AddressInfo).port;
}

/** Logs one lost connection. The link logs an outage of the database itself. */
const logConnectionLoss = (logger: Logger) => (error: Error) =>
  logger.debug({ err: error }, 'a connection to the database was lost');

/**
 * Logs the start and the end of each outage once. A first connection that takes a moment is none: a
 * service that starts is busy itself.
 */
const logOutage =
  (logger: Logger, hasAnswered: () => boolean): NonNullable<LinkOptions['onChange']> =>
  (state, before, error) => {
    if (state === 'down') {
      logger.error(`${sentenceOf(error)}; every answer is 503 until that is fixed`);
    } else if (state === 'up' && before === 'down') {
      logger.info('the database answers again');
    } else if (state === 'up' && hasAnswered()) {
      logger.info('the database was unavailable briefly');
    }
  };

/** Opens the read-only connections of requests. */
function openReader({ database, config, logger }: ServeOptions): Client {
  const client: Client = openClient({
    url: database.url,
    password: database.password,
    connectionsMax: config.DATABASE_CONNECTIONS_MAX,
    acquireTimeoutMs: config.DATABASE_ACQUIRE_TIMEOUT_MS,
    waitMs: config.WAITING_MS_MAX,
    waitingMax: config.WAITING_MAX,
    silenceMs: config.DATABASE_SILENCE_MS,
    awayMs: config.DATABASE_AWAY_MS_MAX,
    onChange: logOutage(logger, () => client.link.hasAnswered),
    statementTimeoutMs: config.DATABASE_STATEMENT_TIMEOUT_MS,
    readOnly: true,
    applicationName: 'commodity-prices',
    onError: logConnectionLoss(logger),
  });
  return client;
}

/**
 * Connections to the primary: one to query it, and one for usage data, whose commits may wait for a
 * standby.
 */
const USAGE_CONNECTIONS = 2;

/** Opens separate connections to the primary, so that requests can use their whole pool. */
const openUsage = ({ url, password }: ServerAddress, logger: Logger): Client =>
  openClient({
    url,
    password,
    connectionsMax: USAGE_CONNECTIONS,
    acquireTimeoutMs: 5_000,
    statementTimeoutMs: 5_000,
    readOnly: false,
    applicationName: 'commodity-prices usage',
    onError: logConnectionLoss(logger),
  });

interface ServeOptions {
  readonly config: Config;
  /** The server with the reading account. */
  readonly database: ServerAddress;
  /** The primary with the account for usage data. */
  readonly usageDatabase: ServerAddress | undefined;
  readonly logger: Logger;
  readonly metrics: Metrics | undefined;
  /** Called if the service listens, and then finds that it cannot use the database for good. */
  readonly onRefusal: (error: ConfigError) => void;
}

/** Checks the addresses and the database once it answers. The link logs one that is away. */
async function checkOnce(
  { config, logger, onRefusal }: ServeOptions,
  client: Client,
  usage: Client | null,
): Promise<void> {
  await client.link.firstAnswer;
  const clients = { DATABASE_URL: client, USAGE_DATABASE_URL: usage };
  for (const name of ['DATABASE_URL', 'USAGE_DATABASE_URL'] as const) {
    try {
      if (clients[name] !== null) await requireOwnSessions(clients[name], name);
    } catch (error) {
      if (error instanceof ConfigError) return onRefusal(error);
      if (error instanceof TooFewConnections) logger.error(`${name}: ${error.message}`);
    }
  }
  await checkDatabase(client.db, config, logger);
  watchClock(client, logger);
}

/** The limit of each client, which an operator otherwise learns from the first 429. */
const limitText = ({ RATE_PER_MINUTE: perMinute, RATE_BURST: burst }: Config): string =>
  perMinute === 0
    ? 'requests have no rate limit (RATE_PER_MINUTE=0)'
    : `each key or token may send ${perMinute} requests a minute, ${burst} at once ` +
      '(RATE_PER_MINUTE, RATE_BURST; keys create --rate gives a key its own limit)';

/** Starts the service on a database. Returns its address; the lifecycle stops it. */
export async function serve(options: ServeOptions, lifecycle: Lifecycle): Promise<string> {
  const { config, usageDatabase, logger, metrics } = options;
  const client = openReader(options);
  lifecycle.onShutdown(() => client.close());
  const usage = usageDatabase === undefined ? null : openUsage(usageDatabase, logger);
  if (usage) lifecycle.onShutdown(() => usage.close());
  const usagePool = usage?.pool;
  const app = await buildApp({ config, client, usagePool, logger, metrics });
  lifecycle.onShutdown(async () => {
    if (config.STOP_NOTICE_MS > 0) await announceStop(app, config.STOP_NOTICE_MS);
    await drain(app, config.SHUTDOWN_TIMEOUT_MS);
  });
  lifecycle.throwIfShuttingDown();
  const port = await listen(app, config);
  logger.info(limitText(config));
  // The service starts even if the database is unusable, because the fault may be temporary.
  void checkOnce(options, client, usage);
  return addressOf(config.HOST, port);
}
