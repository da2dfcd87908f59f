import { Problem } from '../errors.ts';
import { StacklessError } from '../std/base-errors.ts';

/** The client disconnected before the response was complete. */
export class ClientDisconnected extends StacklessError {
  override readonly name = 'ClientGone';

  constructor() {
    super('the client disconnected');
  }
}

const deadlineExceeded = (deadlineMs: number): Problem =>
  new Problem(
    'query_timeout',
    `No answer was found within ${deadlineMs} ms; request less at once, or try again`,
  );

type RejectWait = (reason: unknown) => void;

/**
 * Cancellation of the work for one request: its statements are cancelled if the client disconnects
 * or the deadline passes. The deadline does not apply while the body arrives, while the response
 * is sent, or to a long poll. The signal is created at its first use, because most requests need
 * none.
 *
 * Fastify's own signal and timeout fail for requests with a body: the signal aborts once the body
 * is read (fastify#6725), and the timeout never fires (fastify#7033).
 */
export class RequestWork {
  readonly #deadlineMs: number;
  #timer: NodeJS.Timeout | undefined;
  readonly #waiting = new Set<RejectWait>();
  readonly #endCallbacks: (() => void)[] = [];
  #controller: AbortController | null = null;
  #reason: unknown = null;
  #isOver = false;

  /** @param deadlineMs time for an answer, from the call of `startDeadline` */
  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs;
  }

  /** True after the response or the disconnection of its client. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Aborts if the client disconnects or the deadline passes. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason !== null) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  /**
   * Waits for a promise that other requests may share: an abort ends this wait, not the promise.
   * @throws its error, or the reason of the abort
   */
  until<T>(promise: Promise<T>): Promise<T> {
    if (this.#reason !== null) {
      // Avoids an unhandled rejection.
      promise.catch(() => {});
      return Promise.reject(this.#reason);
    }
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      promise.then(
        (value) => {
          this.#waiting.delete(reject);
          resolve(value);
        },
        (error: unknown) => {
          this.#waiting.delete(reject);
          reject(error);
        },
      );
    });
  }

  /** Starts the deadline, or restarts it. */
  startDeadline(): void {
    this.clearDeadline();
    const end = () => this.abort(deadlineExceeded(this.#deadlineMs));
    this.#timer = setTimeout(end, this.#deadlineMs).unref();
  }

  clearDeadline(): void {
    clearTimeout(this.#timer);
  }

  /** Cancels the statements and waits of the request. */
  abort(reason: unknown): void {
    if (this.#reason !== null) return;
    this.#reason = reason;
    this.#controller?.abort(reason);
    for (const reject of this.#waiting) reject(reason);
    this.#waiting.clear();
  }

  /** Adds a callback for the end of the response or the disconnection of its client. */
  onEnd(callback: () => void): void {
    if (this.#isOver) callback();
    else this.#endCallbacks.push(callback);
  }

  /** Ends the work. @param isComplete false if the client disconnected before the end */
  end(isComplete: boolean): void {
    this.#isOver = true;
    this.clearDeadline();
    if (!isComplete) this.abort(new ClientDisconnected());
    for (const callback of this.#endCallbacks) callback();
  }
}
