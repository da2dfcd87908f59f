/** Exit codes of commands, listed by `--help`. */
export const EXIT = {
  ok: 0,
  failed: 1,
  /** Invalid command line or setting; nothing was executed. */
  usage: 2,
  /** The data was rejected; nothing was written. */
  refused: 3,
  /** Timeout for a lock of another session; nothing was written, so a retry is safe. */
  locked: 4,
  /** Committed, but no standby showed it in time. */
  unconfirmed: 5,
} as const;

/** An error that a command reports in one line, without a stack, and with its own exit code. */
export abstract class ExpectedError extends Error {
  abstract readonly exitCode: number;
  /** Causes, one a line, which are printed instead of the message. */
  readonly lines?: readonly string[];
}

/** An invalid command line that the parser cannot detect. */
export class UsageError extends ExpectedError {
  override readonly name = 'UsageError';
  override readonly exitCode = EXIT.usage;
}
