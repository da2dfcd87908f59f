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
  /** Some rows were rejected by --rejects; the others were loaded. */
  rejects: 6,
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

/**
 * An expected error without a stack trace, which would cost more than the rest of a rejection.
 * Create one for each occasion: some libraries write into the errors that they pass on.
 */
export class StacklessError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, options);
    Error.stackTraceLimit = stackTraceLimit;
  }
}
