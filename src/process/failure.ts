import { CommanderError } from 'commander';
import { databaseAddressOf } from '../config/addresses.ts';
import { CONNECTIONS_NEEDED, isLoginRefused } from '../db/failures.ts';
import { EXIT, ExpectedError } from '../std/base-errors.ts';
import { PROGRAM } from '../std/program.ts';

interface PostgresError extends Error {
  readonly code?: string;
  /** Path of a file system error. */
  readonly path?: string;
  /** Name of the failed system call. */
  readonly syscall?: string;
  readonly errors?: readonly Error[];
}

const UNREACHABLE = /^(ECONN|EAI_|ENOTFOUND|EHOST|ENET|ETIMEDOUT|28|3D000|53300|57P0|08)/;

const NO_PASSWORD = 'a password is required: add it to the address, or set PGPASSWORD';

/** Messages of a failed login, each with what an operator can do. */
const HINTS: readonly (readonly [message: RegExp, hint: string])[] = [
  [
    /self-signed certificate|first certificate|issuer certificate/,
    'no known CA has signed the certificate of the server: name the file of the CA, by ' +
      'sslrootcert=<file> in the address or PGSSLROOTCERT',
  ],
  [/too many (clients|connections)|no more connections allowed/, CONNECTIONS_NEEDED],
  [/no encryption/, 'the server wants TLS: add sslmode=verify-full to the address'],
  [
    /does not support SSL/,
    'sslmode or sslrootcert of the address, PGSSLMODE or PGSSLROOTCERT asks for TLS: turn it on ' +
      'at the server or pooler, or on the same machine add sslmode=disable to the address',
  ],
];

/** The reason of a failed login, with a hint. */
function loginText(plain: string): string {
  if (/client password must be/.test(plain)) return NO_PASSWORD;
  const [, hint] = HINTS.find(([message]) => message.test(plain)) ?? [];
  return hint === undefined ? plain : `${plain}; ${hint}`;
}

/** Describes an error in one line, without secrets and without a stack. */
export function sentenceOf(error: unknown): string {
  const { code = '', message, errors, path, syscall } = error as PostgresError;
  const plain = (message || errors?.[0]?.message || String(error)).split('\n')[0] ?? '';
  if (
    UNREACHABLE.test(code) ||
    syscall === 'connect' ||
    /timeout exceeded when trying to connect/.test(plain) ||
    isLoginRefused(error as Error)
  ) {
    const url = process.env['DATABASE_URL'];
    const where = url
      ? `DATABASE_URL: cannot use ${databaseAddressOf(url) ?? 'the database'}`
      : 'cannot use the database';
    return `${where} (${loginText(plain)})`;
  }
  if (path && ['ENOENT', 'EACCES', 'EISDIR'].includes(code)) {
    const why = {
      ENOENT: 'there is no such file',
      EACCES: 'this account has no permission',
      EISDIR: 'it is a folder',
    };
    return `cannot use ${path}: ${why[code as keyof typeof why]} (${code})`;
  }
  if (code === '42P01' || code === '42703') {
    return (
      `the database lacks this version’s schema; run: ${PROGRAM} db migrate (or the account of ` +
      'DATABASE_URL does not see it, as prices_reader, which reads only the schema published)'
    );
  }
  if (code === '53100') {
    return (
      `the disk of the database is full (${plain}); the transaction was rolled back: free ` +
      'disk space, and run the command again'
    );
  }
  if (code === '42501' && /to create database/.test(plain)) {
    return `${plain}: use an account that may create databases (createdb), or a superuser`;
  }
  if (code === '42501') {
    return (
      `${plain}: the account of DATABASE_URL may not do this; name the account for this task in ` +
      'DATABASE_URL: prices_loader loads and withdraws, prices_keys makes keys and webhooks, ' +
      'prices_webhooks sends them, prices_migrator migrates, prices_service reads; ' +
      `${PROGRAM} db roles makes them and grants their rights`
    );
  }
  return plain;
}

/** Exit code for an error; 1 for an unexpected one. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  return error instanceof ExpectedError ? error.exitCode : EXIT.failed;
}

/** Prints an error on stderr, one line for each cause; with LOG_LEVEL=debug also its stack. */
export function report(error: unknown): void {
  if (error instanceof CommanderError) return;
  // Faults of a mapping are printed as `file:line: …`, which editors can open.
  const { faults = [] } = error as { readonly faults?: readonly string[] };
  const isExpected = error instanceof ExpectedError;
  const why = (isExpected && error.lines) || [sentenceOf(error)];
  const causes = why.map((each) => `commodity-prices: ${each}`);
  process.stderr.write(`${[...faults, ...causes].join('\n')}\n`);
  const isDebugged = /^(debug|trace)$/.test(process.env['LOG_LEVEL'] ?? '');
  if (isDebugged && !isExpected) console.error(error);
}
