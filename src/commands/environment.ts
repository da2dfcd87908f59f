import { existsSync } from 'node:fs';
import { type Config, configOf } from '../config.ts';

/**
 * The settings of this process: the environment, and below it the file `.env` of the folder that
 * the command runs in.
 * @throws ConfigError with a line for each variable that is not valid
 */
export function readConfig(): Config {
  if (existsSync('.env')) process.loadEnvFile('.env');
  return configOf(process.env);
}

/** Whether the setting was given, and is not its default. */
export const isGiven = (name: keyof Config): boolean => (process.env[name] ?? '') !== '';
