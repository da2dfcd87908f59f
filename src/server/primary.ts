import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { addressOf } from '../commands/banner.ts';
import type { Config } from '../config.ts';
import { clusterExposition } from '../metrics/cluster.ts';
import type { Life } from './life.ts';
import { serveMetrics } from './metrics-server.ts';
import type { Prepared } from './prepare.ts';
import { hearWorkers } from './told-once.ts';
import { Workers } from './workers.ts';

const PROGRAM = fileURLToPath(new URL('../server.ts', import.meta.url));
/** Beyond the drain of a worker: its connections to the database, and its metrics. */
const END_MARGIN_MS = 15_000;

/** What a worker is told besides the settings: what this process found out for all of them. */
function environmentOf({ url, usageUrl, config }: Prepared): Record<string, string> {
  return {
    DATABASE_URL: url,
    LOG_LEVEL: config.LOG_LEVEL,
    ...(usageUrl === undefined ? {} : { USAGE_DATABASE_URL: usageUrl }),
    ...(config.JWT_SECRET === undefined ? {} : { JWT_SECRET: config.JWT_SECRET }),
  };
}

/** Tells the metrics of all workers together, on the port of their own. */
async function tellMetrics(config: Config, logger: Logger, life: Life): Promise<void> {
  if (config.METRICS_PORT === undefined) return;
  const { METRICS_PORT: port, METRICS_HOST: host } = config;
  const exposition = clusterExposition();
  const server = await serveMetrics(async () => exposition, { port, host });
  life.atEnd(() => server.close());
  logger.info(`metrics are at ${addressOf(host, server.port)}/metrics`);
}

/** Has workers serve; returns their address, and how to replace or end them. */
export async function serveByWorkers(
  prepared: Prepared,
  logger: Logger,
  life: Life,
): Promise<{ readonly address: string; readonly workers: Workers }> {
  const { config } = prepared;
  await tellMetrics(config, logger, life);
  hearWorkers(logger);
  const workers = new Workers({
    count: config.WORKERS,
    program: PROGRAM,
    env: environmentOf(prepared),
    endMs: config.STOP_NOTICE_MS + config.SHUTDOWN_TIMEOUT_MS + END_MARGIN_MS,
    logger,
  });
  life.atEnd(() => workers.stop());
  const port = await workers.start();
  return { address: addressOf(config.HOST, port), workers };
}
