import type pg from 'pg';
import { initialise, urlOf } from './files.ts';
import { chooseInstallation } from './installation.ts';
import { joinServer, leaveServer, startServer } from './server.ts';

/*
 * The embedded PostgreSQL of development: it is installed with the packages, and the processes of a
 * data folder share one server.
 */

/** A running embedded PostgreSQL, possibly shared with other processes. */
export interface EmbeddedDatabase {
  /** Address of the database, with its password. */
  readonly url: string;
  /** True if this call started the server; false if it was running. */
  readonly started: boolean;
  /** Message for the operator if files are stored outside the data folder, otherwise null. */
  readonly notice: string | null;
  /** Releases the server. The last release stops it. A second call waits for the first. */
  release(): Promise<void>;
}

export interface EmbeddedOptions {
  /** Additional settings of PostgreSQL, used if this call starts it. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Called before a server is started, or before a running one is used. */
  readonly onOpen?: (step: 'starts' | 'runs') => void;
}

/**
 * Opens the PostgreSQL of a data folder. Uses the running server, or starts it, and initialises its
 * files if there are none (a few seconds). Processes with the same folder share the server: each
 * has a session that holds a lock until its release, or its death.
 * @throws EmbeddedDatabaseError if PostgreSQL is not installed or does not start
 */
export async function openEmbedded(
  dataDir: string,
  options: EmbeddedOptions = {},
): Promise<EmbeddedDatabase> {
  const installation = await chooseInstallation(dataDir);
  const running = await joinServer(installation);
  options.onOpen?.(running ? 'runs' : 'starts');
  if (!running) await initialise(installation);
  const { session: first, started } = running
    ? { session: running, started: false }
    : await startServer(installation, options.settings ?? {});

  let session: Promise<pg.Client | null> = Promise.resolve(first);
  let released: Promise<void> | null = null;
  // PostgreSQL ends all sessions when one of them crashed, and continues.
  const renewWhenLost = (current: pg.Client): void => {
    current.once('end', () => {
      if (released) return;
      session = joinServer(installation).catch(() => null);
      void session.then((next) => next && renewWhenLost(next));
    });
  };
  renewWhenLost(first);
  const release = (): Promise<void> => {
    released ??= (async () => {
      const last = (await session) ?? (await joinServer(installation));
      if (last) await leaveServer(installation, last);
    })();
    return released;
  };
  const url = await urlOf(installation, first.port);
  return { url, started, notice: installation.notice, release };
}
