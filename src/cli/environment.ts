import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { type Config, configOf } from '../config/config.ts';
import { secretsFromFiles } from '../config/environment.ts';

/**
 * The settings of this process: the environment, and below it the file `.env` of the folder that
 * the command runs in. Secrets that come from files are variables of the process from then on:
 * pg and workers read them there.
 * @throws ConfigError with a line for each variable that is not valid
 */
export function readConfig(): Config {
  if (existsSync('.env')) process.loadEnvFile('.env');
  const { secrets, faults } = secretsFromFiles(process.env);
  for (const [name, secret] of secrets) {
    process.env[name] = secret;
    // Not deleted: the next reading of `.env` would set it again.
    process.env[`${name}_FILE`] = '';
  }
  return configOf(process.env, faults);
}

/** Whether the setting was given, and is not its default. */
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
