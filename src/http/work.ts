import { Problem } from '../errors.ts';
import { StacklessError } from '../std/stackless-error.ts';

/** The client went away before it had the whole answer: nobody's failure. */
export class ClientGone extends StacklessError {
  override readonly name = 'ClientGone';

  constructor() {
    super('the client is gone');
  }
}

const tooLate = (deadlineMs: number): Problem =>
  new Problem(
    'query_timeout',
    `No answer was found within ${deadlineMs} ms; ask for less at once, or try again`,
  );

/** How somebody who waits hears that the work has ended before. */
type GiveUp = (reason: unknown) => void;

/**
 * The work for one request: the statements that run for it are cancelled when its client leaves, or
 * when it found no answer in time. While the body arrives another limit holds; an answer that has
 * begun may take as long as its reader needs, and a request that waits for news as long as it said.
 * Its parts are created when they are first needed: most answers take little.
 *
 * Fastify's own signal and time limit are wrong for requests with a body: the signal aborts once
 * the body was read (fastify#6725), and the limit never ends anything (fastify#7033).
 */
export class Work {
  readonly #deadlineMs: number;
  #timer: NodeJS.Timeout | undefined;
  readonly #waiting = new Set<GiveUp>();
  readonly #last: (() => void)[] = [];
  #controller: AbortController | null = null;
  #reason: unknown = null;
  #isOver = false;

  /** @param deadlineMs time for an answer, which counts from `hurry` on */
  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs;
  }

  /** Aborts when the client leaves, and when the time is over before an answer was found. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason !== null) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  /**
   * Waits for what others may wait for as well: it goes on when this work ends.
   * @throws what it throws, and what this work was ended with
   */
  until<T>(promise: Promise<T>): Promise<T> {
    if (this.#reason !== null) {
      // Nobody waits for it any more: its failure is not an unhandled one.
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

  /** The time counts from now on. */
  hurry(): void {
    this.relax();
    const end = () => this.abort(tooLate(this.#deadlineMs));
    this.#timer = setTimeout(end, this.#deadlineMs).unref();
  }

  /** The time no longer counts. */
  relax(): void {
    clearTimeout(this.#timer);
  }

  /** Ends all that is done for the request. */
  abort(reason: unknown): void {
    if (this.#reason !== null) return;
    this.#reason = reason;
    this.#controller?.abort(reason);
    for (const giveUp of this.#waiting) giveUp(reason);
    this.#waiting.clear();
  }

  /** Does something once the answer is out, or its reader gone. */
  atEnd(last: () => void): void {
    if (this.#isOver) last();
    else this.#last.push(last);
  }

  /** The answer is out, or its reader gone. */
  end(isAnswered: boolean): void {
    this.#isOver = true;
    this.relax();
    if (!isAnswered) this.abort(new ClientGone());
    for (const last of this.#last) last();
  }
}
