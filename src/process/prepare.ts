import { listKeys } from '../auth/keys/info.ts';
import { createKey, revokeKey } from '../auth/keys/keys.ts';
import { ALL_MARKETS } from '../catalog/scopes.ts';
import type { Config } from '../config/config.ts';
import type { Client } from '../db/client.ts';
import { isAlive, ownIdentity } from '../db/embedded/process.ts';
import { migrateUp } from '../db/migrate/migrate.ts';
import { applyRoles, type Login, ROLE_PREFIX, roleName } from '../db/migrate/roles.ts';
import { type ExamplePrice, examplePrice, lacksSamples, seed } from '../db/seed/seed.ts';
import { type ChosenDatabase, chooseDatabase, openWriter } from './database.ts';
import { ownSecret, withDevelopmentSecret } from './development.ts';
import { isGiven } from './environment.ts';
import type { Life } from './life.ts';

const DEMO_NAME = 'demo';
/** The life of a demo key: a service that is killed leaves no key that works for long. */
const DEMO_LIFE_MS = 24 * 3_600_000;
const DEMO_OWNER = 'made at the start without DATABASE_URL';

/** The owner of a demo key: which service shows it, and the process that this service is. */
const ownerOf = (address: string, identity: string): string =>
  `${DEMO_OWNER}, for ${address} of process ${identity}`;

const OWNER_FORM = new RegExp(`^${DEMO_OWNER}(?:, for (\\S+) of process (.+))?$`);

/** The key that the terminal shows, and the other services that run on the same database. */
interface DemoKey {
  readonly id: string;
  readonly key: string;
  readonly others: readonly string[];
}

/**
 * Makes a key for every market, valid for 24 hours, and revokes those of services that have ended.
 * Only for a service that listens, at this address: a start that fails leaves no key behind.
 */
async function renewDemoKey({ db }: Client, address: string): Promise<DemoKey> {
  const keys = await listKeys(db);
  const owner = ownerOf(address, await ownIdentity());
  const { id: ownId, key } = await createKey(db, {
    name: DEMO_NAME,
    owner,
    scopes: [ALL_MARKETS],
    expiresAt: new Date(Date.now() + DEMO_LIFE_MS),
  });
  const others: string[] = [];
  for (const { id, name, owner: of, status } of keys) {
    const form = OWNER_FORM.exec(of ?? '');
    if (name !== DEMO_NAME || form === null || status === 'revoked') continue;
    const [, other, identity] = form;
    if (other !== undefined && (await isAlive(identity ?? ''))) others.push(other);
    else await revokeKey(db, id, 'a later start made another');
  }
  return { id: ownId, key, others };
}

/** Revokes the key of a service that stops. Of one that is killed, the next start does. */
async function endDemoKey({ db }: Client, id: string): Promise<void> {
  await revokeKey(db, id, 'the service that showed it stopped');
}

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

/**
 * Brings the embedded database to where the service can answer: newest schema, the accounts, and
 * the sample data unless they were loaded before or the database holds others. Returns its address
 * with the account that reads and does nothing else, its address with the account that notes use,
 * and a price to ask for.
 * @param url its address with the account that may do everything
 */
async function fillEmbedded(client: Client, url: string, dataDir: string) {
  await migrateUp(client.db);
  // The same password at every start: another service may be running on this database.
  const passwords = {
    service: await ownSecret(dataDir, 'service-password'),
    usage: await ownSecret(dataDir, 'usage-password'),
  };
  const logins = Object.entries(passwords) as [Login, string][];
  await applyRoles(client.db, ROLE_PREFIX, new Map(logins));
  if (await lacksSamples(client.db)) {
    tell('Loading the sample prices');
    await seed(client);
  }
  const addressOf = (login: keyof typeof passwords): string => {
    const address = new URL(url);
    address.username = roleName(ROLE_PREFIX, login);
    address.password = passwords[login];
    return address.href;
  };
  const example = await examplePrice(client.db);
  return { url: addressOf('service'), usageUrl: addressOf('usage'), example };
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
    fillEmbedded(writer, chosen.url, config.DATA_DIR),
  );
  life.checkpoint();
  return { config, url, usageUrl, own: { example, notice: chosen.notice }, demoKey, release };
}
