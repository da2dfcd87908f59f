import { CommanderError } from 'commander';
import { ArchiveRefusal, FolderRefusal } from '../archive/archive.ts';
import { KeyError } from '../auth/key-info.ts';
import { UnknownScopeError } from '../auth/scope-list.ts';
import { TokenSettingError } from '../auth/token-keys.ts';
import { databaseAddressOf } from '../config/addresses.ts';
import { ConfigError } from '../config.ts';
import { EmbeddedDatabaseError } from '../db/embedded-process.ts';
import { isLoginRefused } from '../db/failures.ts';
import { LockedOutError } from '../db/lock-holders.ts';
import { DataLossError } from '../db/migrate.ts';
import { MigrationDriftError } from '../db/migrations.ts';
import { RoleError } from '../db/roles.ts';
import { UnknownBatchError } from '../ingest/batches/log.ts';
import { NoReferenceError } from '../ingest/load.ts';
import { RejectsTakenError } from '../ingest/rejects-file.ts';
import { MappingError } from '../ingest/table/mapping.ts';
import { UndoRefusal } from '../ingest/undo/undo.ts';
import { DownloadError } from './download.ts';
import { MovingDataError } from './drill/moving.ts';

/** What the exit code of a command says; shown by `--help`. */
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
    return 'the database lacks this version’s schema; run: npm run --silent prices -- db migrate';
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
      'for it: npm run --silent prices -- db roles'
    );
  }
  return plain;
}

/** Errors of the command line and of settings. */
const WRONG_USE = [
  ConfigError,
  TokenSettingError,
  UsageError,
  UnknownScopeError,
  RoleError,
  FolderRefusal,
  MappingError,
  UnknownBatchError,
  KeyError,
  NoReferenceError,
  RejectsTakenError,
];

/** Errors that are meant for a person: nobody needs their stack. */
const EXPECTED = [
  ...WRONG_USE,
  ArchiveRefusal,
  DataLossError,
  DownloadError,
  EmbeddedDatabaseError,
  LockedOutError,
  MigrationDriftError,
  MovingDataError,
  UndoRefusal,
];

/** What was asked for cannot be done to the data as they are. */
const REFUSALS = [ArchiveRefusal, DataLossError, UndoRefusal];

/** The exit code of an error. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (REFUSALS.some((each) => error instanceof each)) return EXIT.refused;
  if (error instanceof LockedOutError) return EXIT.locked;
  const isUsage = WRONG_USE.some((each) => error instanceof each);
  return isUsage ? EXIT.usage : EXIT.failed;
}

/** Says on stderr why the process ends, a line for each cause; with LOG_LEVEL=debug also where. */
export function report(error: unknown): void {
  if (error instanceof CommanderError) return;
  // Each fault of a mapping has a line of its own, for an editor to jump to.
  const faults = error instanceof MappingError ? error.lines : [];
  const why = error instanceof ConfigError ? error.lines : [sentenceOf(error)];
  const lines = [...faults, ...why.map((each) => `commodity-prices: ${each}`)];
  process.stderr.write(`${lines.join('\n')}\n`);
  const isExpected = EXPECTED.some((each) => error instanceof each);
  if (!isExpected && /^(debug|trace)$/.test(process.env['LOG_LEVEL'] ?? '')) console.error(error);
}
