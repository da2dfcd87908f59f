import { type ChosenDatabase, chooseDatabase, openWriter } from '../commands/database.ts';
import { prepareEmbedded, withDevelopmentSecret } from '../commands/development.ts';
import { isGiven } from '../commands/environment.ts';
import type { Config } from '../config.ts';
import type { Client } from '../db/client.ts';
import type { ExamplePrice } from '../db/example.ts';
import { type DemoKey, endDemoKey, renewDemoKey } from './demo-key.ts';
import type { Life } from './life.ts';

/** A database that can be served from, and the settings that hold with it. */
export interface Prepared {
  readonly config: Config;
  /** The database as the service reads it. */
  readonly url: string;
  readonly usageUrl: string | undefined;
  /** What a terminal is told of a database of our own; null of any other. */
  readonly own: { readonly example: ExamplePrice | null; readonly notice: string | null } | null;
  /** Makes the key that the terminal shows for the address that is listened on. */
  demoKey(address: string): Promise<DemoKey>;
  /** Stops a database of our own. */
  release(): Promise<void>;
}

/** Tells what takes its time before the banner, on a first start above all. */
const tell = (step: string): void => {
  process.stderr.write(`${step} …\n`);
};

/** Does what writes to the embedded database: the service itself only reads. */
async function withWriter<T>(
  chosen: ChosenDatabase,
  config: Config,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const writer = openWriter(chosen.url, config);
  try {
    return await work(writer);
  } finally {
    await writer.close();
  }
}

/** The level that was asked for; beside the banner of a terminal only what went wrong. */
function withLevel(config: Config, isEmbedded: boolean): Config {
  const isQuiet = isEmbedded && process.stdout.isTTY === true && !isGiven('LOG_LEVEL');
  return isQuiet ? ({ ...config, LOG_LEVEL: 'warn' } as Config) : config;
}

/** Finds the database that the settings name, or starts and fills the embedded one. */
export async function prepare(given: Config, life: Life): Promise<Prepared> {
  const chosen = await chooseDatabase(given, (step) => {
    const what = step === 'starts' ? 'Starting PostgreSQL' : 'Using the PostgreSQL that runs';
    tell(`${what} in ${given.DATA_DIR}`);
  });
  const release = () => chosen.release();
  life.atEnd(release);
  life.checkpoint();
  const config = withLevel(await withDevelopmentSecret(given), chosen.isEmbedded);
  let ownKey: DemoKey | null = null;
  const demoKey = async (address: string): Promise<DemoKey> => {
    ownKey = await withWriter(chosen, config, (writer) => renewDemoKey(writer, address));
    return ownKey;
  };
  // After the last answer, since what is begun later is undone first.
  life.atEnd(async () => {
    if (ownKey === null) return;
    const { id } = ownKey;
    // A database that was stopped meanwhile is no news here.
    await withWriter(chosen, config, (writer) => endDemoKey(writer, id)).catch(() => {});
  });
  if (!chosen.isEmbedded) {
    const usageUrl = config.USAGE_DATABASE_URL;
    return { config, url: chosen.url, usageUrl, own: null, demoKey, release };
  }
  const { url, usageUrl, example } = await withWriter(chosen, config, (writer) =>
    prepareEmbedded(writer, chosen.url, config.DATA_DIR, tell),
  );
  life.checkpoint();
  return { config, url, usageUrl, own: { example, notice: chosen.notice }, demoKey, release };
}
