import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import closeWithGrace from 'close-with-grace';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp } from './app.ts';
import { addressOf, bannerOf } from './commands/banner.ts';
import { checkDatabase } from './commands/check-database.ts';
import { type ChosenDatabase, chooseDatabase, openWriter } from './commands/database.ts';
import { prepareEmbedded, renewDemoKey, withDevelopmentSecret } from './commands/development.ts';
import { isGiven, readConfig } from './commands/environment.ts';
import { EXIT, exitCodeOf, report } from './commands/failure.ts';
import { answerToArguments } from './commands/service-arguments.ts';
import { type Config, ConfigError } from './config.ts';
import { type Client, openClient } from './db/client.ts';
import { loggerOf } from './plugins/log.ts';

/** npm passes on the Ctrl-C that the terminal sent us already: one keystroke arrives twice. */
const SAME_KEYSTROKE_MS = 500;
/** Beyond the drain: time for the database to stop. */
const CLOSE_MARGIN_MS = 40_000;
/** What a second signal leaves the embedded database. */
const HASTE_MS = 2_000;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** What has to be undone at the end, the newest first. */
const undo: (() => Promise<void>)[] = [];
let stopping = false;
let release = async (): Promise<void> => {};

class Stopped extends Error {}

/** Leaves the start when a signal came meanwhile; what was begun is undone. */
function checkpoint(): void {
  if (stopping) throw new Stopped('stopped while starting');
}

async function undoAll(): Promise<void> {
  for (let step = undo.pop(); step; step = undo.pop()) await step().catch(report);
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

/** Does what writes to the embedded database: the service itself only reads. */
async function withWriter<T>(
  chosen: ChosenDatabase,
  config: Config,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const writer = openWriter(chosen.url, config, () => {});
  try {
    return await work(writer);
  } finally {
    await writer.close();
  }
}

/** The level that was asked for; beside the banner of a terminal only what went wrong. */
function levelOf(config: Config, chosen: ChosenDatabase): string {
  const isQuiet = chosen.isEmbedded && process.stdout.isTTY === true && !isGiven('LOG_LEVEL');
  return isQuiet ? 'warn' : config.LOG_LEVEL;
}

/** Listens, and returns the address; a port or host that cannot be had is a wrong setting. */
async function listen(app: FastifyInstance, config: Config): Promise<string> {
  try {
    await app.listen({ port: config.PORT, host: config.HOST });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why: Readonly<Record<string, string>> = {
      EADDRINUSE: `PORT: ${config.PORT} on ${config.HOST} is taken by another program`,
      EACCES: `PORT: ${config.PORT} is not allowed to this account`,
      EADDRNOTAVAIL: `HOST: ${config.HOST} is not an address of this machine`,
      ENOTFOUND: `HOST: ${config.HOST} is not known`,
    };
    throw new ConfigError(why[code ?? ''] ?? `HOST, PORT: ${(error as Error).message}`);
  }
  const { port } = app.server.address() as AddressInfo;
  return addressOf(config.HOST, port);
}

const heedLoss = (logger: Logger) => (error: Error) =>
  logger.warn({ err: error }, 'a connection to the database was lost');

/** The connections that answers are read over. */
const openReader = (url: string, config: Config, logger: Logger): Client =>
  openClient({
    url,
    connectionsMax: config.DATABASE_CONNECTIONS_MAX,
    acquireTimeoutMs: config.DATABASE_ACQUIRE_TIMEOUT_MS,
    statementTimeoutMs: config.DATABASE_STATEMENT_TIMEOUT_MS,
    readOnly: true,
    applicationName: 'commodity-prices',
    onError: heedLoss(logger),
  });

/** One connection that notes use; it must never take one from those that answer. */
const openUsage = (url: string, logger: Logger): Client =>
  openClient({
    url,
    connectionsMax: 1,
    acquireTimeoutMs: 5_000,
    statementTimeoutMs: 5_000,
    readOnly: false,
    applicationName: 'commodity-prices usage',
    onError: heedLoss(logger),
  });

/** Tells what takes its time before the banner, on a first start above all. */
const tell = (step: string): void => {
  process.stderr.write(`${step} …\n`);
};

async function start(): Promise<void> {
  const answer = answerToArguments(process.argv.slice(2));
  if (answer !== null) {
    process.stdout.write(answer);
    return;
  }
  const given = readConfig();
  if (given.DATABASE_URL === undefined) tell(`Starting PostgreSQL in ${given.DATA_DIR}`);
  const chosen = await chooseDatabase(given);
  release = () => chosen.release();
  undo.push(release);
  checkpoint();
  const config = await withDevelopmentSecret(given);
  const { url, usageUrl, example } = chosen.isEmbedded
    ? await withWriter(chosen, config, (writer) =>
        prepareEmbedded(writer, chosen.url, config.DATA_DIR, tell),
      )
    : { url: chosen.url, usageUrl: config.USAGE_DATABASE_URL, example: null };
  checkpoint();
  const logger = loggerOf(levelOf(config, chosen), process.stderr);
  const client = openReader(url, config, logger);
  undo.push(() => client.close());
  const usage = usageUrl === undefined ? null : openUsage(usageUrl, logger);
  if (usage) undo.push(() => usage.close());
  const app = await buildApp({ config, client, usagePool: usage?.pool, logger });
  undo.push(() => drain(app, config.SHUTDOWN_TIMEOUT_MS));
  checkpoint();
  const address = await listen(app, config);
  // A database that cannot be used is no reason not to start: it may come back.
  void checkDatabase(client.db, config, logger);
  if (!chosen.isEmbedded) return;
  // Not before it listens: a second start on a taken port would take the key of the first.
  const key = await withWriter(chosen, config, renewDemoKey);
  checkpoint();
  process.stdout.write(bannerOf({ address, key, example, notice: chosen.notice }));
}

const starting = start();
const grace = closeWithGrace(
  // Signals are handled below, so that one keystroke that arrives twice is one.
  { delay: CLOSE_MARGIN_MS + 300_000, logger: false, skip: [...SIGNALS, 'SIGUSR2', 'beforeExit'] },
  async ({ err }) => {
    stopping = true;
    if (err) report(err);
    await starting.catch(() => {});
    await undoAll();
  },
);

let firstSignalAt: number | null = null;
for (const signal of SIGNALS) {
  process.on(signal, () => {
    const now = Date.now();
    if (firstSignalAt === null) {
      firstSignalAt = now;
      void grace.close();
    } else if (now - firstSignalAt > SAME_KEYSTROKE_MS) {
      // At once: running answers are cut; the embedded database gets the moment that it needs.
      void Promise.race([release(), pause(HASTE_MS)]).finally(() => process.exit(EXIT.failed));
    }
  });
}

try {
  await starting;
} catch (error) {
  // After a signal the handler ends the process; before one, the failure does.
  if (!stopping) {
    report(error);
    await undoAll();
    process.exit(exitCodeOf(error));
  }
}
