import type { Static, TSchema } from 'typebox';
import Value from 'typebox/value';
import { addressFault, databaseAddressFault, networksFault } from './addresses.ts';
import { REMOVED_SETTINGS, SETTINGS } from './settings.ts';

type Schemas = typeof SETTINGS;
type Optional = {
  [K in keyof Schemas]: Schemas[K] extends { '~optional': true } ? K : never;
}[keyof Schemas];
type Settings = { [K in Exclude<keyof Schemas, Optional>]: Static<Schemas[K]> } & {
  [K in Optional]?: Static<Schemas[K]>;
};

/** The validated settings, frozen. */
export type Config = Readonly<Settings>;

/** Invalid settings. Each line names a variable, never a secret. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly exitCode = 2;
  readonly lines: readonly string[];

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
  ECB_URL: addressFault,
  TRUST_PROXY: networksFault,
  LOAD_JUMP_FACTOR: (text) => (Number(text) <= 1 ? 'must be greater than 1' : null),
};

const isInteger = (schema: TSchema): boolean => (schema as { type?: string }).type === 'integer';

/** The fault of a value by its schema; null if it is valid. */
function schemaFault(schema: TSchema, value: unknown): string | null {
  if (Value.Check(schema, value)) return null;
  if (isInteger(schema) && typeof value !== 'number') return 'must be a whole number';
  const { anyOf } = schema as { anyOf?: readonly { const: string }[] };
  if (anyOf) return `must be one of ${anyOf.map((each) => each.const).join(', ')}`;
  const [first] = Value.Errors(schema, value);
  return first?.message ?? 'is not valid';
}

/** The value of a setting, or its fault. */
type SettingResult = { readonly value: unknown } | { readonly fault: string };

function readSetting(name: string, schema: TSchema, text: string): SettingResult {
  const value = isInteger(schema) && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
  const why = CHECKS[name]?.(text) ?? schemaFault(schema, value);
  if (why === null) return { value };
  const shown = SECRET.has(name) ? 'what is set' : `"${text.slice(0, 64)}"`;
  const { description } = schema as { description?: string };
  return { fault: `${shown} ${why} (${description})` };
}

/** The fault of a value given outside the environment, as by an option; null if it is valid. */
export function faultOfSetting(name: keyof Schemas, text: string): string | null {
  const read = readSetting(name, SETTINGS[name], text);
  return 'fault' in read ? read.fault : null;
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
  const config: Record<string, unknown> = {};
  const faults = [...known];
  for (const [name, schema] of Object.entries(SETTINGS) as [string, TSchema][]) {
    const text = env[name];
    const { default: fallback } = schema as { default?: unknown };
    if (text !== undefined && text !== '') {
      const read = readSetting(name, schema, text);
      if ('fault' in read) faults.push(`${name}: ${read.fault}`);
      else config[name] = read.value;
    } else if (fallback !== undefined) config[name] = fallback;
  }
  faults.push(...tokenFaults(env));
  for (const [name, instead] of Object.entries(REMOVED_SETTINGS)) {
    if (env[name]) faults.push(`${name}: this setting no longer exists; ${instead}`);
  }
  if (faults.length > 0) throw new ConfigError(...faults);
  return Object.freeze(config) as Config;
}
