import { EXIT, ExpectedError } from '../std/base-errors.ts';
import { addressFault, databaseAddressFault, networksFault } from './addresses.ts';
import { CONSTANTS } from './constants.ts';
import { scopeClaimsFault } from './scope-claims.ts';
import { REMOVED_SETTINGS, SETTINGS, type Setting } from './settings.ts';

/*
 * Settings. `settings.ts` is their table. This file checks the values of the environment, and
 * returns a typed object. Other folders get the values that they need as arguments.
 */

type Settings = typeof SETTINGS;
type SettingValue<S extends Setting> = S extends { kind: 'whole' }
  ? number
  : S extends { kind: 'choice' }
    ? S['values'][number]
    : string;
type Optional = {
  [K in keyof Settings]: Settings[K] extends { default: unknown } ? never : K;
}[keyof Settings];
type SettingValues = { [K in Exclude<keyof Settings, Optional>]: SettingValue<Settings[K]> } & {
  [K in Optional]?: SettingValue<Settings[K]>;
};

/** The validated settings and the constants, frozen. */
export type Config = Readonly<SettingValues & Record<keyof typeof CONSTANTS, number>>;

/** Invalid settings. Each line names a variable, never a secret. */
export class ConfigError extends ExpectedError {
  override readonly name = 'ConfigError';
  override readonly exitCode = EXIT.usage;
  override readonly lines: readonly string[];

  constructor(...lines: string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

const SECRET = new Set(['JWT_SECRET', 'DATABASE_URL', 'USAGE_DATABASE_URL', 'JWT_JWKS_URL']);

/** Checks beyond the schema. Each returns the fault of a text, or null. */
const CHECKS: Readonly<Record<string, (text: string) => string | null>> = {
  DATABASE_URL: databaseAddressFault,
  USAGE_DATABASE_URL: databaseAddressFault,
  JWT_JWKS_URL: addressFault,
  JWT_SCOPE_CLAIMS: scopeClaimsFault,
  ECB_URL: addressFault,
  TRUST_PROXY: networksFault,
  WEBHOOK_NETWORKS: networksFault,
  LOAD_JUMP_FACTOR: (text) => (Number(text) <= 1 ? 'must be greater than 1' : null),
};

/** The fault of a text by the type of its setting; null if it is valid. */
function typeFault(setting: Setting, text: string): string | null {
  if (setting.kind === 'choice') {
    const { values } = setting;
    return values.includes(text) ? null : `must be one of ${values.join(', ')}`;
  }
  if (setting.kind === 'text') {
    const { pattern, lengthMin = 1 } = setting;
    if (text.length < lengthMin) return `must have at least ${lengthMin} characters`;
    return pattern === undefined || pattern.test(text) ? null : 'is malformed';
  }
  if (!/^-?\d{1,15}$/.test(text)) return 'must be a whole number';
  const { minimum, maximum } = setting;
  const isInRange = Number(text) >= minimum && Number(text) <= maximum;
  return isInRange ? null : `must be from ${minimum} to ${maximum}`;
}

/** The value of a setting, or its fault. */
type SettingResult = { readonly value: number | string } | { readonly fault: string };

function readSetting(name: keyof Settings, text: string): SettingResult {
  const setting: Setting = SETTINGS[name];
  const why = CHECKS[name]?.(text) ?? typeFault(setting, text);
  if (why === null) return { value: setting.kind === 'whole' ? Number(text) : text };
  const shown = SECRET.has(name) ? 'what is set' : `"${text.slice(0, 64)}"`;
  return { fault: `${shown} ${why} (${setting.description})` };
}

/** The faults of combinations of token settings. */
function tokenFaults(env: Readonly<Record<string, string | undefined>>): string[] {
  const [first, ...others] = ['JWT_SECRET', 'JWT_PUBLIC_KEY_FILE', 'JWT_JWKS_URL'].filter(
    (each) => env[each],
  );
  if (others.length === 0) return [];
  const all = [first, ...others].join(', ');
  return [`${others[0]}: set only one of ${all}; they exclude each other`];
}

/**
 * Reads the settings from an environment. An empty value counts as not set.
 * @param known lines about variables that are known to be invalid
 * @throws ConfigError with a line for each invalid variable
 */
export function configOf(
  env: Readonly<Record<string, string | undefined>>,
  known: readonly string[] = [],
): Config {
  const config: Record<string, unknown> = { ...CONSTANTS };
  const faults = [...known];
  for (const [name, setting] of Object.entries(SETTINGS) as [keyof Settings, Setting][]) {
    const { [name]: text } = env;
    const { default: fallback } = setting;
    if (text !== undefined && text !== '') {
      const read = readSetting(name, text);
      if ('fault' in read) faults.push(`${name}: ${read.fault}`);
      else config[name] = read.value;
    } else if (fallback !== undefined) config[name] = fallback;
  }
  // The default address has the default port.
  if (!env['PUBLIC_URL'] && config['PORT'] !== 0) {
    config['PUBLIC_URL'] = `http://127.0.0.1:${config['PORT'] ?? SETTINGS.PORT.default}`;
  }
  faults.push(...tokenFaults(env));
  for (const [name, instead] of Object.entries(REMOVED_SETTINGS)) {
    if (env[name]) faults.push(`${name}: this setting no longer exists; ${instead}`);
  }
  if (faults.length > 0) throw new ConfigError(...faults);
  return Object.freeze(config) as Config;
}
