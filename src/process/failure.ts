import { CommanderError } from 'commander';
import { databaseAddressOf } from '../config/addresses.ts';
import { ConfigError } from '../config/config.ts';
import { isLoginRefused } from '../db/failures.ts';
import { PROGRAM } from '../std/program.ts';

/**
 * The exit codes of commands, shown by `--help`. An error that is meant for a person carries its
 * code as `exitCode`, whichever folder throws it.
 */
export const EXIT = {
  ok: 0,
  failed: 1,
  /** The command line or a setting is wrong; nothing was tried. */
  usage: 2,
  /** The data is not acceptable; nothing was written. */
  refused: 3,
  /** Another session held a lock for too long; nothing was changed: run it again. */
  locked: 4,
} as const;

/** A wrong use of a command that its parser cannot see. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly exitCode = EXIT.usage;
}

interface PostgresError extends Error {
  readonly code?: string;
  /** Of an error of the file system. */
  readonly path?: string;
  readonly errors?: readonly Error[];
}

const UNREACHABLE = /^(ECONN|EAI_|ENOTFOUND|EHOST|ENET|ETIMEDOUT|28|3D000|53300|57P0|08)/;

const NO_PASSWORD = 'it asks for a password: write it into the address, or set PGPASSWORD';

/** One line for a person, without a secret or a stack. */
export function sentenceOf(error: unknown): string {
  const { code = '', message, errors, path } = error as PostgresError;
  const plain = (message || errors?.[0]?.message || String(error)).split('\n')[0] ?? '';
  if (
    UNREACHABLE.test(code) ||
    /timeout exceeded when trying to connect/.test(plain) ||
    isLoginRefused(error as Error)
  ) {
    const url = process.env['DATABASE_URL'];
    const where = url
      ? `DATABASE_URL: cannot use ${databaseAddressOf(url) ?? 'the database'}`
      : 'cannot use the database';
    return `${where} (${/client password must be/.test(plain) ? NO_PASSWORD : plain})`;
  }
  if (path && ['ENOENT', 'EACCES', 'EISDIR'].includes(code)) {
    const why = {
      ENOENT: 'there is no such file',
      EACCES: 'this account may not',
      EISDIR: 'it is a folder',
    };
    return `cannot use ${path}: ${why[code as keyof typeof why]} (${code})`;
  }
  if (code === '42P01' || code === '42703') {
    return `the database lacks this version’s schema; run: ${PROGRAM} db migrate`;
  }
  if (code === '53100') {
    return (
      `the disk of the database is full (${plain}); what was under way was taken back: make ` +
      'room, and run it again'
    );
  }
  if (code === '42501' && /to create database/.test(plain)) {
    return `${plain}: this needs an account that may make databases (createdb), or a superuser`;
  }
  if (code === '42501') {
    return (
      `${plain}: DATABASE_URL names an account that may not do this; use the one that is made ` +
      `for it: ${PROGRAM} db roles`
    );
  }
  return plain;
}

/** True for an error that is meant for a person: it has an exit code, and its stack is hidden. */
const isExpected = (error: unknown): error is Error & { readonly exitCode: number } =>
  error instanceof Error && typeof (error as { exitCode?: unknown }).exitCode === 'number';

/** The exit code of an error. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  return isExpected(error) ? error.exitCode : EXIT.failed;
}

/** Says on stderr why the process ends, a line for each cause; with LOG_LEVEL=debug also where. */
export function report(error: unknown): void {
  if (error instanceof CommanderError) return;
  // Each fault of a mapping has a line of its own, for an editor to jump to.
  const { faults = [] } = error as { readonly faults?: readonly string[] };
  const why = error instanceof ConfigError ? error.lines : [sentenceOf(error)];
  const lines = [...faults, ...why.map((each) => `commodity-prices: ${each}`)];
  process.stderr.write(`${lines.join('\n')}\n`);
  const isDebugged = /^(debug|trace)$/.test(process.env['LOG_LEVEL'] ?? '');
  if (isDebugged && !isExpected(error)) console.error(error);
}
