import { Problem } from '../../errors.ts';
import type { Line, LineBounds, Link } from '../../std/places.ts';
import { databaseProblem } from '../failures.ts';

/**
 * The state of the database: `closed`, it answers; `lost`, it went away just now, and requests wait
 * for it; `open`, it has been away for longer, and requests are refused at once.
 */
export type BreakerState = 'closed' | 'lost' | 'open';

/** How long requests wait for a database that went away: longer than a restart takes. */
const RIDE_OUT_MS = 2_200;

/** Bounds of the waiting lines until the backlog of an interruption is gone. */
const CATCH_UP: LineBounds = { waitingMax: 512, waitMs: 2_000 };

export interface BreakerOptions {
  readonly rideOutMs?: number | undefined;
  readonly catchUp?: LineBounds | undefined;
  /** Checks the database, unless it answered just now. */
  readonly verify?: (() => Promise<void> | null) | undefined;
  /** Called at each change of the state, with the last error of the database. */
  readonly onChange?:
    | ((state: BreakerState, before: BreakerState, error: Error) => void)
    | undefined;
}

const unavailable = (cause: unknown): Problem =>
  databaseProblem(cause) ??
  new Problem('database_unavailable', 'The database cannot be reached; try again shortly', {
    cause,
  });

/** The link to the database: pauses the waiting lines while it is away. */
export class Breaker implements Link {
  readonly #options: BreakerOptions;
  readonly #lines: Line[] = [];
  #state: BreakerState = 'closed';
  #error = new Error('the database has not failed');
  #lifeline = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #outages = 0;
  #epoch = 0;
  #isCatchingUp = false;
  /** Whether the connections are still being made after an interruption. */
  #isCold = false;

  constructor(options: BreakerOptions = {}) {
    this.#options = options;
  }

  get state(): BreakerState {
    return this.#state;
  }

  get isAway(): boolean {
    return this.#state === 'lost';
  }

  get catchUp(): LineBounds | null {
    return this.#isCatchingUp ? (this.#options.catchUp ?? CATCH_UP) : null;
  }

  /** How often the database was away for so long that requests were refused. */
  get outages(): number {
    return this.#outages;
  }

  /** Grows when connections are to be made anew: those from before may be dead without a sound. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Aborts the statements that run, with the refusal, when the wait for the database is over. */
  get lifeline(): AbortSignal {
    return this.#lifeline.signal;
  }

  join(line: Line): void {
    this.#lines.push(line);
  }

  settle(): void {
    if (this.#state !== 'closed' || this.#isCold) return;
    if (this.#lines.every(({ backlog }) => backlog === 0)) this.#isCatchingUp = false;
  }

  verify(): Promise<void> | null {
    return this.#options.verify?.() ?? null;
  }

  giveUp(): void {
    if (!this.#isCold) this.#isCatchingUp = false;
  }

  /**
   * The database went away; it may be back in a moment.
   * @param error the last error, which the refusals carry as their cause
   * @param sinceMs when it went, by `performance.now()`
   */
  lose(error: Error, sinceMs = performance.now()): void {
    this.#error = error;
    if (this.#state !== 'closed') return;
    this.#isCatchingUp = true;
    this.#enter('lost', error);
    for (const line of this.#lines) line.pause();
    const rideOutMs = this.#options.rideOutMs ?? RIDE_OUT_MS;
    const leftMs = rideOutMs - (performance.now() - sinceMs);
    this.#timer = setTimeout(() => this.open(this.#error), Math.max(0, leftMs));
  }

  /** The database stays away: all who wait are refused, and so is whoever comes. */
  open(error: Error): void {
    clearTimeout(this.#timer);
    if (this.#state === 'open') return;
    this.#outages += 1;
    this.#enter('open', error);
    this.#lifeline.abort(unavailable(error));
    for (const line of this.#lines) line.refuse(() => unavailable(error));
    for (const line of this.#lines) line.resume();
  }

  /** The database answers. */
  close(): void {
    clearTimeout(this.#timer);
    if (this.#state === 'closed') return;
    if (this.#state === 'open') this.#lifeline = new AbortController();
    this.#enter('closed', this.#error);
    for (const line of this.#lines) line.resume();
    this.settle();
  }

  /** Connections from before are not used any more. */
  renew(): void {
    this.#epoch += 1;
  }

  /**
   * Connections are being made anew, after an interruption or for another server: the wider bounds
   * hold at least until that is over, also for those who wait already.
   */
  warmUp(warm: Promise<unknown>): void {
    this.#isCatchingUp = true;
    this.#isCold = true;
    const epoch = this.#epoch;
    const warmed = (): void => {
      if (this.#epoch !== epoch) return;
      this.#isCold = false;
      this.settle();
    };
    warm.then(warmed, warmed);
    if (this.#state === 'lost') return;
    for (const line of this.#lines) {
      line.pause();
      line.resume();
    }
  }

  /** @throws Problem `database_unavailable` while requests are refused */
  check(): void {
    if (this.#state === 'open') throw unavailable(this.#error);
  }

  #enter(state: BreakerState, error: Error): void {
    const before = this.#state;
    this.#state = state;
    this.#error = error;
    this.#options.onChange?.(state, before, error);
  }
}
