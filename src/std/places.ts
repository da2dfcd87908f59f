/** Gives a place back; a second call does nothing. */
export type Leave = () => void;

/** Bounds of a waiting line. */
export interface LineBounds {
  readonly waitingMax: number;
  readonly waitMs: number;
}

/** The usual bounds of a backlog: longer than a restart of a database takes. */
const CATCH_UP: LineBounds = { waitingMax: 512, waitMs: 2_000 };

interface LinesOptions {
  /** Bounds from an interruption until the backlog is gone. */
  readonly catchUp?: LineBounds | undefined;
  /** Finds out whether an interruption has begun; null if the last answer is recent. */
  readonly verify?: () => Promise<void> | null;
}

/**
 * The waiting lines before one dependency, such as the database. An interruption of it stops their
 * clocks, and is a backlog afterwards, not overload: until all lines were empty once, or somebody
 * waited in vain, wider bounds hold.
 */
export class Lines {
  readonly #options: LinesOptions;
  readonly #lines: Places[] = [];
  #isAway = false;
  #isDown = false;
  #isCatchingUp = false;
  /** The work that makes the dependency fit for its load again; null once that is over. */
  #warming: Promise<unknown> | null = null;

  constructor(options: LinesOptions = {}) {
    this.#options = options;
  }

  /** True during an interruption: nobody enters, and no clock runs. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** The wider bounds while they hold. */
  get catchUp(): LineBounds | null {
    return this.#isCatchingUp ? (this.#options.catchUp ?? CATCH_UP) : null;
  }

  join(line: Places): void {
    this.#lines.push(line);
  }

  /** An interruption begins. */
  pause(): void {
    this.#isAway = true;
    this.#isCatchingUp = true;
    for (const line of this.#lines) line.pause();
  }

  /** The interruption takes too long: rejects all waiters, each with an error of its own. */
  refuse(errorOf: () => Error): void {
    this.#isAway = false;
    this.#isDown = true;
    for (const line of this.#lines) line.refuse(errorOf);
    for (const line of this.#lines) line.resume();
  }

  /** The interruption is over. */
  resume(): void {
    this.#isAway = false;
    this.#isDown = false;
    for (const line of this.#lines) line.resume();
    this.settle();
  }

  /**
   * The dependency is not yet fit for its load: the wider bounds hold at least until it is, also
   * for those who wait already.
   */
  warmUp(warming: Promise<unknown>): void {
    this.#isCatchingUp = true;
    this.#warming = warming;
    const warmed = (): void => {
      if (this.#warming !== warming) return;
      this.#warming = null;
      this.settle();
    };
    warming.then(warmed, warmed);
    if (this.#isAway) return;
    for (const line of this.#lines) {
      line.pause();
      line.resume();
    }
  }

  /** Called by a line whose backlog is gone. */
  settle(): void {
    if (this.#isAway || this.#isDown || this.#warming !== null) return;
    if (this.#lines.every(({ backlog }) => backlog === 0)) this.#isCatchingUp = false;
  }

  /** Called before a time limit ends: the interruption may have begun unnoticed. */
  verify(): Promise<void> | null {
    return this.#options.verify?.() ?? null;
  }

  /** Called by a line whose waiter waited in vain: this is overload, not a backlog. */
  giveUp(): void {
    if (this.#warming === null) this.#isCatchingUp = false;
  }
}

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
export class Places {
  readonly #most: number;
  readonly #usual: LineBounds;
  readonly #lines: Lines;
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

  /**
   * @param most places; 0 for no limit
   * @param lines those before the same dependency; without it nothing interrupts this one
   */
  constructor(most: number, usual: LineBounds, lines: Lines = new Lines()) {
    this.#most = most;
    this.#usual = usual;
    this.#lines = lines;
    lines.join(this);
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#first.size + this.#others.size;
  }

  /** Waiters that have a time limit. */
  get backlog(): number {
    return this.#backlog;
  }

  /** True if a newcomer is refused at once. */
  get isFull(): boolean {
    return !this.#isFree() && this.#counted >= this.#bounds.waitingMax;
  }

  /**
   * A place if one is free now; null otherwise.
   * @param most places for this newcomer, where they differ
   */
  take(most = this.#most): Leave | null {
    if (!this.#isFree(most)) return null;
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
        this.#lines.settle();
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

  /** Stops the clock; nobody enters. */
  pause(): void {
    if (this.#runsSince === null) return;
    this.#pausedAtMs = this.#nowMs();
    this.#runsSince = null;
    this.#disarm();
    const dueMs = this.#pausedAtMs + this.#bounds.waitMs;
    for (const waiter of this.#all()) waiter.dueMs = Math.max(waiter.dueMs, dueMs);
  }

  /** Starts the clock again and fills the free places. */
  resume(): void {
    if (this.#runsSince !== null) return;
    this.#runsSince = performance.now();
    this.#fill();
    this.#arm(Math.min(...[...this.#all()].map(({ dueMs }) => dueMs)));
  }

  /** Rejects every waiter, each with an error of its own. */
  refuse(errorOf: () => Error): void {
    for (const waiter of [...this.#all()]) waiter.refuse(errorOf());
  }

  #isFree(most = this.#most): boolean {
    return !this.#lines.isAway && (most === 0 || this.#taken < most);
  }

  get #bounds(): LineBounds {
    const { catchUp } = this.#lines;
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
    while (this.#isFree()) {
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
    const verified = this.#lines.verify();
    if (verified === null) this.#refuseLate();
    else void verified.then(() => this.#refuseLate());
  }

  #refuseLate(): void {
    if (this.#runsSince === null) return;
    const nowMs = this.#nowMs() + TIMER_MS;
    const late = [...this.#all()].filter(({ dueMs }) => dueMs <= nowMs);
    if (late.length > 0) this.#lines.giveUp();
    for (const waiter of late) waiter.refuse(null);
    this.#arm(Math.min(...[...this.#all()].map(({ dueMs }) => dueMs)));
  }
}
