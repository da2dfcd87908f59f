import type { FastifyInstance } from 'fastify';
import { Foreseen, Problem } from '../errors.ts';
import { isWaiting } from './gate.ts';

/**
 * Ends work that exceeds its deadline. All work has the same time limit, so the first to begin is
 * the first to end, and one timer is enough.
 */
export class Deadlines {
  readonly #ms: number;
  readonly #end: (late: Work) => void;
  /** The deadline of each, earliest first. */
  readonly #due = new Map<Work, number>();
  #timer: NodeJS.Timeout | null = null;

  constructor(ms: number, end: (late: Work) => void) {
    this.#ms = ms;
    this.#end = end;
  }

  /** Starts the time of a work, or restarts it. */
  add(work: Work): void {
    this.#due.delete(work);
    this.#due.set(work, performance.now() + this.#ms);
    if (this.#timer === null) this.#wait(this.#ms);
  }

  remove(work: Work): void {
    this.#due.delete(work);
  }

  #wait(ms: number): void {
    this.#timer = setTimeout(() => this.#look(), ms).unref();
  }

  #look(): void {
    this.#timer = null;
    for (const [work, due] of this.#due) {
      const left = due - performance.now();
      if (left > 0) {
        this.#wait(Math.ceil(left));
        return;
      }
      this.#due.delete(work);
      this.#end(work);
    }
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** What is done for the request, and when that has to end. */
    work: Work;
  }
}

/** The client went away before it had the whole answer: nobody's failure. */
export class ClientGone extends Foreseen {
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

/** The work for one request. What it needs is made when it is needed: most answers take little. */
export class Work {
  readonly #deadlines: Deadlines;
  readonly #waiting = new Set<GiveUp>();
  readonly #last: (() => void)[] = [];
  #controller: AbortController | null = null;
  #reason: unknown = null;
  #isOver = false;

  constructor(deadlines: Deadlines) {
    this.#deadlines = deadlines;
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
    if (this.#reason !== null) return Promise.reject(this.#reason);
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
    this.#deadlines.add(this);
  }

  /** The time no longer counts. */
  relax(): void {
    this.#deadlines.remove(this);
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

/**
 * Gives each request a signal that ends its work: the statements that run for it are cancelled
 * when its client leaves, or when it found no answer in time. While the body arrives another limit
 * holds; an answer that has begun may take as long as its reader needs, and a request that waits
 * for news as long as it said.
 *
 * Fastify's own signal and time limit are wrong for requests with a body: the signal aborts once
 * the body was read (fastify#6725), and the limit never ends anything (fastify#7033).
 */
export function work(app: FastifyInstance, deadlineMs: number): void {
  const deadlines = new Deadlines(deadlineMs, (late) => late.abort(tooLate(deadlineMs)));
  app.decorateRequest('work');
  app.addHook('onRequest', (request, { raw }, done) => {
    const mine = new Work(deadlines);
    request.work = mine;
    raw.once('close', () => mine.end(raw.writableFinished));
    if (!isWaiting(request)) mine.hurry();
    done();
  });
  app.addHook('preParsing', (request, _reply, payload, done) => {
    request.work.relax();
    done(null, payload);
  });
  app.addHook('preValidation', (request, _reply, done) => {
    if (!isWaiting(request)) request.work.hurry();
    done();
  });
  app.addHook('onSend', (request, _reply, payload, done) => {
    request.work.relax();
    done(null, payload);
  });
}
