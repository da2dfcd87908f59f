import { resolve } from 'node:path';
import pg from 'pg';
import { driverAddress, tlsNotice } from '../config/addresses.ts';
import { type Config, ConfigError } from '../config/config.ts';
import { type Client, openClient, type ServerAddress } from '../db/client.ts';
import type { EmbeddedOptions } from '../db/embedded/embedded.ts';
import { passwordReader } from './environment.ts';

/** The database that the settings name. */
export interface ChosenDatabase extends ServerAddress {
  readonly isEmbedded: boolean;
  readonly notice: string | null;
  /** Releases an embedded server; the last process that releases it stops it. */
  release(): Promise<void>;
}

/**
 * Returns DATABASE_URL, or else the address of the embedded PostgreSQL of DATA_DIR, which it starts
 * unless it runs.
 * @param onOpen called with `starts` or `runs`, before the embedded server is used
 * @throws ConfigError in production without DATABASE_URL
 */
export async function chooseDatabase(
  config: Config,
  onOpen: NonNullable<EmbeddedOptions['onOpen']> = () => {},
): Promise<ChosenDatabase> {
  if (config.DATABASE_URL !== undefined) {
    return {
      url: driverAddress(config.DATABASE_URL, process.env),
      password: passwordReader('main'),
      isEmbedded: false,
      notice: null,
      release: async () => {},
    };
  }
  if (process.env['NODE_ENV'] === 'production') {
    throw new ConfigError(
      'DATABASE_URL: must be set with NODE_ENV=production; the embedded database is only for ' +
        'trials and development',
    );
  }
  const { openEmbedded } = await import('../db/embedded/embedded.ts');
  const { url, notice, release } = await openEmbedded(config.DATA_DIR, { onOpen });
  return { url, isEmbedded: true, notice, release };
}

/** The server of USAGE_DATABASE_URL with its account; undefined if it is not set. */
export function usageDatabase({ USAGE_DATABASE_URL: url }: Config): ServerAddress | undefined {
  if (url === undefined) return undefined;
  return { url: driverAddress(url, process.env), password: passwordReader('usage') };
}

/** A line for each address whose TLS mode the driver makes stricter. */
export const tlsNotices = (config: Config): string[] =>
  (['DATABASE_URL', 'USAGE_DATABASE_URL'] as const).flatMap(
    (name) => tlsNotice(name, config[name] ?? '', process.env) ?? [],
  );

/** Names a database without secrets: `prices at db.example:5432`, or its folder if embedded. */
export function databaseName({ url, isEmbedded }: ChosenDatabase, config: Config): string {
  if (isEmbedded) return `embedded in ${resolve(config.DATA_DIR)}`;
  // The driver adds what the address omits: PGHOST, PGPORT and PGDATABASE.
  const { database, host, port } = new pg.Client({ connectionString: url });
  return `${database} at ${host}:${port}`;
}

/** Opens a writing client without a statement timeout, for commands. */
export function openWriter({ url, password }: ServerAddress, config: Config): Client {
  return openClient({
    url,
    password,
    connectionsMax: 2,
    acquireTimeoutMs: Math.max(10_000, config.DATABASE_ACQUIRE_TIMEOUT_MS),
    statementTimeoutMs: 0,
    lockTimeoutMs: config.LOAD_LOCK_TIMEOUT_MS,
    readOnly: false,
    applicationName: 'commodity-prices command',
  });
}
