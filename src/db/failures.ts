import { Problem, type ProblemCode } from '../errors.ts';

/**
 * SQLSTATE classes and codes that mean that the server cannot be used at the moment: connection,
 * login, no such database, resources, closed to connections, shutdown, recovery, a deadlock.
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
/** What node-postgres says without a code. */
const CONNECTION_LOST = new RegExp(
  ['Connection terminated', 'timeout exceeded when trying to connect', 'not queryable'].join('|'),
);

/** What it says, without a SQLSTATE, when there is no password, or no TLS that both agree on. */
const NO_LOGIN = /^SASL: |does not support SSL|certificate/;

/** True if the server itself reported an error: then the connection can still be used. */
export const isServerError = (error: unknown): boolean =>
  (error as { severity?: unknown } | null)?.severity === 'ERROR';

/** Worth another attempt: a lost connection, a server that starts or is full, a conflict. */
const PASSING = /^(08|57P0|53300|40001|40P01)/;

/** True if an error may be gone with the next attempt; one that took its time is not. */
export function isPassing(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (code === 'ETIMEDOUT') return false;
  if (typeof code === 'string') return PASSING.test(code) || UNREACHABLE.has(code);
  return typeof message === 'string' && CONNECTION_LOST.test(message);
}

/** True if the server was found, and could not be logged in to for want of a password or of TLS. */
export const isLoginRefused = ({ message }: Error): boolean => NO_LOGIN.test(message);

const TOLD: ReadonlySet<ProblemCode> = new Set(['database_unavailable', 'overloaded']);

const refusal = (code: ProblemCode, detail: string, cause: unknown): Problem =>
  new Problem(code, detail, { cause });

/**
 * The refusal that a failure of the database is to the client: 503 when it cannot be reached or
 * lacks resources, `schema_outdated` when tables or columns are missing, 504 when a statement ran
 * too long.
 * @returns null when the failure is none of these, and so a fault of the service
 */
export function databaseProblem(error: unknown): Problem | null {
  // What those who read have already understood.
  if (error instanceof Problem) return TOLD.has(error.code) ? error : null;
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (code === '57014') {
    return refusal('query_timeout', 'The database took too long; ask for less at once', error);
  }
  if (typeof code === 'string' && /^(42P01|3F000|42883|42703)$/.test(code)) {
    return refusal('schema_outdated', 'The operator has to run: prices db migrate', error);
  }
  const lost =
    (typeof code === 'string' && (UNAVAILABLE.test(code) || UNREACHABLE.has(code))) ||
    (typeof message === 'string' && (CONNECTION_LOST.test(message) || NO_LOGIN.test(message)));
  return lost
    ? refusal('database_unavailable', 'The database cannot be reached; try again shortly', error)
    : null;
}
