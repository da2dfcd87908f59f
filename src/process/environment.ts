import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Config, configOf } from '../config/config.ts';
import { secretsFromFiles } from '../config/environment.ts';
import { SETTINGS } from '../config/settings.ts';

const { default: DATA_DIR } = SETTINGS.DATA_DIR;

/** Folder of the file `.env`: the working directory, else the checkout of the script `prices`. */
function settingsFolder(): string {
  const home = process.env['PRICES_HOME'];
  return existsSync('.env') || !home ? '' : home;
}

/**
 * Reads the settings: environment variables, with the file `.env` as defaults. A DATA_DIR from that
 * file, or the default one, is relative to the folder of the file. Secrets from files become
 * environment variables, because pg and the workers read them there.
 * @throws ConfigError with a line for each invalid variable
 */
export function readConfig(): Config {
  const folder = settingsFolder();
  const file = join(folder, '.env');
  const dataDir = process.env['DATA_DIR'];
  if (existsSync(file)) process.loadEnvFile(file);
  if (folder !== '' && !dataDir) {
    process.env['DATA_DIR'] = resolve(folder, process.env['DATA_DIR'] || DATA_DIR);
  }
  const { secrets, faults } = secretsFromFiles(process.env);
  for (const [name, secret] of secrets) {
    process.env[name] = secret;
    // Empty instead of deleted: reading `.env` again would set a deleted variable.
    process.env[`${name}_FILE`] = '';
  }
  return configOf(process.env, faults);
}

/** True if the environment has a value for a setting. */
export const isSet = (name: keyof Config): boolean => (process.env[name] ?? '') !== '';
