import cluster from 'node:cluster';
import { setTimeout as pause } from 'node:timers/promises';
import closeWithGrace from 'close-with-grace';
import type { Logger } from 'pino';
import type { Config } from './config/config.ts';
import { misspeltSettings } from './config/environment.ts';
import { tracingSettingsOf } from './config/tracing.ts';
import { answerToPrimary, type Metrics, metricsOf } from './metrics/metrics.ts';
import { addressOf, bannerOf } from './process/banner.ts';
import { readConfig } from './process/environment.ts';
import { EXIT, exitCodeOf, report } from './process/failure.ts';
import { Life } from './process/life.ts';
import { type Log, openLog } from './process/log.ts';
import { serveMetrics } from './process/metrics-server.ts';
import { Heritage } from './process/passing.ts';
import { prepare } from './process/prepare.ts';
import { serve } from './process/serve.ts';
import { answerToArguments } from './process/service-arguments.ts';
import { openTraces } from './process/tracing.ts';
import { serveByWorkers, WorkerFailed, type Workers } from './process/workers.ts';

/** npm passes on the Ctrl-C that the terminal sent us already: one keystroke arrives twice. */
const SAME_KEYSTROKE_MS = 500;
/** The longest notice and the longest drain, and time for the database to stop. */
const END_MS_MAX = 120_000 + 300_000 + 40_000;
/** What a second signal leaves the embedded database. */
const HASTE_MS = 2_000;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

const life = new Life();
let release = async (): Promise<void> => {};
let workers: Workers | null = null;
/** True if a person was shown that it runs. */
let isShown = false;
/** The end is logged: a log collector takes a process that just ends for a crash. */
let logger: Logger | null = null;

// Without a listener a failed write, as on a full disk or to a closed terminal, ends the process.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

/** Counts from now on, and tells it on a port of its own, or to the process that owns the port. */
async function openMetrics(config: Config, log: Log): Promise<Metrics | undefined> {
  if (config.METRICS_PORT === undefined) return undefined;
  const metrics = metricsOf(log);
  if (cluster.isWorker) {
    life.atEnd(answerToPrimary(metrics));
    return metrics;
  }
  const { METRICS_PORT: port, METRICS_HOST: host } = config;
  const server = await serveMetrics(async () => metrics.registry, { port, host });
  life.atEnd(() => server.close());
  log.logger.info(`metrics are at ${addressOf(host, server.port)}/metrics`);
  return metrics;
}

const openLogOf = ({ LOG_LEVEL: level, LOG_BUFFER_BYTES_MAX: bytesMax }: Config): Log =>
  openLog({ level, bytesMax });

/** One of several processes that answer: the first one has found the database for all. */
async function startWorker(): Promise<void> {
  const config = readConfig();
  const { DATABASE_URL: url = '', USAGE_DATABASE_URL: usageUrl } = config;
  const log = openLogOf(config);
  const { logger } = log;
  const metrics = await openMetrics(config, log);
  const heritage = new Heritage();
  heritage.listen(endBySignal);
  const tracing = await openTraces(logger, life);
  await serve({ config, url, usageUrl, logger, metrics, tracing, heritage }, life);
}

/** Before anything is done: a misspelt DATABASE_URL would start a database of our own. */
function tellMisspelt({ logger }: Log): void {
  for (const { given, meant } of misspeltSettings(process.env)) {
    logger.warn(`${given} is no setting of the service and does nothing; did you mean ${meant}?`);
  }
}

async function start(): Promise<void> {
  const answer = answerToArguments(process.argv.slice(2));
  if (answer !== null) {
    process.stdout.write(answer);
    return;
  }
  const given = readConfig();
  const log = openLogOf(given);
  tellMisspelt(log);
  // A wrong one is told before a database is made.
  tracingSettingsOf(process.env);
  const prepared = await prepare(given, life);
  release = prepared.release;
  const { config, url, usageUrl, own } = prepared;
  logger = log.logger;
  logger.level = config.LOG_LEVEL;
  let address: string;
  if (config.WORKERS > 0) {
    ({ address, workers } = await serveByWorkers(prepared, logger, life));
    const subject = config.WORKERS === 1 ? '1 worker answers' : `${config.WORKERS} workers answer`;
    logger.info(`${subject} at ${address}`);
  } else {
    const metrics = await openMetrics(config, log);
    const tracing = await openTraces(logger, life);
    address = await serve({ config, url, usageUrl, logger, metrics, tracing }, life);
  }
  if (own === null) return;
  // Not before it listens: a start on a taken port would leave a key that nobody was shown.
  const { key, others } = await prepared.demoKey(address);
  life.checkpoint();
  process.stdout.write(bannerOf({ address, key, others, ...own }));
  isShown = true;
}

/** Tells who was shown the banner that the service is gone; a terminal may be gone before it. */
function tellStopped(): void {
  process.stdout.write('The service has stopped.\n');
}

const starting = cluster.isWorker ? startWorker() : start();
const grace = closeWithGrace(
  // Signals are handled below, so that one keystroke that arrives twice is one.
  { delay: END_MS_MAX, logger: false, skip: [...SIGNALS, 'SIGUSR2', 'beforeExit'] },
  async ({ err }) => {
    life.isEnding = true;
    if (err) report(err);
    await starting.catch(() => {});
    await life.end();
    if (!err) logger?.info('the service has stopped');
    if (isShown && !err) tellStopped();
  },
);

let firstSignalAt: number | null = null;

function endBySignal(): void {
  const now = Date.now();
  if (firstSignalAt === null) {
    firstSignalAt = now;
    life.isBySignal = true;
    void grace.close();
  } else if (now - firstSignalAt > SAME_KEYSTROKE_MS) {
    // At once: running answers are cut; the embedded database gets the moment that it needs.
    workers?.kill();
    void Promise.race([release(), pause(HASTE_MS)]).finally(() => process.exit(EXIT.failed));
  }
}

for (const signal of SIGNALS) {
  process.on(signal, () => {
    // A terminal tells every process; who answers for the workers tells them by SIGTERM.
    if (cluster.isWorker && signal !== 'SIGTERM') return;
    if (signal === 'SIGHUP' && workers !== null) void workers.replaceAll();
    else endBySignal();
  });
}

try {
  await starting;
} catch (error) {
  // After a signal the handler ends the process; before one, the failure does.
  if (!life.isEnding) {
    // The worker has said why.
    if (!(error instanceof WorkerFailed)) report(error);
    await life.end();
    process.exit(error instanceof WorkerFailed ? error.exitCode : exitCodeOf(error));
  }
}
