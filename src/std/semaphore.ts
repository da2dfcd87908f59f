/** Releases a permit; a second call does nothing. */
export type Release = () => void;

/** Bounds of a queue. */
export interface QueueBounds {
  readonly waitingMax: number;
  readonly waitMs: number;
}

/** Default bounds of a backlog: longer than a restart of a database takes. */
const CATCH_UP: QueueBounds = { waitingMax: 512, waitMs: 2_000 };

interface QueueGroupOptions {
  /** Bounds from an interruption until the backlog is gone. */
  readonly catchUp?: QueueBounds | undefined;
  /** Checks whether an interruption has begun; null if the last answer is recent. */
  readonly verify?: () => Promise<void> | null;
}

/**
 * The queues for one dependency, such as the database. An interruption of the dependency stops the
 * clocks of its queues. Afterwards the waiters are a backlog, not overload: wider bounds apply
 * until all queues have been empty once, or until a waiter has timed out.
 */
export class QueueGroup {
  readonly #options: QueueGroupOptions;
  readonly #queues: Semaphore[] = [];
  #isAway = false;
  #isDown = false;
  #isCatchingUp = false;
  /** Work after which the dependency can serve its full load again; null if there is none. */
  #recovery: Promise<unknown> | null = null;

  constructor(options: QueueGroupOptions = {}) {
    this.#options = options;
  }

  /** True during an interruption: no permits are granted, and all clocks are stopped. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** The wider bounds while they apply, otherwise null. */
  get catchUp(): QueueBounds | null {
    return this.#isCatchingUp ? (this.#options.catchUp ?? CATCH_UP) : null;
  }

  add(queue: Semaphore): void {
    this.#queues.push(queue);
  }

  /** Starts an interruption. */
  pause(): void {
    this.#isAway = true;
    this.#isCatchingUp = true;
    for (const queue of this.#queues) queue.pause();
  }

  /** Rejects all waiters, each with its own error, because the interruption takes too long. */
  reject(errorOf: () => Error): void {
    this.#isAway = false;
    this.#isDown = true;
    for (const queue of this.#queues) queue.reject(errorOf);
    for (const queue of this.#queues) queue.resume();
  }

  /** Ends the interruption. */
  resume(): void {
    this.#isAway = false;
    this.#isDown = false;
    for (const queue of this.#queues) queue.resume();
    this.settle();
  }

  /** Applies the wider bounds at least until the dependency has recovered. */
  recover(recovery: Promise<unknown>): void {
    this.#isCatchingUp = true;
    this.#recovery = recovery;
    const recovered = (): void => {
      if (this.#recovery !== recovery) return;
      this.#recovery = null;
      this.settle();
    };
    recovery.then(recovered, recovered);
  }

  /** Called by a queue when its backlog is gone. */
  settle(): void {
    if (this.#isAway || this.#isDown || this.#recovery !== null) return;
    if (this.#queues.every(({ backlog }) => backlog === 0)) this.#isCatchingUp = false;
  }

  /** Called before waiters time out, because an interruption may have begun unnoticed. */
  verify(): Promise<void> | null {
    return this.#options.verify?.() ?? null;
  }

  /** Called by a queue when a waiter timed out: the dependency is overloaded, not catching up. */
  reportTimeout(): void {
    if (this.#recovery === null) this.#isCatchingUp = false;
  }
}

export interface AcquireOptions {
  /** Removes the waiter from the queue on abort. */
  readonly signal?: AbortSignal | undefined;
  /** Queues before the others, and does not count towards `waitingMax`. */
  readonly hasPriority?: boolean;
  /** Waits without a timeout, and does not count towards `waitingMax`. */
  readonly isUntimed?: boolean;
}

interface Waiter {
  readonly admit: () => void;
  /** Rejects the waiter with an error; null makes `acquire` return null. */
  readonly reject: (error: Error | null) => void;
  /** Deadline, on the clock of the queue. */
  dueMs: number;
}

/** Maximum by which Node fires a timer early, in milliseconds. */
const TIMER_MS = 1;

/**
 * A counting semaphore with a bounded FIFO queue. The clock of the queue stops during interruptions
 * of its group, so an interruption does not use up the timeout of a waiter.
 */
export class Semaphore {
  readonly #permits: number;
  readonly #ownBounds: QueueBounds;
  readonly #group: QueueGroup;
  #inUse = 0;
  #counted = 0;
  #backlog = 0;
  readonly #priority = new Set<Waiter>();
  readonly #others = new Set<Waiter>();
  /** Reading of the clock at the last pause. */
  #pausedAtMs = 0;
  /** `performance.now()` at which the clock was started; null while it is stopped. */
  #runsSince: number | null = performance.now();
  #timer: NodeJS.Timeout | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;

  /**
   * @param permits 0 for no limit
   * @param group the queues for the same dependency; by default nothing interrupts this queue
   */
  constructor(permits: number, bounds: QueueBounds, group: QueueGroup = new QueueGroup()) {
    this.#permits = permits;
    this.#ownBounds = bounds;
    this.#group = group;
    group.add(this);
  }

  get inUse(): number {
    return this.#inUse;
  }

  get waiting(): number {
    return this.#priority.size + this.#others.size;
  }

  /** Number of waiters with a timeout. */
  get backlog(): number {
    return this.#backlog;
  }

  /** True if `acquire` would return null at once. */
  get isFull(): boolean {
    return !this.#isFree() && this.#counted >= this.#bounds.waitingMax;
  }

  /**
   * Acquires a permit without waiting; null if none is free.
   * @param permits the limit for this call, where it differs
   */
  tryAcquire(permits = this.#permits): Release | null {
    if (!this.#isFree(permits)) return null;
    this.#inUse += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#inUse -= 1;
      this.#fill();
    };
  }

  /**
   * Acquires a permit, and waits for it in the queue if none is free.
   * @returns null if the queue is full, or after a timeout
   * @throws the reason of the signal, and the error with which the group rejects its waiters
   */
  async acquire(options: AcquireOptions = {}): Promise<Release | null> {
    const { signal, hasPriority = false, isUntimed = false } = options;
    signal?.throwIfAborted();
    const release = this.tryAcquire();
    if (release !== null) return release;
    const isCounted = !hasPriority && !isUntimed;
    const { waitingMax, waitMs } = this.#bounds;
    if (isCounted && this.#counted >= waitingMax) return null;
    const queue = hasPriority ? this.#priority : this.#others;
    if (isCounted) this.#counted += 1;
    if (!isUntimed) this.#backlog += 1;
    return new Promise((resolve, reject) => {
      const end = (): void => {
        signal?.removeEventListener('abort', abort);
        queue.delete(waiter);
        if (isCounted) this.#counted -= 1;
        if (!isUntimed) this.#backlog -= 1;
        if (this.#backlog > 0) return;
        this.#disarm();
        this.#group.settle();
      };
      const waiter: Waiter = {
        admit: () => {
          // `end` of the last waiter may restore the narrower bounds, so acquire before it.
          const acquired = this.tryAcquire();
          end();
          resolve(acquired);
        },
        reject: (error) => {
          end();
          if (error === null) resolve(null);
          else reject(error);
        },
        dueMs: isUntimed ? Number.POSITIVE_INFINITY : this.#nowMs() + waitMs,
      };
      const abort = (): void => waiter.reject(signal?.reason);
      signal?.addEventListener('abort', abort, { once: true });
      queue.add(waiter);
      this.#arm(waiter.dueMs);
    });
  }

  /** Stops the clock; grants no permits. */
  pause(): void {
    if (this.#runsSince === null) return;
    this.#pausedAtMs = this.#nowMs();
    this.#runsSince = null;
    this.#disarm();
    const dueMs = this.#pausedAtMs + this.#bounds.waitMs;
    for (const waiter of this.#all()) waiter.dueMs = Math.max(waiter.dueMs, dueMs);
  }

  /** Starts the clock and grants the free permits. */
  resume(): void {
    if (this.#runsSince !== null) return;
    this.#runsSince = performance.now();
    this.#fill();
    this.#arm(Math.min(...[...this.#all()].map(({ dueMs }) => dueMs)));
  }

  /** Rejects every waiter, each with its own error. */
  reject(errorOf: () => Error): void {
    for (const waiter of [...this.#all()]) waiter.reject(errorOf());
  }

  #isFree(permits = this.#permits): boolean {
    return !this.#group.isAway && (permits === 0 || this.#inUse < permits);
  }

  get #bounds(): QueueBounds {
    const { catchUp } = this.#group;
    if (catchUp === null) return this.#ownBounds;
    return {
      waitingMax: Math.max(this.#ownBounds.waitingMax, catchUp.waitingMax),
      waitMs: Math.max(this.#ownBounds.waitMs, catchUp.waitMs),
    };
  }

  *#all(): Iterable<Waiter> {
    yield* this.#priority;
    yield* this.#others;
  }

  #fill(): void {
    while (this.#isFree()) {
      const [next] = this.#priority.size > 0 ? this.#priority : this.#others;
      if (next === undefined) return;
      next.admit();
    }
  }

  #nowMs(): number {
    return this.#pausedAtMs + (this.#runsSince === null ? 0 : performance.now() - this.#runsSince);
  }

  /** Makes the timer fire at `dueMs` at the latest. */
  #arm(dueMs: number): void {
    if (this.#runsSince === null || dueMs === Number.POSITIVE_INFINITY) return;
    if (this.#timer !== undefined && this.#timerDueMs <= dueMs) return;
    this.#disarm();
    this.#timerDueMs = dueMs;
    this.#timer = setTimeout(() => this.#verifyDue(), Math.max(0, dueMs - this.#nowMs()));
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #verifyDue(): void {
    this.#timer = undefined;
    const verified = this.#group.verify();
    if (verified === null) this.#rejectDue();
    else void verified.then(() => this.#rejectDue());
  }

  #rejectDue(): void {
    if (this.#runsSince === null) return;
    const nowMs = this.#nowMs() + TIMER_MS;
    const due = [...this.#all()].filter(({ dueMs }) => dueMs <= nowMs);
    if (due.length > 0) this.#group.reportTimeout();
    for (const waiter of due) waiter.reject(null);
    this.#arm(Math.min(...[...this.#all()].map(({ dueMs }) => dueMs)));
  }
}
