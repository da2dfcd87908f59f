import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config/config.ts';

/** True if a setting defines the keys of tokens. */
const hasTokenSetting = (config: Config): boolean =>
  [config.JWT_SECRET, config.JWT_PUBLIC_KEY_FILE, config.JWT_JWKS_URL].some((each) => each);

/** Reads a secret of the data folder, and creates it first if it is missing. */
export async function ownSecret(dataDir: string, name: string): Promise<string> {
  const file = join(dataDir, name);
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  await mkdir(dataDir, { recursive: true });
  await writeFile(draft, `${randomBytes(48).toString('base64url')}\n`, { mode: 0o600 });
  try {
    // link fails if the file exists, so concurrent starts use one secret, and it is never partial.
    await link(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(draft);
  }
  return (await readFile(file, 'utf8')).trim();
}

/** The secret of development tokens, used only with the embedded database and no JWT setting. */
const developmentSecret = (dataDir: string): Promise<string> => ownSecret(dataDir, 'jwt-secret');

/** Adds the development secret to the settings if neither a database nor a JWT setting is given. */
export async function withDevelopmentSecret(config: Config): Promise<Config> {
  if (config.DATABASE_URL !== undefined || hasTokenSetting(config)) return config;
  return Object.freeze({ ...config, JWT_SECRET: await developmentSecret(config.DATA_DIR) });
}
