import { StacklessError } from '../std/base-errors.ts';

/** The reason that the database did not answer. The edge maps each reason to a problem. */
export type FailureReason =
  /** It cannot be reached, or lacks resources. */
  | 'unavailable'
  /** All connections are in use, and the queue for them is full. */
  | 'busy'
  /** Tables, columns or functions are missing. */
  | 'schema_outdated'
  /** A statement ran longer than `statement_timeout`. */
  | 'statement_timeout'
  /** A standby has not replayed the requested time. */
  | 'not_replayed';

/** The remedy if the server or a pooler allows too few connections. */
export const CONNECTIONS_NEEDED =
  'the service needs DATABASE_CONNECTIONS_MAX connections and 4 more, a command 2; raise ' +
  'default_pool_size of the pooler, or max_connections of PostgreSQL and the limit of the account';

/** The database did not answer. The message states what the client has to do. */
export class DatabaseFailure extends StacklessError {
  override readonly name = 'DatabaseFailure';
  readonly reason: FailureReason;

  constructor(reason: FailureReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.reason = reason;
  }
}

/** The database cannot be reached. */
export const unavailable = (cause: unknown): DatabaseFailure =>
  new DatabaseFailure('unavailable', 'The database cannot be reached; try again shortly', cause);

/**
 * SQLSTATE classes and codes of a server that cannot be used at the moment: connection, login,
 * missing database, resources, shutdown, recovery, deadlock.
 */
const UNAVAILABLE = /^(08|28|3D000|53|55000|55P03|57P0|40001|40P01)/;
const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);
/** True for a server that cannot be reached; a socket may be missing, or in a closed folder. */
const isUnreachable = (error: unknown): boolean => {
  const { code, syscall } = error as { code?: unknown; syscall?: unknown };
  return syscall === 'connect' || (typeof code === 'string' && UNREACHABLE.has(code));
};

/** Messages of node-postgres without a code. */
const CONNECTION_LOST = new RegExp(
  ['Connection terminated', 'timeout exceeded when trying to connect', 'not queryable'].join('|'),
);

/**
 * Messages of node-postgres for a missing password, and for a failed TLS handshake; and that of an
 * unusable file of a password.
 */
const NO_LOGIN = /^SASL: |does not support SSL|certificate|^(USAGE_)?PGPASSWORD_FILE: /;

/** True if the server reported the error itself: the connection is still usable. */
export const isServerError = (error: unknown): boolean =>
  (error as { severity?: unknown } | null)?.severity === 'ERROR';

/** SQLSTATE codes worth a retry: connection lost, server starting or full, conflicts. */
const TRANSIENT = /^(08|57P0|53300|40001|40P01)/;

/** True if a retry may succeed. A timeout is not retried: it would double the wait. */
export function isTransient(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (code === 'ETIMEDOUT') return false;
  if (typeof code === 'string') return TRANSIENT.test(code) || isUnreachable(error);
  return typeof message === 'string' && CONNECTION_LOST.test(message);
}

/** The server or a pooler has no connection left, although it answers on another one. */
export class TooFewConnections extends Error {
  override readonly name = 'TooFewConnections';
  /** The code of PostgreSQL for too many connections. */
  readonly code = '53300';

  constructor(cause: unknown) {
    const what = 'the database answers, and opens no further connection in time';
    super(`${what}: ${CONNECTIONS_NEEDED}`, { cause });
  }
}

/**
 * The error of a connection that was attempted while the server answers on another one. A pooler
 * whose pool is in use lets the client wait.
 */
export const withOneAnswered = (error: unknown): unknown =>
  error instanceof Error &&
  ((error as { code?: unknown }).code === 'ETIMEDOUT' ||
    /time_?out/i.test(`${error.name} ${error.message}`))
    ? new TooFewConnections(error)
    : error;

/** True if the server was reached, but the password or TLS prevented the login. */
export const isLoginRefused = ({ message }: Error): boolean => NO_LOGIN.test(message);

/**
 * Classifies an error of a statement or a connection, by SQLSTATE, system error code or message.
 * @returns null if the error is a bug of the service, not a failure of the database
 */
export function databaseFailureOf(error: unknown): DatabaseFailure | null {
  if (error instanceof DatabaseFailure) return error;
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (code === '57014') {
    const detail = 'The database took too long; request less data at once';
    return new DatabaseFailure('statement_timeout', detail, error);
  }
  if (typeof code === 'string' && /^(42P01|3F000|42883|42703)$/.test(code)) {
    const detail = 'The operator has to run: prices db migrate';
    return new DatabaseFailure('schema_outdated', detail, error);
  }
  const isLost =
    (typeof code === 'string' && (UNAVAILABLE.test(code) || isUnreachable(error))) ||
    (typeof message === 'string' && (CONNECTION_LOST.test(message) || NO_LOGIN.test(message)));
  return isLost ? unavailable(error) : null;
}
