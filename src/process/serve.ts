import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp } from '../app.ts';
import { databaseAddressOf, serverAddressesOf } from '../config/addresses.ts';
import { type Config, ConfigError } from '../config/config.ts';
import { type Client, openClient } from '../db/client.ts';
import type { LinkOptions } from '../db/link/link.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { addressOf } from './banner.ts';
import { checkDatabase } from './check-database.ts';
import { sentenceOf } from './failure.ts';
import type { Life } from './life.ts';
import type { Heritage } from './passing.ts';
import { type News, tellOnce } from './told-once.ts';

/**
 * Connections that the system keeps for a service that is busy, if it keeps as many: a client whose
 * connection is dropped tries again after a second.
 */
const BACKLOG = 4_096;

/** Goes on as before for a while, but tells whoever asks `/ready` to send nothing more. */
async function giveNotice(app: FastifyInstance, noticeMs: number): Promise<void> {
  app.isStopping = true;
  app.log.info(`stopping: /ready answers 503, and the listener closes in ${noticeMs} ms`);
  await pause(noticeMs);
}

/** Closes the listener, lets running answers end, and cuts what still runs after the time given. */
async function drain(app: FastifyInstance, timeoutMs: number): Promise<void> {
  const closing = app.close().then(() => true);
  const inTime = await Promise.race([closing, pause(timeoutMs, false, { ref: false })]);
  if (inTime) return;
  app.log.warn('answers were still running at the end of SHUTDOWN_TIMEOUT_MS');
  app.server.closeAllConnections();
  await Promise.race([closing, pause(1_000, false)]);
}

/** Listens, and returns the port; a port or host that cannot be had is a wrong setting. */
async function listen(app: FastifyInstance, config: Config): Promise<number> {
  try {
    await app.listen({ port: config.PORT, host: config.HOST, backlog: BACKLOG });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const taken = `PORT: ${config.PORT} on ${config.HOST} is taken by another program`;
    const why: Readonly<Record<string, string>> = {
      EADDRINUSE: `${taken}; PORT=0 takes a free one`,
      EACCES: `PORT: ${config.PORT} is not allowed to this account`,
      EADDRNOTAVAIL: `HOST: ${config.HOST} is not an address of this machine`,
      ENOTFOUND: `HOST: ${config.HOST} is not known`,
    };
    throw new ConfigError(why[code ?? ''] ?? `HOST, PORT: ${(error as Error).message}`);
  }
  return (app.server.address() as AddressInfo).port;
}

/** One of many connections; whether the database itself is away is told once, by the link. */
const heedLoss = (logger: Logger) => (error: Error) =>
  logger.debug({ err: error }, 'a connection to the database was lost');

/** Says once that the database is away, and once that it is back. */
const tellOutage =
  (logger: Logger): NonNullable<LinkOptions['onChange']> =>
  (state, before, error) => {
    const tell = (level: News['level'], line: string | null): void =>
      tellOnce(logger, { about: 'the database', state, level, line });
    if (state === 'down') {
      tell('error', `${sentenceOf(error)}; every answer is 503 until that is mended`);
    } else if (state === 'away') {
      tell('info', null);
    } else {
      const wasLong = before === 'down';
      tell('info', wasLong ? 'the database answers again' : 'the database was away for a moment');
    }
  };

/** The servers that an address names, and a line of the log when another of them is used. */
function serversOf(address: string, purpose: 'read' | 'written to', logger: Logger) {
  const [url = address, ...others] = serverAddressesOf(address);
  const onMove = (why: Error, moved: string): void => {
    const state = `${databaseAddressOf(moved)}`;
    const line = `the database is ${purpose} at ${state} from now on (${why.message})`;
    tellOnce(logger, { about: `where the database is ${purpose}`, state, level: 'warn', line });
  };
  const onBehind = (why: Error): void => {
    // Once a minute, should it come and go.
    const state = new Date().toISOString().slice(0, 16);
    const line = `${why.message}: nothing committed since is seen, nor that a key was revoked`;
    tellOnce(logger, { about: 'the standby', state, level: 'warn', line });
  };
  return { url, others, onMove, onBehind };
}

/** The connections that answers are read over. */
const openReader = ({ url, config, logger, tracing }: Served): Client =>
  openClient({
    ...serversOf(url, 'read', logger),
    connectionsMax: config.DATABASE_CONNECTIONS_MAX,
    acquireTimeoutMs: config.DATABASE_ACQUIRE_TIMEOUT_MS,
    waitMs: config.WAITING_MS_MAX,
    waitingMax: config.WAITING_MAX,
    silenceMs: config.DATABASE_SILENCE_MS,
    awayMs: config.DATABASE_AWAY_MS_MAX,
    catchUp: { waitingMax: config.BACKLOG_MAX, waitMs: config.BACKLOG_MS_MAX },
    behindMs: config.DATABASE_LAG_MS_MAX,
    onChange: tellOutage(logger),
    statementTimeoutMs: config.DATABASE_STATEMENT_TIMEOUT_MS,
    readOnly: true,
    applicationName: 'commodity-prices',
    onError: heedLoss(logger),
    around: tracing?.statement,
  });

/** One connection that notes use; it must never take one from those that answer. */
function openUsage(url: string, logger: Logger): Client {
  const client = openClient({
    ...serversOf(url, 'written to', logger),
    connectionsMax: 1,
    acquireTimeoutMs: 5_000,
    statementTimeoutMs: 5_000,
    readOnly: false,
    applicationName: 'commodity-prices usage',
    onError: heedLoss(logger),
  });
  // Of several servers it finds the one that can be written to.
  if (client.link.others.length > 0) client.link.start();
  return client;
}

interface Served {
  readonly config: Config;
  /** The database as the service reads it, and as it notes use. */
  readonly url: string;
  readonly usageUrl: string | undefined;
  readonly logger: Logger;
  readonly metrics: Metrics | undefined;
  readonly tracing: Tracing | undefined;
  /** Of a worker: its connections outlive it. */
  readonly heritage?: Heritage;
}

/** Serves from a database until the end; returns the address. */
export async function serve(served: Served, life: Life): Promise<string> {
  const { config, usageUrl, logger, metrics, tracing, heritage: heirs } = served;
  const client = openReader(served);
  life.atEnd(() => client.close());
  const usage = usageUrl === undefined ? null : openUsage(usageUrl, logger);
  if (usage) life.atEnd(() => usage.close());
  const usagePool = usage?.pool;
  const app = await buildApp({ config, client, usagePool, logger, metrics, tracing, heirs });
  if (heirs) life.atEnd(() => heirs.settled());
  heirs?.takeFor(app.server);
  life.atEnd(async () => {
    // Who is replaced is not missed: others go on with its connections.
    const isMissed = life.isBySignal && !heirs?.hasHeirs;
    if (isMissed && config.STOP_NOTICE_MS > 0) await giveNotice(app, config.STOP_NOTICE_MS);
    await drain(app, config.SHUTDOWN_TIMEOUT_MS);
  });
  life.checkpoint();
  const port = await listen(app, config);
  // A database that cannot be used is no reason not to start: it may come back.
  void client.link.firstCheck.then(() => checkDatabase(client.db, config, logger));
  return addressOf(config.HOST, port);
}
