import Type, { type Static, type TSchema } from 'typebox';
import Value from 'typebox/value';

const whole = (fallback: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({ default: fallback, minimum, maximum, description });

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** https, or http on this machine. */
const ADDRESS = '^(https://|http://(127\\.0\\.0\\.1|localhost|\\[::1\\])[:/])';

/**
 * Every setting of the service: environment variable, type, default and meaning. `.env.example`
 * is checked against this list by a test.
 */
export const SETTINGS = {
  PORT: whole(3000, 0, 65535, 'Port to listen on; 0 takes a free one'),
  HOST: Type.String({
    default: '127.0.0.1',
    minLength: 1,
    description: 'Address to listen on; 0.0.0.0 opens the service to the network',
  }),
  DATABASE_URL: Type.Optional(
    Type.String({
      pattern: '^postgres(ql)?://',
      description: 'PostgreSQL to use; without it an embedded PostgreSQL runs under DATA_DIR',
    }),
  ),
  DATA_DIR: Type.String({
    default: '.data',
    minLength: 1,
    description: 'Folder of the embedded PostgreSQL and of the development secrets',
  }),
  LOG_LEVEL: Type.Union(
    LOG_LEVELS.map((each) => Type.Literal(each)),
    { default: 'info', description: 'Least severe log line that is written' },
  ),

  JWT_SECRET: Type.Optional(
    Type.String({
      minLength: 32,
      description: 'HS256 secret of at least 32 bytes; not together with a public key',
    }),
  ),
  JWT_PUBLIC_KEY_FILE: Type.Optional(
    Type.String({ minLength: 1, description: 'PEM file with the public key of the token issuer' }),
  ),
  JWT_JWKS_URL: Type.Optional(
    Type.String({
      pattern: ADDRESS,
      description: 'Fixed address of the issuer’s JWKS; https, or http on this machine',
    }),
  ),
  JWT_ISSUER: Type.String({
    default: 'commodity-prices',
    minLength: 1,
    description: 'Required value of the claim iss',
  }),
  JWT_AUDIENCE: Type.String({
    default: 'commodity-prices',
    minLength: 1,
    description: 'Required value of the claim aud',
  }),
  JWT_LIFETIME_MAX_SECONDS: whole(86_400, 60, 31_536_000, 'Longest life, exp − iat, of a token'),
  JWT_LEEWAY_SECONDS: whole(30, 0, 300, 'Tolerance for clocks that differ'),

  BODY_BYTES_MAX: whole(131_072, 1_024, 16_777_216, 'Largest request body'),
  JSON_DEPTH_MAX: whole(8, 4, 64, 'Deepest nesting of a request body'),
  URL_BYTES_MAX: whole(8_192, 256, 65_536, 'Longest request address'),
  HEADER_BYTES_MAX: whole(16_384, 4_096, 131_072, 'Largest header block'),
  CODES_MAX: whole(500, 1, 10_000, 'Most items in the filter codes'),
  LIST_ITEMS_MAX: whole(200, 1, 10_000, 'Most items in any other filter list'),
  ITEM_LENGTH_MAX: whole(128, 1, 1_024, 'Longest item of a filter list, in characters'),

  DATABASE_CONNECTIONS_MAX: whole(8, 1, 200, 'Connections to PostgreSQL'),
  DATABASE_ACQUIRE_TIMEOUT_MS: whole(2_000, 50, 60_000, 'Longest wait for a connection'),
  DATABASE_STATEMENT_TIMEOUT_MS: whole(8_000, 100, 600_000, 'Longest run of one statement'),
  SERIES_PRICES_PER_STATEMENT: whole(20, 1, 1_000, 'Prices whose series one statement reads'),

  PRICE_BOOK_BYTES: whole(
    536_870_912,
    0,
    Number.MAX_SAFE_INTEGER,
    'Memory for prices, answers and keys that are kept ready; 0 keeps none',
  ),

  LOAD_JUMP_FACTOR: Type.String({
    default: '5',
    pattern: '^[1-9][0-9]{0,5}([.][0-9]{1,3})?$',
    description: 'Factor by which a loaded value may differ from the one beside it',
  }),

  FX_SOURCE: Type.String({
    default: 'ECB',
    pattern: '^[A-Z0-9]+$',
    description: 'Source of the exchange rates that conversions use: ECB, FED',
  }),

  RATE_PER_MINUTE: whole(600, 0, 1_000_000, 'Requests a minute of one principal; 0 for no limit'),
  RATE_BURST: whole(60, 1, 1_000_000, 'Requests of one principal at once, within its rate'),
  CONCURRENT_MAX: whole(10, 0, 10_000, 'Requests of one principal at a time; 0 for no limit'),
  FAILED_AUTH_PER_MINUTE: whole(
    30,
    0,
    1_000_000,
    'Refused credentials a minute of one network (an IPv4 address, an IPv6 /64); 0 for no limit',
  ),
  RUNNING_MAX: whole(64, 0, 10_000, 'Requests that are worked on at a time; 0 for no limit'),
  WAITING_MAX: whole(64, 0, 10_000, 'Requests that may wait until one of these is answered'),
  WAITING_MS_MAX: whole(500, 1, 10_000, 'How long each of them waits, in milliseconds'),
  TRUST_PROXY: Type.Optional(
    Type.String({
      pattern: '^[0-9a-fA-F:.]+(/\\d+)?(,[0-9a-fA-F:.]+(/\\d+)?)*$',
      description: 'Networks of proxies whose X-Forwarded-For is believed, separated by commas',
    }),
  ),
  USAGE_DATABASE_URL: Type.Optional(
    Type.String({
      pattern: '^postgres(ql)?://',
      description:
        'The same database with the account that notes when keys were used and shares rate limits',
    }),
  ),
  ECB_URL: Type.String({
    default: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist.zip',
    pattern: ADDRESS,
    description: 'What `load ecb --fetch` downloads; https, or http on this machine',
  }),
  FETCH_TIMEOUT_MS: whole(60_000, 100, 600_000, 'Longest time that a download may take'),
  FETCH_BYTES_MAX: whole(16_777_216, 1_024, 268_435_456, 'Largest download'),

  CHANGES_LIMIT: whole(1_000, 1, 10_000, 'Changes on a page of the feed when limit is not given'),
  CHANGES_LIMIT_MAX: whole(5_000, 1, 10_000, 'Most changes that limit may ask for'),
  CHANGES_WAIT_MAX_SECONDS: whole(25, 0, 25, 'Longest wait for changes that a request may ask for'),
  CHANGES_WAITING_MAX: whole(2, 1, 1_000, 'Requests of one credential that may wait for changes'),

  CONNECTIONS_MAX: whole(2_000, 1, 100_000, 'Client connections held at once'),
  HEADERS_TIMEOUT_MS: whole(10_000, 100, 120_000, 'Longest time to send the header block'),
  REQUEST_TIMEOUT_MS: whole(15_000, 100, 300_000, 'Longest time to send a request'),
  STALL_TIMEOUT_MS: whole(30_000, 100, 600_000, 'Longest time a reader may take no byte'),
  KEEP_ALIVE_TIMEOUT_MS: whole(65_000, 100, 600_000, 'Idle time after which a connection closes'),
  SHUTDOWN_TIMEOUT_MS: whole(20_000, 100, 300_000, 'Longest wait for running answers at a stop'),
} as const;

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

/**
 * What may be shown of a database's address: `host:port/database`, or null when it is no address
 * that can be used. A `/`, `?` or `#` in a password ends what is read as the host, so part of the
 * password would pass for one: the `@` that then comes too late gives it away.
 */
export function databaseAddressOf(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || /[@#]/.test(`${url.pathname}${url.search}${url.hash}`)) return null;
  try {
    for (const part of [url.username, url.password, url.hostname, url.pathname]) {
      decodeURIComponent(part);
    }
  } catch {
    // A % that is not followed by two hexadecimal digits.
    return null;
  }
  return `${url.host}${url.pathname}`;
}

/** Whose texts read as http on this machine; a user name before the host would pass the form. */
const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];

/** Why a text is no address that the service may ask; null when it is one. */
function addressFault(text: string): string | null {
  const url = URL.parse(text);
  if (url === null) return 'is not an address';
  if (url.username !== '' || url.password !== '') return 'must not name a user or password';
  const isSafe = url.protocol === 'https:' || LOOPBACK.includes(url.hostname);
  return isSafe ? null : 'must be https, or http on this machine';
}

const refuseAddress = (text: string): string | null =>
  databaseAddressOf(text) === null
    ? 'is not an address like postgres://user:password@host:5432/database; reserved characters ' +
      'in the password, such as @ / : ? # %, must be percent-encoded'
    : null;

/** What a form cannot say of a setting: the sentence that refuses it, or null. */
const REFUSALS: Readonly<Record<string, (text: string) => string | null>> = {
  DATABASE_URL: refuseAddress,
  USAGE_DATABASE_URL: refuseAddress,
  JWT_JWKS_URL: addressFault,
  ECB_URL: addressFault,
  LOAD_JUMP_FACTOR: (text) => (Number(text) > 1 ? null : 'must be greater than 1'),
};

const isInteger = (schema: TSchema): boolean => (schema as { type?: string }).type === 'integer';

/** Why a value does not have the form of its setting; null when it does. */
function whyNot(schema: TSchema, value: unknown): string | null {
  if (Value.Check(schema, value)) return null;
  const { anyOf } = schema as { anyOf?: readonly { const: string }[] };
  if (anyOf) return `must be one of ${anyOf.map((each) => each.const).join(', ')}`;
  const [first] = Value.Errors(schema, value);
  return first?.message ?? 'is not valid';
}

function settingOf(name: string, schema: TSchema, text: string): unknown {
  const value = isInteger(schema) && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
  const why = whyNot(schema, value) ?? REFUSALS[name]?.(text) ?? null;
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
