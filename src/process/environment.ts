import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Config, configOf } from '../config/config.ts';
import {
  misspeltSettings,
  misspeltText,
  REREAD,
  readSecret,
  secretsFromFiles,
} from '../config/environment.ts';
import { SETTINGS } from '../config/settings.ts';

/*
 * The settings of this process: from the environment, the file `.env` and files of secrets, and the
 * secrets that the data folder keeps for a service without settings.
 */

const { default: DATA_DIR } = SETTINGS.DATA_DIR;

/** Folder of the file `.env`: the working directory, else the checkout of the script `prices`. */
function settingsFolder(): string {
  const home = process.env['PRICES_HOME'];
  return existsSync('.env') || !home ? '' : home;
}

/**
 * Reads the settings: environment variables, with the file `.env` as defaults. A DATA_DIR from that
 * file, or the default one, is relative to the folder of the file. Secrets from files become
 * environment variables. Files of passwords are only checked: `passwordReader` reads them.
 * @param isStrict true to reject variables whose names are similar to those of settings
 * @throws ConfigError with a line for each invalid variable
 */
export function readConfig(isStrict = false): Config {
  const folder = settingsFolder();
  const file = join(folder, '.env');
  const dataDir = process.env['DATA_DIR'];
  if (existsSync(file)) process.loadEnvFile(file);
  if (folder !== '' && !dataDir) {
    process.env['DATA_DIR'] = resolve(folder, process.env['DATA_DIR'] || DATA_DIR);
  }
  const { secrets, faults } = secretsFromFiles(process.env);
  for (const [name, secret] of secrets) {
    if (REREAD.includes(name)) continue;
    process.env[name] = secret;
    // Empty instead of deleted: reading `.env` again would set a deleted variable.
    process.env[`${name}_FILE`] = '';
  }
  const misspelt = isStrict ? misspeltSettings(process.env).map(misspeltText) : [];
  return configOf(process.env, [...faults, ...misspelt]);
}

/**
 * Reads the settings of a command. Without the misspelt one, it could change another database.
 * @throws ConfigError with a line for each invalid or misspelt variable
 */
export const readCommandConfig = (): Config => readConfig(true);

/** True if the environment has a value for a setting. */
export const isSet = (name: keyof Config): boolean => (process.env[name] ?? '') !== '';

/** The password of one account, or a function that reads it from its file. */
function passwordOf(name: string): (() => string) | undefined {
  const { [name]: password, [`${name}_FILE`]: file } = process.env;
  if (file) return () => readSecret(`${name}_FILE`, file);
  return password ? () => password : undefined;
}

/**
 * A function that returns the password of an account for one connection. It reads the file again
 * each time, so that a changed password, or a token of some minutes, needs no restart. Undefined if
 * no password is set: the driver then takes that of the address.
 * @param account `usage` for the account of USAGE_DATABASE_URL, which shares the password of
 *   DATABASE_URL unless it has its own
 */
export const passwordReader = (account: 'main' | 'usage'): (() => string) | undefined =>
  (account === 'usage' ? passwordOf('USAGE_PGPASSWORD') : undefined) ?? passwordOf('PGPASSWORD');

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

/** Adds the development secret to the settings if neither a database nor a JWT setting is given. */
export async function withDevelopmentSecret(config: Config): Promise<Config> {
  if (config.DATABASE_URL !== undefined || hasTokenSetting(config)) return config;
  return Object.freeze({ ...config, JWT_SECRET: await ownSecret(config.DATA_DIR, 'jwt-secret') });
}
