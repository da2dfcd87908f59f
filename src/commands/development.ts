import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { Client } from '../db/client.ts';
import { type ExamplePrice, examplePrice } from '../db/example.ts';
import { migrateUp } from '../db/migrate.ts';
import { applyRoles, type Login, ROLE_PREFIX, roleName } from '../db/roles.ts';
import { lacksSamples, seed } from '../db/seed/seed.ts';

/** Whether the settings say how tokens are checked. */
const hasTokenSetting = (config: Config): boolean =>
  [config.JWT_SECRET, config.JWT_PUBLIC_KEY_FILE, config.JWT_JWKS_URL].some((each) => each);

/** A secret of this data folder, made once and kept there. */
async function ownSecret(dataDir: string, name: string): Promise<string> {
  const file = join(dataDir, name);
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  await mkdir(dataDir, { recursive: true });
  await writeFile(draft, `${randomBytes(48).toString('base64url')}\n`, { mode: 0o600 });
  try {
    // A link fails where a secret is: two starts at once agree on one, and it is never half there.
    await link(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(draft);
  }
  return (await readFile(file, 'utf8')).trim();
}

/**
 * The secret that signs development tokens. Only the service that runs its own database uses it,
 * and only when no JWT setting is given.
 */
const developmentSecret = (dataDir: string): Promise<string> => ownSecret(dataDir, 'jwt-secret');

/** The settings with the development secret, where the service may have one by itself. */
export async function withDevelopmentSecret(config: Config): Promise<Config> {
  if (config.DATABASE_URL !== undefined || hasTokenSetting(config)) return config;
  return Object.freeze({ ...config, JWT_SECRET: await developmentSecret(config.DATA_DIR) });
}

/** The embedded database, ready to be read. */
interface Prepared {
  /** Its address with the account that reads and does nothing else. */
  readonly url: string;
  /** Its address with the account that notes use. */
  readonly usageUrl: string;
  /** A price to ask for; null when there is none. */
  readonly example: ExamplePrice | null;
}

/**
 * Brings the embedded database to where the service can answer: newest schema, the accounts, and
 * the sample data unless they were loaded before or the database holds others.
 * @param url its address with the account that may do everything
 * @param tell told of what takes its time
 */
export async function prepareEmbedded(
  client: Client,
  url: string,
  dataDir: string,
  tell: (step: string) => void,
): Promise<Prepared> {
  await migrateUp(client.db);
  // The same password at every start: another service may be running on this database.
  const passwords = {
    service: await ownSecret(dataDir, 'service-password'),
    usage: await ownSecret(dataDir, 'usage-password'),
  };
  await applyRoles(
    client.db,
    ROLE_PREFIX,
    new Map<Login, string>([
      ['service', passwords.service],
      ['usage', passwords.usage],
    ]),
  );
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
