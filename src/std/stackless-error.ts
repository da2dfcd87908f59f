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
