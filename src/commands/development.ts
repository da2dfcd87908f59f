import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createKey, listKeys, revokeKey } from '../auth/keys.ts';
import { ALL_MARKETS } from '../catalog/scopes.ts';
import type { Config } from '../config.ts';
import type { Client } from '../db/client.ts';
import { type ExamplePrice, examplePrice } from '../db/example.ts';
import { migrateUp } from '../db/migrate.ts';
import { lacksSamples, seed } from '../db/seed.ts';

const DEMO = { name: 'demo', owner: 'made at the start without DATABASE_URL' };

/** Whether the settings say how tokens are checked. */
export const hasTokenSetting = (config: Config): boolean =>
  [config.JWT_SECRET, config.JWT_PUBLIC_KEY_FILE, config.JWT_JWKS_URL].some((each) => each);

/**
 * The secret that signs development tokens, made once and kept in DATA_DIR. Only the service that
 * runs its own database uses it, and only when no JWT setting is given.
 */
export async function developmentSecret(dataDir: string): Promise<string> {
  const file = join(dataDir, 'jwt-secret');
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

/** The settings with the development secret, where the service may have one by itself. */
export async function withDevelopmentSecret(config: Config): Promise<Config> {
  if (config.DATABASE_URL !== undefined || hasTokenSetting(config)) return config;
  return Object.freeze({ ...config, JWT_SECRET: await developmentSecret(config.DATA_DIR) });
}

/**
 * Makes a key for every market and revokes the one of the start before. Only for a service that
 * listens: a start that fails must not take the key of the one that runs.
 */
export async function renewDemoKey({ db }: Client): Promise<string> {
  const keys = await listKeys(db);
  const { key } = await createKey(db, { ...DEMO, scopes: [ALL_MARKETS], expiresAt: null });
  for (const { id, name, owner, status } of keys) {
    if (name === DEMO.name && owner === DEMO.owner && status !== 'revoked') {
      await revokeKey(db, id, 'a later start made another');
    }
  }
  return key;
}

/**
 * Brings the embedded database to where the service can answer: newest schema, and the sample
 * data unless they were loaded before or the database holds others. Returns a price to ask for.
 */
export async function prepareEmbedded(client: Client): Promise<ExamplePrice | null> {
  await migrateUp(client.db);
  if (await lacksSamples(client.db)) await seed(client);
  return examplePrice(client.db);
}
