import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp } from '../app.ts';
import { databaseAddressOf, serverAddressesOf } from '../config/addresses.ts';
import type { Config } from '../config/config.ts';
import { type Client, type ClientOptions, openClient } from '../db/client.ts';
import type { LinkOptions } from '../db/link/link.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { addressOf } from './banner.ts';
import { checkDatabase } from './check-database.ts';
import { sentenceOf } from './failure.ts';
import type { Lifecycle } from './lifecycle.ts';
import { logStateChange, type StateChange } from './log.ts';
import { listenError } from './ports.ts';

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

/** Logs the start and the end of each outage once. */
const logOutage =
  (logger: Logger): NonNullable<LinkOptions['onChange']> =>
  (state, before, error) => {
    const log = (level: StateChange['level'], message: string | null): void =>
      logStateChange(logger, { topic: 'the database', state, level, message });
    if (state === 'down') {
      log('error', `${sentenceOf(error)}; every answer is 503 until that is fixed`);
    } else if (state === 'away') {
      log('info', null);
    } else {
      const wasLong = before === 'down';
      log('info', `the database ${wasLong ? 'answers again' : 'was unavailable briefly'}`);
    }
  };

/** The servers of an address. Logs each switch to another server. */
function serversOf(
  address: string,
  purpose: 'read' | 'written to',
  logger: Logger,
): Pick<ClientOptions, 'url' | 'fallbackUrls' | 'onFailover' | 'onBehind'> {
  const [url = address, ...others] = serverAddressesOf(address);
  const onFailover = (why: Error, to: string): void => {
    const state = `${databaseAddressOf(to)}`;
    const message = `the database is ${purpose} at ${state} from now on (${why.message})`;
    logStateChange(logger, {
      topic: `where the database is ${purpose}`,
      state,
      level: 'warn',
      message,
    });
  };
  const onBehind = (why: Error): void => {
    // At most once a minute.
    const state = new Date().toISOString().slice(0, 16);
    const effect = 'answers lack later commits, and keys revoked since then still work';
    const message = `${why.message}: ${effect}`;
    logStateChange(logger, { topic: 'the standby', state, level: 'warn', message });
  };
  return { url, fallbackUrls: others, onFailover, onBehind };
}

/** Opens the read-only connections of requests. */
const openReader = ({ url, config, logger, tracing }: ServeOptions): Client =>
  openClient({
    ...serversOf(url, 'read', logger),
    connectionsMax: config.DATABASE_CONNECTIONS_MAX,
    acquireTimeoutMs: config.DATABASE_ACQUIRE_TIMEOUT_MS,
    waitMs: config.WAITING_MS_MAX,
    waitingMax: config.WAITING_MAX,
    silenceMs: config.DATABASE_SILENCE_MS,
    awayMs: config.DATABASE_AWAY_MS_MAX,
    behindMs: config.DATABASE_LAG_MS_MAX,
    systemIdentifier: config.DATABASE_SYSTEM_IDENTIFIER,
    onChange: logOutage(logger),
    statementTimeoutMs: config.DATABASE_STATEMENT_TIMEOUT_MS,
    readOnly: true,
    applicationName: 'commodity-prices',
    onError: logConnectionLoss(logger),
    intercept: tracing?.statement,
  });

/** Opens a separate connection for usage data, so that requests can use their whole pool. */
function openUsage(url: string, config: Config, logger: Logger): Client {
  const client = openClient({
    ...serversOf(url, 'written to', logger),
    connectionsMax: 1,
    acquireTimeoutMs: 5_000,
    statementTimeoutMs: 5_000,
    readOnly: false,
    readsHealth: false,
    systemIdentifier: config.DATABASE_SYSTEM_IDENTIFIER,
    applicationName: 'commodity-prices usage',
    onError: logConnectionLoss(logger),
  });
  // With several servers, the link finds the primary.
  if (client.link.fallbackUrls.length > 0) client.link.start();
  return client;
}

interface ServeOptions {
  readonly config: Config;
  /** Address with the reading account. */
  readonly url: string;
  /** Address with the account for usage data. */
  readonly usageUrl: string | undefined;
  readonly logger: Logger;
  readonly metrics: Metrics | undefined;
  readonly tracing: Tracing | undefined;
}

/** Starts the service on a database. Returns its address; the lifecycle stops it. */
export async function serve(options: ServeOptions, lifecycle: Lifecycle): Promise<string> {
  const { config, usageUrl, logger, metrics, tracing } = options;
  const client = openReader(options);
  lifecycle.onShutdown(() => client.close());
  const usage = usageUrl === undefined ? null : openUsage(usageUrl, config, logger);
  if (usage) lifecycle.onShutdown(() => usage.close());
  const usagePool = usage?.pool;
  const app = await buildApp({ config, client, usagePool, logger, metrics, tracing });
  lifecycle.onShutdown(async () => {
    // Without a signal the worker was replaced: the service stays available.
    if (lifecycle.isBySignal && config.STOP_NOTICE_MS > 0)
      await announceStop(app, config.STOP_NOTICE_MS);
    await drain(app, config.SHUTDOWN_TIMEOUT_MS);
  });
  lifecycle.throwIfShuttingDown();
  const port = await listen(app, config);
  // The service starts even if the database is unusable, because the fault may be temporary.
  void client.link.firstCheck.then(() => checkDatabase(client.db, config, logger));
  return addressOf(config.HOST, port);
}
