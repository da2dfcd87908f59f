import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config/config.ts';

/** True if the settings say how tokens are checked. */
const hasTokenSetting = (config: Config): boolean =>
  [config.JWT_SECRET, config.JWT_PUBLIC_KEY_FILE, config.JWT_JWKS_URL].some((each) => each);

/** A secret of this data folder, made once and kept there. */
export async function ownSecret(dataDir: string, name: string): Promise<string> {
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
