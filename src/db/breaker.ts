import { Problem } from '../errors.ts';
import { databaseProblem } from './failures.ts';
import { orAborted } from './or-aborted.ts';

/**
 * Whether the database may be asked: `closed`, it may; `lost`, it went away just now, and who asks
 * waits for it; `open`, it has been away for longer, and who asks is told so at once.
 */
export type BreakerState = 'closed' | 'lost' | 'open';

/** How long those who ask wait for a database that went away: a restart takes no longer. */
const RIDE_OUT_MS = 1_500;

export interface BreakerOptions {
  readonly rideOutMs?: number | undefined;
  /** Told of each change of the state, and what the database failed with last. */
  readonly onChange?:
    | ((state: BreakerState, before: BreakerState, error: Error) => void)
    | undefined;
}

const unavailable = (cause: unknown): Problem =>
  databaseProblem(cause) ??
  new Problem('database_unavailable', 'The database cannot be reached; try again shortly', {
    cause,
    headers: { 'retry-after': '2' },
  });

/** Keeps those who ask from a database that is away. Others tell it what they see. */
export class Breaker {
  readonly #options: BreakerOptions;
  #state: BreakerState = 'closed';
  #error = new Error('the database has not failed');
  #lifeline = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  /** Settled when the state is no longer `lost`. */
  #decided = Promise.withResolvers<void>();
  #outages = 0;

  constructor(options: BreakerOptions = {}) {
    this.#options = options;
  }

  get state(): BreakerState {
    return this.#state;
  }

  /**
   * How often the database was away, or moved to another server: a connection from before may be
   * dead without a sound.
   */
  get outages(): number {
    return this.#outages;
  }

  /** Aborts, with the refusal, what runs when the database turns out to be away. */
  get lifeline(): AbortSignal {
    return this.#lifeline.signal;
  }

  /** The database went away; it may be back in a moment. What it fails with last tells why. */
  lose(error: Error): void {
    if (this.#state !== 'closed') {
      this.#error = error;
      return;
    }
    this.#enter('lost', error);
    const rideOutMs = this.#options.rideOutMs ?? RIDE_OUT_MS;
    this.#timer = setTimeout(() => this.open(this.#error), rideOutMs);
  }

  /** The database is away, and nobody waits for it. */
  open(error: Error): void {
    clearTimeout(this.#timer);
    if (this.#state === 'open') return;
    this.#outages += 1;
    this.#enter('open', error);
    this.#lifeline.abort(unavailable(error));
    this.#decide();
  }

  /** The database answers. */
  close(): void {
    clearTimeout(this.#timer);
    if (this.#state === 'closed') return;
    if (this.#state === 'open') this.#lifeline = new AbortController();
    this.#enter('closed', this.#error);
    this.#decide();
  }

  /** The database is read from another server: connections of before are not used any more. */
  move(): void {
    this.#outages += 1;
  }

  /**
   * Lets through who may ask; waits while the database went away just now.
   * @throws Problem `database_unavailable` while it is away, and what the signal was aborted with
   */
  async pass(signal: AbortSignal): Promise<void> {
    while (this.#state === 'lost') await orAborted(this.#decided.promise, signal);
    if (this.#state === 'open') throw unavailable(this.#error);
  }

  #enter(state: BreakerState, error: Error): void {
    const before = this.#state;
    this.#state = state;
    this.#error = error;
    this.#options.onChange?.(state, before, error);
  }

  #decide(): void {
    this.#decided.resolve();
    this.#decided = Promise.withResolvers();
  }
}
