import cluster from 'node:cluster';
import { setTimeout as pause } from 'node:timers/promises';
import closeWithGrace from 'close-with-grace';
import type { Logger } from 'pino';
import { addressOf, bannerOf } from './commands/banner.ts';
import { readConfig } from './commands/environment.ts';
import { EXIT, exitCodeOf, report } from './commands/failure.ts';
import { answerToArguments } from './commands/service-arguments.ts';
import { misspeltSettings } from './config/misspelt.ts';
import { tracingSettingsOf } from './config/tracing.ts';
import type { Config } from './config.ts';
import { answerToPrimary } from './metrics/cluster.ts';
import { type Metrics, metricsOf } from './metrics/metrics.ts';
import { loggerOf } from './plugins/log.ts';
import { Life } from './server/life.ts';
import { serveMetrics } from './server/metrics-server.ts';
import { Heritage } from './server/passing.ts';
import { prepare } from './server/prepare.ts';
import { serveByWorkers } from './server/primary.ts';
import { serve } from './server/serve.ts';
import { Together } from './server/together.ts';
import { openTraces } from './server/tracing.ts';
import { WorkerFailed, type Workers } from './server/workers.ts';

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
/** Whether a person was shown that it runs. */
let isShown = false;
/** Where the end is told: who collects the log takes a process that just ends for a crash. */
let log: Logger | null = null;

/** Counts from now on, and tells it on a port of its own, or to the process that owns the port. */
async function openMetrics(config: Config, logger: Logger): Promise<Metrics | undefined> {
  if (config.METRICS_PORT === undefined) return undefined;
  const metrics = metricsOf();
  if (cluster.isWorker) {
    life.atEnd(answerToPrimary(metrics));
    return metrics;
  }
  const { METRICS_PORT: port, METRICS_HOST: host } = config;
  const server = await serveMetrics(async () => metrics.registry, { port, host });
  life.atEnd(() => server.close());
  logger.info(`metrics are at ${addressOf(host, server.port)}/metrics`);
  return metrics;
}

/** One of several processes that answer: the first one has found the database for all. */
async function startWorker(): Promise<void> {
  const config = readConfig();
  const { DATABASE_URL: url = '', USAGE_DATABASE_URL: usageUrl } = config;
  const logger = loggerOf(config.LOG_LEVEL, new Together(process.stderr));
  const metrics = await openMetrics(config, logger);
  const heritage = new Heritage();
  heritage.listen(endBySignal);
  const tracing = await openTraces(logger, life);
  await serve({ config, url, usageUrl, logger, metrics, tracing, heritage }, life);
}

/** Before anything is done: a misspelt DATABASE_URL would start a database of our own. */
function tellMisspelt({ LOG_LEVEL }: Config): void {
  const logger = loggerOf(LOG_LEVEL, process.stderr);
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
  tellMisspelt(given);
  // A wrong one is told before a database is made.
  tracingSettingsOf(process.env);
  const prepared = await prepare(given, life);
  release = prepared.release;
  const { config, url, usageUrl, own } = prepared;
  const logger = loggerOf(config.LOG_LEVEL, new Together(process.stderr));
  log = logger;
  let address: string;
  if (config.WORKERS > 0) {
    ({ address, workers } = await serveByWorkers(prepared, logger, life));
    const subject = config.WORKERS === 1 ? '1 worker answers' : `${config.WORKERS} workers answer`;
    logger.info(`${subject} at ${address}`);
  } else {
    const metrics = await openMetrics(config, logger);
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
  process.stdout.on('error', () => {});
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
    if (!err) log?.info('the service has stopped');
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
