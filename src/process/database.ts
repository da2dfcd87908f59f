import { serverAddressesOf } from '../config/addresses.ts';
import type { Config } from '../config/config.ts';
import { type Client, openClient } from '../db/client.ts';
import type { EmbeddedOptions } from '../db/embedded/embedded.ts';

/** The database that the settings name. */
export interface ChosenDatabase {
  readonly url: string;
  readonly isEmbedded: boolean;
  readonly notice: string | null;
  /** Gives an embedded server back; the last user stops it. */
  release(): Promise<void>;
}

/**
 * DATABASE_URL, else the embedded PostgreSQL of DATA_DIR: the one that runs, or a new one.
 * @param onOpen told which of these two it is
 */
export async function chooseDatabase(
  config: Config,
  onOpen: NonNullable<EmbeddedOptions['onOpen']> = () => {},
): Promise<ChosenDatabase> {
  if (config.DATABASE_URL !== undefined) {
    return {
      url: config.DATABASE_URL,
      isEmbedded: false,
      notice: null,
      release: async () => {},
    };
  }
  const { openEmbedded } = await import('../db/embedded/embedded.ts');
  const { url, notice, release } = await openEmbedded(config.DATA_DIR, { onOpen });
  return { url, isEmbedded: true, notice, release };
}

/** A pool that may write and whose statements may take their time: for commands. */
export function openWriter(address: string, config: Config): Client {
  const [url = address, ...others] = serverAddressesOf(address);
  return openClient({
    url,
    others,
    connectionsMax: 2,
    acquireTimeoutMs: Math.max(10_000, config.DATABASE_ACQUIRE_TIMEOUT_MS),
    statementTimeoutMs: 0,
    lockTimeoutMs: config.LOAD_LOCK_TIMEOUT_MS,
    readOnly: false,
    applicationName: 'commodity-prices command',
  });
}
