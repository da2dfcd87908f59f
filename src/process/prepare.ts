import { createKey, revokeKey } from '../auth/keys/keys.ts';
import { ALL_MARKETS } from '../catalog/scopes.ts';
import type { Config } from '../config/config.ts';
import type { Client, ServerAddress } from '../db/client.ts';
import { migrateUp } from '../db/migrate/migrate.ts';
import { isAhead } from '../db/migrate/migrations.ts';
import { applyRoles, type Login, ROLE_PREFIX, roleName } from '../db/migrate/roles.ts';
import { examplePrice, lacksSamples, seed } from '../db/seed/seed.ts';
import type { BannerData } from './banner.ts';
import { type ChosenDatabase, chooseDatabase, openWriter, usageDatabase } from './database.ts';
import { isSet, ownSecret, withDevelopmentSecret } from './environment.ts';
import type { Lifecycle } from './lifecycle.ts';

const DEMO_NAME = 'demo';
const DEMO_LIFETIME_MS = 24 * 3_600_000;
const DEMO_OWNER = 'made at the start without DATABASE_URL';

/** The id and the text of a demo key. */
interface DemoKey {
  readonly id: string;
  readonly key: string;
}

/**
 * Creates a key with all markets, valid for 24 hours, and revokes the keys of killed services.
 * Called once the service listens: a failed start must not create a key.
 */
async function renewDemoKey({ db }: Client): Promise<DemoKey> {
  const own = await createKey(db, {
    name: DEMO_NAME,
    owner: DEMO_OWNER,
    scopes: [ALL_MARKETS],
    expiresAt: new Date(Date.now() + DEMO_LIFETIME_MS),
  });
  // A key from before the start of this server belongs to a service that has ended.
  const left = await db
    .selectFrom('api_key')
    .select('public_id as id')
    .where('name', '=', DEMO_NAME)
    .where('owner', 'like', `${DEMO_OWNER}%`)
    .where('revoked_at', 'is', null)
    .where(({ eb, fn }) => eb('created_at', '<', fn<string>('pg_postmaster_start_time')))
    .execute();
  for (const { id } of left) await revokeKey(db, id, 'a later start created another key');
  return own;
}

/** A database that is ready for the service, and the settings to use with it. */
interface Prepared {
  readonly config: Config;
  /** The server with the account of the service, which only reads. */
  readonly database: ServerAddress;
  /** The primary with the account for usage data. */
  readonly usageDatabase: ServerAddress | undefined;
  /** The embedded database with the account that sends webhooks; null for another database. */
  readonly webhooksDatabase: ServerAddress | null;
  /** Data for the banner; null if the database is not embedded. */
  readonly bannerData: Pick<BannerData, 'example' | 'notice'> | null;
  /** Creates the demo key of a service that listens. */
  createDemoKey(): Promise<DemoKey>;
  /** Releases the embedded database. */
  release(): Promise<void>;
}

/** Prints a slow step of the start: the first start takes several seconds. */
const printStep = (step: string): void => {
  process.stderr.write(`${step} …\n`);
};

/** Runs work with an account that may write; the service itself only reads. */
async function withWriter<T>(
  chosen: ChosenDatabase,
  config: Config,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const writer = openWriter(chosen, config);
  try {
    return await work(writer);
  } finally {
    await writer.close();
  }
}

/** With a banner on a terminal, the log level defaults to `warn`. */
function withLevel(config: Config, isEmbedded: boolean): Config {
  const isQuiet = isEmbedded && process.stdout.isTTY === true && !isSet('LOG_LEVEL');
  return isQuiet ? ({ ...config, LOG_LEVEL: 'warn' } as Config) : config;
}

/**
 * Prepares the embedded database: runs migrations, creates the accounts, and loads the sample data
 * unless the database has data.
 * @param url address with the superuser
 * @returns the address with each account of the service, and an example price
 */
async function fillEmbedded(client: Client, url: string, dataDir: string) {
  await migrateUp(client.db);
  // Passwords never change, because another service may be running on this database.
  const passwords = {
    service: await ownSecret(dataDir, 'service-password'),
    usage: await ownSecret(dataDir, 'usage-password'),
    webhooks: await ownSecret(dataDir, 'webhooks-password'),
  };
  const logins = Object.entries(passwords) as [Login, string][];
  // A newer version has granted the rights of its schema, which include those of this one.
  if (!(await isAhead(client.db))) {
    await applyRoles(client.db, ROLE_PREFIX, new Map(logins));
  }
  if (await lacksSamples(client.db)) {
    printStep('Loading the sample prices');
    await seed(client);
  }
  const addressOf = (login: keyof typeof passwords): string => {
    const address = new URL(url);
    address.username = roleName(ROLE_PREFIX, login);
    address.password = passwords[login];
    return address.href;
  };
  const example = await examplePrice(client.db);
  const addresses = { usageUrl: addressOf('usage'), webhooksUrl: addressOf('webhooks') };
  return { url: addressOf('service'), ...addresses, example };
}

/** Returns the database of the settings, or starts and prepares the embedded one. */
export async function prepare(settings: Config, lifecycle: Lifecycle): Promise<Prepared> {
  const chosen = await chooseDatabase(settings, (step) => {
    const action = step === 'starts' ? 'Starting PostgreSQL' : 'Using the running PostgreSQL';
    printStep(`${action} in ${settings.DATA_DIR}`);
  });
  const release = () => chosen.release();
  lifecycle.onShutdown(release);
  lifecycle.throwIfShuttingDown();
  const config = withLevel(await withDevelopmentSecret(settings), chosen.isEmbedded);
  let ownKey: DemoKey | null = null;
  const createDemoKey = async (): Promise<DemoKey> => {
    ownKey = await withWriter(chosen, config, renewDemoKey);
    return ownKey;
  };
  // Runs after the drain, because shutdown steps run in reverse order.
  lifecycle.onShutdown(async () => {
    if (ownKey === null) return;
    const { id } = ownKey;
    // The database may be stopped already.
    const revoke = ({ db }: Client) => revokeKey(db, id, 'the service that showed it stopped');
    await withWriter(chosen, config, revoke).catch(() => {});
  });
  if (!chosen.isEmbedded) {
    const shared = { config, webhooksDatabase: null, bannerData: null, createDemoKey, release };
    return { ...shared, database: chosen, usageDatabase: usageDatabase(config) };
  }
  const { url, usageUrl, webhooksUrl, example } = await withWriter(chosen, config, (writer) =>
    fillEmbedded(writer, chosen.url, config.DATA_DIR),
  );
  lifecycle.throwIfShuttingDown();
  const bannerData = { example, notice: chosen.notice };
  return {
    config,
    database: { url },
    usageDatabase: { url: usageUrl },
    webhooksDatabase: { url: webhooksUrl },
    bannerData,
    createDemoKey,
    release,
  };
}
