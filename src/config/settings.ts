/** A whole number. */
interface WholeSetting {
  readonly kind: 'whole';
  readonly default?: number;
  readonly minimum: number;
  readonly maximum: number;
  readonly description: string;
}

interface TextSetting {
  readonly kind: 'text';
  readonly default?: string;
  readonly pattern?: RegExp;
  /** Fewest characters; 1 without it. */
  readonly lengthMin?: number;
  readonly description: string;
}

/** One of a few words. */
interface ChoiceSetting {
  readonly kind: 'choice';
  readonly default: string;
  readonly values: readonly string[];
  readonly description: string;
}

/** The type, the default and the meaning of a setting. Without a default it may be missing. */
export type Setting = WholeSetting | TextSetting | ChoiceSetting;

const whole = (fallback: number, minimum: number, maximum: number, description: string) =>
  ({ kind: 'whole', default: fallback, minimum, maximum, description }) as const;

const text = <const T extends Omit<TextSetting, 'kind'>>(setting: T) =>
  ({ kind: 'text', ...setting }) as const;

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** https, or http on this machine. */
const ADDRESS = /^(https:\/\/|http:\/\/(127\.0\.0\.1|localhost|\[::1\])[:/])/;

/**
 * Every setting of the service: environment variable, type, default and meaning. A test compares
 * `.env.example` with this list. Limits of the contract are in `constants.ts`.
 */
export const SETTINGS = {
  PORT: whole(3000, 0, 65535, 'Port to listen on; 0 selects a free one'),
  HOST: text({
    default: '127.0.0.1',
    description: 'Address to listen on; 0.0.0.0 opens the service to the network',
  }),
  PUBLIC_URL: text({
    default: 'http://127.0.0.1:3000',
    pattern: /^https?:\/\/[^\s?#]*[^\s?#/]$/,
    description:
      'Address that clients use, without a slash at its end; the OpenAPI document has it',
  }),
  DATABASE_URL: text({
    pattern: /^postgres(ql)?:\/\//,
    description: 'PostgreSQL to use; without it an embedded PostgreSQL runs under DATA_DIR',
  }),
  DATA_DIR: text({
    default: '.data',
    description: 'Folder of the embedded PostgreSQL and of the development secrets',
  }),
  LOG_LEVEL: {
    kind: 'choice',
    default: 'info',
    values: LOG_LEVELS,
    description: 'Lowest severity that is logged',
  },

  CORS_ORIGINS: text({
    default: '',
    pattern: /^(https?:\/\/[a-z0-9.:[\]-]+(,https?:\/\/[a-z0-9.:[\]-]+)*)?$/,
    description:
      'Origins whose pages may read answers, such as https://desk.example.com, without a path ' +
      'and separated by commas; none by default',
  }),
  BASIC_AUTH: {
    kind: 'choice',
    values: ['on', 'off'],
    default: 'off',
    description: 'on accepts an API key as the password of HTTP Basic with GET, for spreadsheets',
  },
  JWT_SECRET: text({
    lengthMin: 32,
    description: 'HS256 secret of at least 32 bytes; not together with a public key',
  }),
  JWT_PUBLIC_KEY_FILE: text({ description: 'PEM file with the public key of the token issuer' }),
  JWT_JWKS_URL: text({
    pattern: ADDRESS,
    description: 'Fixed address of the issuer’s JWKS; https, or http on this machine',
  }),
  JWT_ISSUER: text({
    default: 'commodity-prices',
    description: 'Required value of the claim iss',
  }),
  JWT_AUDIENCE: text({
    default: 'commodity-prices',
    description: 'Required value of the claim aud',
  }),
  JWT_SCOPE_CLAIMS: text({
    default: 'scope,scp,scopes',
    description:
      'Claims of scopes, separated by commas; claim=prefix reads only scopes with that prefix, ' +
      'without it',
  }),
  JWT_LIFETIME_MAX_SECONDS: whole(
    86_400,
    60,
    31_536_000,
    'Longest lifetime, exp − iat, of a token',
  ),

  BODY_BYTES_MAX: whole(131_072, 1_024, 16_777_216, 'Largest request body'),
  HEADER_BYTES_MAX: whole(16_384, 4_096, 131_072, 'Largest header block'),

  DATABASE_CONNECTIONS_MAX: whole(8, 1, 200, 'Connections to PostgreSQL'),
  DATABASE_ACQUIRE_TIMEOUT_MS: whole(2_000, 50, 60_000, 'Timeout of connecting to PostgreSQL'),
  DATABASE_STATEMENT_TIMEOUT_MS: whole(8_000, 100, 600_000, 'Longest run of one statement'),
  DATABASE_SILENCE_MS: whole(
    500,
    50,
    60_000,
    'Time without a response after which the database counts as away',
  ),
  DATABASE_AWAY_MS_MAX: whole(
    2_200,
    100,
    60_000,
    'Longest wait of requests for a database that is away, before they are rejected',
  ),
  KEYS_LAG_MS_MAX: whole(
    10_000,
    0,
    86_400_000,
    'Replication lag of a standby from which API keys are rejected; 0 for no limit',
  ),
  MIN_REVISION_WAIT_MS: whole(
    50,
    0,
    10_000,
    'Longest wait of a request for the revision of its x-min-revision',
  ),
  READY_LAG_MS_MAX: whole(
    1_000,
    0,
    600_000,
    'Longest time that a standby may be behind before /ready answers 503; 0 for no limit',
  ),
  REQUEST_DEADLINE_MS: whole(8_000, 100, 600_000, 'Longest time until an answer begins'),

  PRICE_BOOK_BYTES: whole(
    536_870_912,
    0,
    Number.MAX_SAFE_INTEGER,
    'Memory of the price book and of kept answers, a quarter of it; 0 disables both',
  ),
  HELD_BYTES_MAX: whole(
    134_217_728,
    1_048_576,
    Number.MAX_SAFE_INTEGER,
    'Memory of answers that are held until they are read; a quarter for one principal',
  ),

  LOAD_JUMP_FACTOR: text({
    default: '5',
    pattern: /^[1-9][0-9]{0,5}([.][0-9]{1,3})?$/,
    description: 'Factor by which a loaded value may differ from the previous and the next value',
  }),
  LOAD_LOCK_TIMEOUT_MS: whole(
    300_000,
    0,
    86_400_000,
    'Longest wait of a command for another writer or for a lock; 0 for no limit',
  ),

  LATE_GRACE_MINUTES: whole(
    60,
    0,
    10_080,
    'Minutes after its due instant until a price counts as late',
  ),
  PRICES_ACTOR: text({
    description:
      'Name in the ledger and the key audit of who loads or makes keys; by default the account',
  }),

  FX_SOURCE: text({
    default: 'ECB',
    pattern: /^[A-Z0-9]+$/,
    description: 'Source of the exchange rates that conversions use: ECB, FED',
  }),

  RATE_PER_MINUTE: whole(600, 0, 1_000_000, 'Requests a minute of one principal; 0 for no limit'),
  RATE_BURST: whole(60, 1, 1_000_000, 'Requests of one principal at once, within its rate'),
  CONCURRENT_MAX: whole(10, 0, 10_000, 'Requests of one principal at a time; 0 for no limit'),
  FAILED_AUTH_PER_MINUTE: whole(
    30,
    0,
    1_000_000,
    'Rejected credentials a minute of one network (an IPv4 address, an IPv6 /64); 0 for no limit',
  ),
  RUNNING_MAX: whole(64, 0, 10_000, 'Most requests that compute at a time; 0 for no limit'),
  WAITING_MAX: whole(
    128,
    0,
    10_000,
    'Most requests that wait for admission, and statements that wait for a connection',
  ),
  WAITING_MS_MAX: whole(500, 1, 60_000, 'Longest wait of each, in milliseconds'),
  TRUST_PROXY: text({
    pattern: /^[0-9a-fA-F:.]+(\/\d+)?(,[0-9a-fA-F:.]+(\/\d+)?)*$/,
    description: 'Networks of proxies whose X-Forwarded-For is trusted, separated by commas',
  }),
  USAGE_DATABASE_URL: text({
    pattern: /^postgres(ql)?:\/\//,
    description: 'The primary, with the account that records the use of keys',
  }),
  WEBHOOK_NETWORKS: text({
    default: '',
    pattern: /^[0-9a-fA-F:.]+(\/\d+)?(,[0-9a-fA-F:.]+(\/\d+)?)*$/,
    description:
      'Networks of webhook receivers that are not public, or have no TLS, separated by commas',
  }),
  ECB_URL: text({
    default: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist.zip',
    pattern: ADDRESS,
    description: 'Address that `load ecb --fetch` downloads; https, or http on this machine',
  }),

  CHANGES_WAITING_MAX: whole(2, 1, 1_000, 'Requests of one credential that may wait for changes'),

  CONNECTIONS_MAX: whole(
    2_000,
    1,
    100_000,
    'Most client connections; a quarter of them for one network that TRUST_PROXY does not name',
  ),
  HEADERS_TIMEOUT_MS: whole(10_000, 100, 120_000, 'Longest time to send the header block'),
  REQUEST_TIMEOUT_MS: whole(15_000, 100, 300_000, 'Longest time to send a request'),
  STALL_TIMEOUT_MS: whole(
    30_000,
    100,
    600_000,
    'Time that a reader may be behind 16 KiB a second before it is disconnected',
  ),
  KEEP_ALIVE_TIMEOUT_MS: whole(65_000, 100, 600_000, 'Idle time after which a connection closes'),
  STOP_NOTICE_MS: whole(
    0,
    0,
    120_000,
    'Time of a stop during which it still accepts requests, with /ready 503',
  ),
  SHUTDOWN_TIMEOUT_MS: whole(20_000, 100, 300_000, 'Longest wait for running answers at a stop'),

  METRICS_PORT: {
    kind: 'whole',
    minimum: 0,
    maximum: 65535,
    description: 'Port of the metrics for Prometheus, GET /metrics; without it they are disabled',
  },
  METRICS_HOST: text({
    default: '127.0.0.1',
    description: 'Address of the metrics, which need no credential',
  }),
} as const satisfies Record<string, Setting>;

const IN_CONTRACT = 'delete it: this limit is the same everywhere; the OpenAPI document has it';

/** Removed settings, each with its replacement. */
export const REMOVED_SETTINGS: Readonly<Record<string, string>> = {
  JSON_DEPTH_MAX: IN_CONTRACT,
  URL_BYTES_MAX: IN_CONTRACT,
  CODES_MAX: IN_CONTRACT,
  LIST_ITEMS_MAX: IN_CONTRACT,
  ITEM_LENGTH_MAX: IN_CONTRACT,
  RECORDS_MAX: IN_CONTRACT,
  WIDE_CELLS_MAX: IN_CONTRACT,
  CHANGES_LIMIT: IN_CONTRACT,
  CHANGES_LIMIT_MAX: IN_CONTRACT,
  CHANGES_WAIT_MAX_SECONDS: IN_CONTRACT,
  AS_OF_WAIT_MS: 'delete it: asOf waits at most 1 s for a standby',
  AS_OF_WAITING_MAX: 'delete it: at most 16 requests with asOf wait for a standby',
  OPEN_PER_SECOND: 'delete it: 25 requests of open addresses begin in a second',
  OPEN_WAITING_MAX: 'delete it: at most 128 requests of open addresses wait',
  SERIES_PRICES_PER_STATEMENT: 'delete it: a statement reads the series of at most 20 prices',
  JWT_JWKS_BYTES_MAX: 'delete it: a JWKS has at most 256 KiB',
  JWT_LEEWAY_SECONDS: 'delete it: clocks may differ by 30 s',
  LOG_BUFFER_BYTES_MAX: 'delete it: log lines of at most 4 MiB wait',
  FETCH_TIMEOUT_MS:
    'delete it: a download takes at most 60 s; after a slower one, load the file by its path',
  FETCH_BYTES_MAX:
    'delete it: a download has at most 16 MiB; after a larger one, load the file by its path',
  WORKERS: 'run one process for each core behind HAProxy; docs/operations.md, "Several processes"',
  OTEL_EXPORTER_OTLP_HEADERS_FILE: 'set the variable without _FILE, which OpenTelemetry reads',
  OTEL_EXPORTER_OTLP_TRACES_HEADERS_FILE:
    'set the variable without _FILE, which OpenTelemetry reads',
  LOG_ANONYMOUS_PER_SECOND:
    'delete it: refusals have one log line a minute for each client and code',
  BACKLOG_MAX: 'leave it out: the backlog follows from the rate of requests',
  BACKLOG_MS_MAX: 'leave it out: the wait follows from the length of the interruption',
  DATABASE_SYSTEM_IDENTIFIER: 'delete it: a process uses the one server of its address',
  DATABASE_LAG_MS_MAX:
    'delete it: a standby that is behind answers 503 at /ready, by READY_LAG_MS_MAX; ' +
    'docs/operations.md, "Standbys and failover"',
  LOAD_CONFIRM:
    'PostgreSQL waits for the standbys of synchronous_standby_names; docs/loading.md, "Loads and ' +
    'standbys"',
  LOAD_CONFIRM_TIMEOUT_MS:
    'delete it: a load waits for its standby without a limit; docs/loading.md, "Loads and ' +
    'standbys"',
  PIPELINED_MAX: 'delete it: a connection answers one request at a time, and queues no other',
  PIPELINED_ALL_MAX: 'delete it: a connection answers one request at a time, and queues no other',
  STOP_GRACE_MS: 'delete it: idle connections close at once; STOP_NOTICE_MS comes before that',
  KEY_DENIED_BURST: 'delete it: the log and prices_refusals_total report refusals',
  SEARCH_BYTES_MAX: 'delete it: two indexes of each market are kept, about 800 bytes a price',
  POOL_WAIT_MS: 'set WAITING_MS_MAX, which limits the wait for a connection as well',
  POOL_WAITING_MAX: 'set WAITING_MAX, which limits the statements that wait as well',
};
