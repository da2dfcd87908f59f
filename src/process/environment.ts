import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { type Config, configOf } from '../config/config.ts';
import { secretsFromFiles } from '../config/environment.ts';
import { SETTINGS } from '../config/settings.ts';

const { default: DATA_DIR } = SETTINGS.DATA_DIR as unknown as { readonly default: string };

/**
 * The folder of the file `.env`: the one that the command runs in, else the checkout that the
 * script `prices` belongs to.
 */
function settingsFolder(): string {
  const home = process.env['PRICES_HOME'];
  return existsSync('.env') || !home ? '' : home;
}

/**
 * The settings of this process: the environment, and below it the file `.env` of its folder, to
 * which a DATA_DIR that is not in the environment is relative. Secrets that come from files are
 * variables of the process from then on: pg and workers read them there.
 * @throws ConfigError with a line for each variable that is not valid
 */
export function readConfig(): Config {
  const folder = settingsFolder();
  const file = join(folder, '.env');
  const given = process.env['DATA_DIR'];
  if (existsSync(file)) process.loadEnvFile(file);
  if (folder !== '' && !given) {
    process.env['DATA_DIR'] = resolve(folder, process.env['DATA_DIR'] || DATA_DIR);
  }
  const { secrets, faults } = secretsFromFiles(process.env);
  for (const [name, secret] of secrets) {
    process.env[name] = secret;
    // Not deleted: the next reading of `.env` would set it again.
    process.env[`${name}_FILE`] = '';
  }
  return configOf(process.env, faults);
}

/** True if the setting was given, and is not its default. */
export const isGiven = (name: keyof Config): boolean => (process.env[name] ?? '') !== '';

/** The account that runs a command, for the ledger and the audit of keys. */
export function actor(): string {
  try {
    return userInfo().username;
  } catch {
    // An account without an entry in the list of users, as in some containers.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
