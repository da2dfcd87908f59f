import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import type { Client } from '../db/client.ts';
import { isSchemaCurrent } from '../db/migrate/migrations.ts';
import { requireOwnSessions } from '../process/check-database.ts';
import {
  type ChosenDatabase,
  chooseDatabase,
  databaseName,
  openWriter,
  tlsNotices,
} from '../process/database.ts';
import { readCommandConfig } from '../process/environment.ts';
import { report } from '../process/failure.ts';
import { UsageError } from '../std/base-errors.ts';
import { PROGRAM } from '../std/program.ts';
import { openProgress, type Progress } from './progress.ts';

interface SignalHandlers {
  happened(): boolean;
  removeHandlers(): void;
}

/** Time for aborted work to cancel its statement on the server. */
const ABORT_MS = 1_000;

const NUMBERS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const;

/**
 * Exits on a signal, after the embedded server is released. The transaction of an interrupted
 * command rolls back with its connection.
 */
function releaseOnSignal(release: () => Promise<void>): SignalHandlers {
  const names = Object.keys(NUMBERS) as (keyof typeof NUMBERS)[];
  let happened = false;
  const onSignal = (name: NodeJS.Signals): void => {
    if (happened) return;
    happened = true;
    const code = 128 + NUMBERS[name as keyof typeof NUMBERS];
    // After SIGHUP the terminal is closed: the failed write must not prevent the release.
    process.stderr.on('error', () => {});
    process.stderr.write(
      `commodity-prices: ended by ${name}; what it was writing is there whole or not at all\n`,
    );
    release()
      .catch(report)
      .finally(() => process.exit(code));
  };
  for (const name of names) process.on(name, onSignal);
  return {
    happened: () => happened,
    removeHandlers: () => {
      for (const name of names) process.removeListener(name, onSignal);
    },
  };
}

/** The open database and the tools of a command. */
export interface Work {
  readonly client: Client;
  readonly db: Client['db'];
  readonly config: Config;
  /** Aborted by Ctrl-C, shortly before the process exits. */
  readonly signal: AbortSignal;
  readonly progress: Progress;
}

interface DatabaseNeeds {
  /** False if the command does not require the schema of this version. */
  readonly schema?: boolean;
  /** True if the command prints only errors, and so does not name the database. */
  readonly quiet?: boolean | undefined;
}

/** Checks the schema version; the embedded database is migrated. @throws UsageError */
async function requireSchema(client: Client, chosen: ChosenDatabase): Promise<void> {
  if (await isSchemaCurrent(client.db)) return;
  if (!chosen.isEmbedded) {
    throw new UsageError(
      `DATABASE_URL: the schema is not this version’s; run: ${PROGRAM} db migrate`,
    );
  }
  const { migrateUp } = await import('../db/migrate/migrate.ts');
  await migrateUp(client.db);
}

/**
 * Runs the work of a command on the database of the settings, which it names on stderr, and always
 * releases the database.
 * @throws UsageError if the schema of DATABASE_URL is not that of this version
 */
export async function withDatabase<T>(
  work: (given: Work) => Promise<T>,
  { schema = true, quiet = false }: DatabaseNeeds = {},
): Promise<T> {
  const config = readCommandConfig();
  const opening = chooseDatabase(config);
  const controller = new AbortController();
  const worked = Promise.withResolvers<void>();
  const interruption = releaseOnSignal(async () => {
    const { release } = await opening;
    controller.abort();
    await Promise.race([worked.promise, pause(ABORT_MS)]);
    await release();
  });
  try {
    const chosen = await opening;
    if (chosen.notice) process.stderr.write(`${chosen.notice}\n`);
    if (!quiet) {
      const lines = [`Database: ${databaseName(chosen, config)}`, ...tlsNotices(config)];
      process.stderr.write(`${lines.join('\n')}\n`);
    }
    const client = openWriter(chosen, config);
    const progress = openProgress();
    try {
      if (!chosen.isEmbedded) await requireOwnSessions(client, 'DATABASE_URL');
      if (schema) await requireSchema(client, chosen);
      return await work({ client, db: client.db, config, signal: controller.signal, progress });
    } finally {
      progress.end();
      await client.close();
      worked.resolve();
      await chosen.release();
    }
  } finally {
    // After a signal, its handler exits the process; errors caused by the signal are not reported.
    if (interruption.happened()) await new Promise(() => {});
    interruption.removeHandlers();
  }
}
