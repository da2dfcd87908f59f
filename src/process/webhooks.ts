import { once } from 'node:events';
import type { Logger } from 'pino';
import { type Config, ConfigError } from '../config/config.ts';
import { openClient, type ServerAddress } from '../db/client.ts';
import { isSchemaCurrent } from '../db/migrate/migrations.ts';
import { PROGRAM } from '../std/program.ts';
import { networksOf } from '../webhooks/receiver.ts';
import { Sender } from '../webhooks/sender.ts';
import { chooseDatabase } from './database.ts';
import { openLog } from './log.ts';

/** Connections of a sender: statements are short, so that few are enough for many receivers. */
const CONNECTIONS = 4;
const STATEMENT_MS_MAX = 30_000;
const LOCK_MS_MAX = 2_000;

/** A running sender of webhooks. */
interface RunningSender {
  stop(): Promise<void>;
}

/** Opens the connections of a sender. */
const openDatabase = ({ url, password }: ServerAddress, config: Config, logger: Logger) =>
  openClient({
    url,
    password,
    connectionsMax: CONNECTIONS,
    acquireTimeoutMs: Math.max(10_000, config.DATABASE_ACQUIRE_TIMEOUT_MS),
    statementTimeoutMs: STATEMENT_MS_MAX,
    lockTimeoutMs: LOCK_MS_MAX,
    readOnly: false,
    applicationName: 'commodity-prices webhooks',
    onError: (error) => logger.debug({ err: error }, 'a connection to the database was lost'),
  });

type Opened = ReturnType<typeof openDatabase>;

/** Starts a sender on an open database. */
function start(client: Opened, config: Config, logger: Logger): Sender {
  const sender = new Sender({
    db: client.db,
    publicUrl: config.PUBLIC_URL,
    graceMinutes: config.LATE_GRACE_MINUTES,
    networks: networksOf(config.WEBHOOK_NETWORKS),
    log: ({ level, text, details }) => logger[level](details, text),
  });
  sender.start();
  return sender;
}

/** Sends the webhooks of a database until it is stopped. */
export function startWebhooks(
  database: ServerAddress,
  config: Config,
  logger: Logger,
): RunningSender {
  const client = openDatabase(database, config, logger);
  const sender = start(client, config, logger);
  return {
    stop: async () => {
      await sender.stop();
      await client.close();
    },
  };
}

/**
 * Sends the webhooks of the database of the settings until SIGINT, SIGTERM or SIGHUP.
 * @throws ConfigError if the schema is not that of this version, and errors of the database
 */
export async function runWebhooks(config: Config): Promise<void> {
  const ended = new AbortController();
  const { signal } = ended;
  const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'].map((name) => once(process, name, { signal }));
  const stopped = Promise.race(signals);
  // A start that fails ends before a signal.
  for (const each of [stopped, ...signals]) each.catch(() => {});
  const { logger } = openLog({ level: config.LOG_LEVEL });
  const chosen = await chooseDatabase(config);
  const client = openDatabase(chosen, config, logger);
  try {
    if (!(await isSchemaCurrent(client.db))) {
      throw new ConfigError(
        `DATABASE_URL: the schema is not this version’s; run: ${PROGRAM} db migrate`,
      );
    }
    const sender = start(client, config, logger);
    logger.info('webhooks are sent');
    await stopped;
    await sender.stop();
    logger.info('the sender of webhooks has stopped');
  } finally {
    ended.abort();
    await client.close();
    await chosen.release();
  }
}
