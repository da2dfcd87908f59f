import type { Static, TSchema } from 'typebox';
import Value from 'typebox/value';
import { addressFault, databaseAddressFault, networksFault } from './config/addresses.ts';
import { SETTINGS } from './config/settings.ts';

type Schemas = typeof SETTINGS;
type Optional = {
  [K in keyof Schemas]: Schemas[K] extends { '~optional': true } ? K : never;
}[keyof Schemas];
type Settings = { [K in Exclude<keyof Schemas, Optional>]: Static<Schemas[K]> } & {
  [K in Optional]?: Static<Schemas[K]>;
};

/** The validated settings, frozen. */
export type Config = Readonly<Settings>;

/** A setting that the service cannot start with. The message names the variable, never a secret. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

const SECRET = new Set(['JWT_SECRET', 'DATABASE_URL', 'USAGE_DATABASE_URL', 'JWT_JWKS_URL']);

/** What a form cannot say of a setting: the sentence that refuses it, or null. */
const REFUSALS: Readonly<Record<string, (text: string) => string | null>> = {
  DATABASE_URL: databaseAddressFault,
  USAGE_DATABASE_URL: databaseAddressFault,
  JWT_JWKS_URL: addressFault,
  ECB_URL: addressFault,
  TRUST_PROXY: networksFault,
  LOAD_JUMP_FACTOR: (text) => (Number(text) <= 1 ? 'must be greater than 1' : null),
};

const isInteger = (schema: TSchema): boolean => (schema as { type?: string }).type === 'integer';

/** Why a value does not have the form of its setting; null when it does. */
function whyNot(schema: TSchema, value: unknown): string | null {
  if (Value.Check(schema, value)) return null;
  if (isInteger(schema) && typeof value !== 'number') return 'must be a whole number';
  const { anyOf } = schema as { anyOf?: readonly { const: string }[] };
  if (anyOf) return `must be one of ${anyOf.map((each) => each.const).join(', ')}`;
  const [first] = Value.Errors(schema, value);
  return first?.message ?? 'is not valid';
}

function settingOf(name: string, schema: TSchema, text: string): unknown {
  const value = isInteger(schema) && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
  const why = REFUSALS[name]?.(text) ?? whyNot(schema, value);
  if (why === null) return value;
  const shown = SECRET.has(name) ? 'what is set' : `"${text.slice(0, 64)}"`;
  const { description } = schema as { description?: string };
  throw new ConfigError(`${name}: ${shown} ${why} (${description})`);
}

/**
 * Reads the settings from an environment. An empty value counts as not set.
 * @throws ConfigError naming the first variable that is not valid
 */
export function configOf(env: Readonly<Record<string, string | undefined>>): Config {
  const config: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(SETTINGS) as [string, TSchema][]) {
    const text = env[name];
    const { default: fallback } = schema as { default?: unknown };
    if (text !== undefined && text !== '') config[name] = settingOf(name, schema, text);
    else if (fallback !== undefined) config[name] = fallback;
  }
  const keys = ['JWT_SECRET', 'JWT_PUBLIC_KEY_FILE', 'JWT_JWKS_URL'].filter((each) => config[each]);
  if (keys.length > 1) {
    throw new ConfigError(`${keys[1]}: set only one of ${keys.join(', ')}; they never mix`);
  }
  const secret = config['JWT_SECRET'];
  if (typeof secret === 'string' && Buffer.byteLength(secret) < 32) {
    throw new ConfigError('JWT_SECRET: must have at least 32 bytes');
  }
  return Object.freeze(config) as Config;
}
