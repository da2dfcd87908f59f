import { setTimeout as pause } from 'node:timers/promises';
import closeWithGrace from 'close-with-grace';
import type { Logger } from 'pino';
import { type Config, ConfigError } from './config/config.ts';
import { misspeltSettings, misspeltText } from './config/environment.ts';
import { type Metrics, metricsOf } from './metrics/metrics.ts';
import { addressOf, bannerOf } from './process/banner.ts';
import { tlsNotices } from './process/database.ts';
import { readConfig } from './process/environment.ts';
import { exitCodeOf, report } from './process/failure.ts';
import { Lifecycle } from './process/lifecycle.ts';
import { type Log, openLog } from './process/log.ts';
import { serveMetrics } from './process/metrics-server.ts';
import { prepare } from './process/prepare.ts';
import { serve } from './process/serve.ts';
import { argumentOutput } from './process/service-arguments.ts';
import { startWebhooks } from './process/webhooks.ts';
import { EXIT } from './std/base-errors.ts';

/** npm forwards SIGINT after the terminal has sent it: one Ctrl-C arrives twice. */
const SAME_KEYSTROKE_MS = 500;
/** Maximum stop notice, maximum drain, and time to stop the embedded database. */
const SHUTDOWN_MS_MAX = 120_000 + 300_000 + 40_000;
/** Time for the embedded database to stop after a second signal. */
const FORCED_STOP_MS = 2_000;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

const lifecycle = new Lifecycle();
let release = async (): Promise<void> => {};
let wasBannerShown = false;
/** Logs the end of the process, so that it does not look like a crash. */
let logger: Logger | null = null;

// Without a listener, a failed write (full disk, closed terminal) would end the process.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

/** Starts the metrics on a separate port. */
async function openMetrics(config: Config, log: Log): Promise<Metrics | undefined> {
  if (config.METRICS_PORT === undefined) return undefined;
  const metrics = metricsOf(log);
  const { METRICS_PORT: port, METRICS_HOST: host } = config;
  const server = await serveMetrics(metrics.registry, { port, host });
  lifecycle.onShutdown(() => server.close());
  log.logger.info(`metrics are at ${addressOf(host, server.port)}/metrics`);
  return metrics;
}

/**
 * Logs misspelt settings. Variables of other programs must not prevent a start.
 * @throws ConfigError for a misspelt DATABASE_URL, which would start an embedded database
 */
function checkNames({ logger }: Log, { DATABASE_URL }: Config): void {
  for (const misspelt of misspeltSettings(process.env)) {
    const isDatabase = DATABASE_URL === undefined && misspelt.meant.startsWith('DATABASE_URL');
    if (isDatabase) throw new ConfigError(misspeltText(misspelt));
    logger.warn(misspeltText(misspelt));
  }
}

async function start(): Promise<void> {
  const answer = argumentOutput(process.argv.slice(2));
  if (answer !== null) {
    process.stdout.write(answer);
    return;
  }
  const settings = readConfig();
  const log = openLog({ level: settings.LOG_LEVEL });
  checkNames(log, settings);
  for (const notice of tlsNotices(settings)) log.logger.info(notice);
  const prepared = await prepare(settings, lifecycle);
  release = prepared.release;
  const { config, database, usageDatabase, webhooksDatabase, bannerData } = prepared;
  logger = log.logger;
  logger.level = config.LOG_LEVEL;
  const metrics = await openMetrics(config, log);
  const onRefusal = (error: ConfigError): void => void end(error);
  const options = { config, database, usageDatabase, logger, metrics, onRefusal };
  const address = await serve(options, lifecycle);
  if (webhooksDatabase !== null) {
    const sender = startWebhooks(webhooksDatabase, config, logger);
    lifecycle.onShutdown(() => sender.stop());
  }
  if (bannerData === null) return;
  // After the service listens: a failed start must not create a key.
  const { key } = await prepared.createDemoKey();
  lifecycle.throwIfShuttingDown();
  process.stdout.write(bannerOf({ address, key, ...bannerData }));
  wasBannerShown = true;
}

/** Ends the process with the exit code of an error, unless a signal has ended it. */
async function end(error: unknown): Promise<void> {
  if (lifecycle.isShuttingDown) return;
  report(error);
  await lifecycle.shutDown();
  process.exit(exitCodeOf(error));
}

const starting = start();
const grace = closeWithGrace(
  // Signals are handled below, where a repeated Ctrl-C is detected.
  { delay: SHUTDOWN_MS_MAX, logger: false, skip: [...SIGNALS, 'SIGUSR2', 'beforeExit'] },
  async ({ err }) => {
    lifecycle.isShuttingDown = true;
    if (err) report(err);
    await starting.catch(() => {});
    await lifecycle.shutDown();
    if (!err) logger?.info('the service has stopped');
    // On the terminal that shows the banner.
    if (wasBannerShown && !err) process.stdout.write('The service has stopped.\n');
  },
);

let firstSignalAt: number | null = null;

function endBySignal(): void {
  const now = Date.now();
  if (firstSignalAt === null) {
    firstSignalAt = now;
    void grace.close();
  } else if (now - firstSignalAt > SAME_KEYSTROKE_MS) {
    // A second signal aborts running requests and gives the embedded database a short time.
    void Promise.race([release(), pause(FORCED_STOP_MS)]).finally(() => process.exit(EXIT.failed));
  }
}

for (const signal of SIGNALS) process.on(signal, endBySignal);

try {
  await starting;
} catch (error) {
  // After a signal, the handler ends the process.
  await end(error);
}
