/** Gives a place back; a second call does nothing. */
export type Leave = () => void;

/** Bounds of a waiting line. */
export interface LineBounds {
  readonly waitingMax: number;
  readonly waitMs: number;
}

/** A waiting line that stops while its link is away. */
export interface Line {
  /** Waiters that have a time limit. */
  readonly backlog: number;
  /** Stops the clock; nobody enters. */
  pause(): void;
  /** Starts the clock again and fills the free places. */
  resume(): void;
  /** Rejects every waiter, each with an error of its own. */
  refuse(errorOf: () => Error): void;
}

/** A dependency that may be interrupted, such as the database. Several lines may share one. */
export interface Link {
  /** True during an interruption: nobody enters, and no clock runs. */
  readonly isAway: boolean;
  /** Wider bounds, from an interruption until the lines were empty once; null at other times. */
  readonly catchUp: LineBounds | null;
  /** Adds a line, which the link pauses, resumes and refuses. */
  join(line: Line): void;
  /** Called by a line whose backlog is gone. */
  settle(): void;
  /**
   * Finds out whether an interruption has begun that nobody has noticed yet; null where the last
   * answer is recent. Time limits end only after this.
   */
  verify(): Promise<void> | null;
  /** Called by a line whose waiter waited in vain: this is overload, not a backlog. */
  giveUp(): void;
}

/** A link that is never interrupted. */
const ALWAYS_UP: Link = {
  isAway: false,
  catchUp: null,
  join: () => {},
  settle: () => {},
  verify: () => null,
  giveUp: () => {},
};

export interface EnterOptions {
  /** Removes the waiter from the line when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Waits ahead of others, and is not counted against `waitingMax`. */
  readonly isFirst?: boolean;
  /** Waits without a time limit, and is not counted against `waitingMax`. */
  readonly isPatient?: boolean;
}

interface Waiter {
  readonly enter: () => void;
  readonly refuse: (error: Error | null) => void;
  /** When it gives up, on the clock of the line. */
  dueMs: number;
}

/** Timers may fire that much early. */
const TIMER_MS = 1;

/**
 * A number of places and a FIFO line before them. The clock of the line runs only while the link
 * is up: an interruption uses up nobody's time limit.
 */
export class Places implements Line {
  readonly #most: number;
  readonly #usual: LineBounds;
  readonly #link: Link;
  #taken = 0;
  #counted = 0;
  #backlog = 0;
  readonly #first = new Set<Waiter>();
  readonly #others = new Set<Waiter>();
  /** The clock of the line: what it showed at the last pause, and since when it runs. */
  #pausedAtMs = 0;
  #runsSince: number | null = performance.now();
  #timer: NodeJS.Timeout | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;

  /** @param most places; 0 for no limit */
  constructor(most: number, usual: LineBounds, link: Link = ALWAYS_UP) {
    this.#most = most;
    this.#usual = usual;
    this.#link = link;
    link.join(this);
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#first.size + this.#others.size;
  }

  get backlog(): number {
    return this.#backlog;
  }

  /** Whether a newcomer is refused at once. */
  get isFull(): boolean {
    return !this.#isFree && this.#counted >= this.#bounds.waitingMax;
  }

  /** A place if one is free now; null otherwise. */
  take(): Leave | null {
    if (!this.#isFree) return null;
    this.#taken += 1;
    let isInside = true;
    return () => {
      if (!isInside) return;
      isInside = false;
      this.#taken -= 1;
      this.#fill();
    };
  }

  /**
   * A place, at once or when one is free; null when the line is too long, or the wait.
   * @throws the reason of the signal, and what the link refuses its waiters with
   */
  async enter(options: EnterOptions = {}): Promise<Leave | null> {
    const { signal, isFirst = false, isPatient = false } = options;
    signal?.throwIfAborted();
    const leave = this.take();
    if (leave !== null) return leave;
    const isCounted = !isFirst && !isPatient;
    const { waitingMax, waitMs } = this.#bounds;
    if (isCounted && this.#counted >= waitingMax) return null;
    const line = isFirst ? this.#first : this.#others;
    if (isCounted) this.#counted += 1;
    if (!isPatient) this.#backlog += 1;
    return new Promise((resolve, reject) => {
      const end = (): void => {
        signal?.removeEventListener('abort', abort);
        line.delete(waiter);
        if (isCounted) this.#counted -= 1;
        if (!isPatient) this.#backlog -= 1;
        if (this.#backlog > 0) return;
        this.#disarm();
        this.#link.settle();
      };
      const waiter: Waiter = {
        enter: () => {
          // Taken before the line may be settled by the end of its last waiter.
          const entered = this.take();
          end();
          resolve(entered);
        },
        refuse: (error) => {
          end();
          if (error === null) resolve(null);
          else reject(error);
        },
        dueMs: isPatient ? Number.POSITIVE_INFINITY : this.#nowMs() + waitMs,
      };
      const abort = (): void => waiter.refuse(signal?.reason);
      signal?.addEventListener('abort', abort, { once: true });
      line.add(waiter);
      this.#arm(waiter.dueMs);
    });
  }

  pause(): void {
    if (this.#runsSince === null) return;
    this.#pausedAtMs = this.#nowMs();
    this.#runsSince = null;
    this.#disarm();
    const dueMs = this.#pausedAtMs + this.#bounds.waitMs;
    for (const waiter of this.#all()) waiter.dueMs = Math.max(waiter.dueMs, dueMs);
  }

  resume(): void {
    if (this.#runsSince !== null) return;
    this.#runsSince = performance.now();
    this.#fill();
    this.#arm(Math.min(...[...this.#all()].map(({ dueMs }) => dueMs)));
  }

  refuse(errorOf: () => Error): void {
    for (const waiter of [...this.#all()]) waiter.refuse(errorOf());
  }

  get #isFree(): boolean {
    return !this.#link.isAway && (this.#most === 0 || this.#taken < this.#most);
  }

  get #bounds(): LineBounds {
    const { catchUp } = this.#link;
    if (catchUp === null) return this.#usual;
    return {
      waitingMax: Math.max(this.#usual.waitingMax, catchUp.waitingMax),
      waitMs: Math.max(this.#usual.waitMs, catchUp.waitMs),
    };
  }

  *#all(): Iterable<Waiter> {
    yield* this.#first;
    yield* this.#others;
  }

  #fill(): void {
    while (this.#isFree) {
      const [next] = this.#first.size > 0 ? this.#first : this.#others;
      if (next === undefined) return;
      next.enter();
    }
  }

  #nowMs(): number {
    return this.#pausedAtMs + (this.#runsSince === null ? 0 : performance.now() - this.#runsSince);
  }

  /** Makes sure that the timer fires no later than this moment. */
  #arm(dueMs: number): void {
    if (this.#runsSince === null || dueMs === Number.POSITIVE_INFINITY) return;
    if (this.#timer !== undefined && this.#timerDueMs <= dueMs) return;
    this.#disarm();
    this.#timerDueMs = dueMs;
    this.#timer = setTimeout(() => this.#expire(), Math.max(0, dueMs - this.#nowMs()));
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #expire(): void {
    this.#timer = undefined;
    const verified = this.#link.verify();
    if (verified === null) this.#refuseLate();
    else void verified.then(() => this.#refuseLate());
  }

  #refuseLate(): void {
    if (this.#runsSince === null) return;
    const nowMs = this.#nowMs() + TIMER_MS;
    const late = [...this.#all()].filter(({ dueMs }) => dueMs <= nowMs);
    if (late.length > 0) this.#link.giveUp();
    for (const waiter of late) waiter.refuse(null);
    this.#arm(Math.min(...[...this.#all()].map(({ dueMs }) => dueMs)));
  }
}
