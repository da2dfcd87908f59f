/** Releases a permit; a second call does nothing. */
export type Release = () => void;

/** Makes a release whose second call does nothing. */
export function releaseOnce(release: () => void): Release {
  let isHeld = true;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    release();
  };
}

/** Bounds of a queue. */
export interface QueueBounds {
  readonly waitingMax: number;
  readonly waitMs: number;
}

/**
 * Backlog of an interruption, as a multiple of the requests that arrive meanwhile, and its waiting
 * time, as a multiple of the interruption. At 60 % of the capacity each request waits for 0.6 of
 * the interruption, and 1.5 of it pass until the backlog is gone. The rest is for connections and
 * caches that are cold, and for a machine that has become slower.
 */
const BACKLOG = 2;
const BACKLOG_TIME = 3;

/** Length that an interruption counts as at least: after it all connections are made again. */
const INTERRUPTION_MS_MIN = 1_000;

/** Duration of a check from which the dependency was interrupted, although it answered. */
const SILENT_MS = 100;

/**
 * The queues for one dependency, such as the database. An interruption of the dependency stops the
 * clocks of its queues. Afterwards the waiters are a backlog, not overload: wider bounds apply
 * until all queues have been empty once, or until a waiter has timed out. The bounds follow from
 * the length of the interruption and from the rate of admissions before it.
 */
export class QueueGroup {
  readonly #check: () => Promise<void> | null;
  readonly #queues = new Set<Semaphore>();
  #isAway = false;
  #isDown = false;
  #awaySinceMs = 0;
  /** Length of the interruption whose backlog remains, in milliseconds; 0 without one. */
  #lengthMs = 0;
  /** Work after which the dependency can serve its full load again; null if there is none. */
  #recovery: Promise<unknown> | null = null;

  /** @param check checks whether an interruption has begun; null if the last answer is recent */
  constructor(check: () => Promise<void> | null = () => null) {
    this.#check = check;
  }

  /** True during an interruption: no permits are granted, and all clocks are stopped. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** True from an interruption until its backlog is gone. */
  get isCatchingUp(): boolean {
    return this.#lengthMs > 0;
  }

  /**
   * Length of the interruption that lasts, or whose backlog remains, in milliseconds; 0 without
   * one.
   */
  get interruptedMs(): number {
    if (!this.#isAway) return this.#lengthMs;
    return Math.max(this.#lengthMs, performance.now() - this.#awaySinceMs);
  }

  /** Number of waiters with a timeout, and of reservations, in all queues. */
  get backlog(): number {
    let backlog = 0;
    for (const queue of this.#queues) backlog += queue.backlog;
    return backlog;
  }

  add(queue: Semaphore): void {
    this.#queues.add(queue);
  }

  /** Removes a queue without waiters. */
  remove(queue: Semaphore): void {
    this.#queues.delete(queue);
  }

  /** Starts an interruption. @param sinceMs its begin, if it is noticed only now */
  pause(sinceMs = performance.now()): void {
    this.#isAway = true;
    this.#awaySinceMs = sinceMs;
    this.#lengthen(INTERRUPTION_MS_MIN);
    for (const queue of this.#queues) queue.pause();
  }

  /** Rejects all waiters, each with its own error, because the interruption takes too long. */
  reject(errorOf: () => Error): void {
    this.#lengthMs = this.interruptedMs;
    this.#isAway = false;
    this.#isDown = true;
    for (const queue of this.#queues) queue.reject(errorOf);
    for (const queue of this.#queues) queue.resume();
  }

  /** Ends the interruption. */
  resume(): void {
    this.#lengthMs = this.interruptedMs;
    // The time limits of present waiters follow from its whole length.
    if (this.#isAway) for (const queue of this.#queues) queue.extend();
    this.#isAway = false;
    this.#isDown = false;
    for (const queue of this.#queues) queue.resume();
    this.settle();
  }

  /** Applies the wider bounds at least until the dependency has recovered. */
  recover(recovery: Promise<unknown>): void {
    this.#lengthen(INTERRUPTION_MS_MIN);
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
    if (this.#lengthMs === 0 || this.#isAway || this.#isDown || this.#recovery !== null) return;
    if (this.backlog === 0) this.#lengthMs = 0;
  }

  /**
   * Called before waiters time out, and before one is rejected because a queue is full: an
   * interruption may have begun unnoticed. Null if the last answer of the dependency is recent.
   */
  verify(): Promise<void> | null {
    const begunMs = performance.now();
    const verified = this.#check();
    if (verified === null) return null;
    return verified.then(() => {
      const ms = performance.now() - begunMs;
      if (ms > SILENT_MS && !this.#isDown) this.#lengthen(ms);
    });
  }

  /** Called by a queue when a waiter timed out: the dependency is overloaded, not catching up. */
  reportTimeout(): void {
    if (this.#recovery === null) this.#lengthMs = 0;
  }

  #lengthen(ms: number): void {
    this.#lengthMs = Math.max(this.#lengthMs, ms);
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

const SECOND_MS = 1_000;

/** Weight of an earlier rate in the next second. */
const DECAY = 0.9;

/** Events per second, as the highest rate of the last seconds: an interruption has none. */
class Meter {
  #count = 0;
  #sinceMs = performance.now();
  #perSecond = 0;

  count(): void {
    this.#roll();
    this.#count += 1;
  }

  get perSecond(): number {
    return Math.max(this.#perSecond, this.#count);
  }

  #roll(): void {
    const ms = performance.now() - this.#sinceMs;
    if (ms < SECOND_MS) return;
    const earlier = this.#perSecond * DECAY ** (ms / SECOND_MS);
    this.#perSecond = Math.max((this.#count * SECOND_MS) / ms, earlier);
    this.#count = 0;
    this.#sinceMs += ms;
  }
}

/** Maximum by which Node fires a timer early, in milliseconds. */
const TIMER_MS = 1;

/**
 * A counting semaphore with bounded FIFO queues. The clock of the queue stops during interruptions
 * of its group, so an interruption does not use up the timeout of a waiter.
 */
export class Semaphore {
  readonly #permits: number;
  readonly #ownBounds: QueueBounds;
  readonly #group: QueueGroup;
  readonly #meter = new Meter();
  readonly #perSecond: () => number;
  #inUse = 0;
  #counted = 0;
  #backlog = 0;
  #reserved = 0;
  readonly #priority = new Set<Waiter>();
  readonly #untimed = new Set<Waiter>();
  readonly #others = new Set<Waiter>();
  /** True if an untimed waiter is next. */
  #isUntimedNext = true;
  /** Reading of the clock at the last pause. */
  #pausedAtMs = 0;
  /** `performance.now()` at which the clock was started; null while it is stopped. */
  #runsSince: number | null;
  #timer: NodeJS.Timeout | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;

  /**
   * @param permits 0 for no limit
   * @param group the queues for the same dependency; by default nothing interrupts this queue
   * @param perSecond the rate by which a backlog is bounded; by default that of this semaphore
   */
  constructor(
    permits: number,
    bounds: QueueBounds,
    group: QueueGroup = new QueueGroup(),
    perSecond?: () => number,
  ) {
    this.#permits = permits;
    this.#ownBounds = bounds;
    this.#group = group;
    this.#perSecond = perSecond ?? (() => this.perSecond);
    this.#runsSince = group.isAway ? null : performance.now();
    group.add(this);
  }

  get inUse(): number {
    return this.#inUse;
  }

  get waiting(): number {
    return this.#priority.size + this.#untimed.size + this.#others.size;
  }

  /** Permits granted per second, as the highest rate of the last seconds. */
  get perSecond(): number {
    return this.#meter.perSecond;
  }

  /** Number of waiters with a timeout, and of reservations. */
  get backlog(): number {
    return this.#backlog + this.#reserved;
  }

  /** True without permits in use, waiters and reservations. */
  get isIdle(): boolean {
    return this.#inUse === 0 && this.waiting === 0 && this.#reserved === 0;
  }

  /** True if `acquire` would return null at once. */
  get isFull(): boolean {
    if (this.#permits === 0 && !this.#group.isAway) return false;
    const free = this.#isFree() ? this.#permits - this.#inUse : 0;
    return this.#counted + this.#reserved >= free + this.#bounds.waitingMax;
  }

  /**
   * Reserves a permit, or a place in the queue, for an `acquire` that follows the release of the
   * reservation; null if the queue is full.
   */
  reserve(): Release | null {
    if (this.isFull) return null;
    this.#reserved += 1;
    return releaseOnce(() => {
      this.#reserved -= 1;
      if (this.backlog === 0) this.#group.settle();
    });
  }

  /** Acquires a permit without waiting, even if it is reserved; null if none is free. */
  tryAcquire(): Release | null {
    if (!this.#isFree()) return null;
    this.#inUse += 1;
    this.#meter.count();
    return releaseOnce(() => {
      this.#inUse -= 1;
      this.#fill();
    });
  }

  /**
   * Acquires a permit, and waits for it in the queue if none is free.
   * @returns null if the queue is full, or after a timeout
   * @throws the reason of the signal, and the error with which the group rejects its waiters
   */
  async acquire(options: AcquireOptions = {}): Promise<Release | null> {
    const { signal, hasPriority = false, isUntimed = false } = options;
    signal?.throwIfAborted();
    const isCounted = !hasPriority && !isUntimed;
    if (isCounted && this.isFull) {
      await this.#group.verify();
      signal?.throwIfAborted();
      if (this.isFull) return null;
    }
    const release = this.tryAcquire();
    if (release !== null) return release;
    const { waitMs } = this.#bounds;
    const patient = isUntimed ? this.#untimed : this.#others;
    const queue = hasPriority ? this.#priority : patient;
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
        if (this.#reserved === 0) this.#group.settle();
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
    this.extend();
  }

  /** Applies the present time limit to the present waiters, from now on. */
  extend(): void {
    const dueMs = this.#nowMs() + this.#bounds.waitMs;
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

  #isFree(): boolean {
    return !this.#group.isAway && (this.#permits === 0 || this.#inUse < this.#permits);
  }

  get #bounds(): QueueBounds {
    const ms = this.#group.interruptedMs;
    if (ms === 0) return this.#ownBounds;
    const { waitingMax, waitMs } = this.#ownBounds;
    return {
      waitingMax: waitingMax + Math.ceil((BACKLOG * this.#perSecond() * ms) / SECOND_MS),
      waitMs: Math.max(waitMs, BACKLOG_TIME * ms),
    };
  }

  *#all(): Iterable<Waiter> {
    yield* this.#priority;
    yield* this.#untimed;
    yield* this.#others;
  }

  #fill(): void {
    while (this.#isFree()) {
      const [next] = this.#priority.size > 0 ? this.#priority : this.#nextQueue();
      if (next === undefined) return;
      next.admit();
    }
  }

  /** Untimed waiters and the others take turns: many long answers would delay the short ones. */
  #nextQueue(): ReadonlySet<Waiter> {
    const isUntimed = this.#others.size === 0 || (this.#isUntimedNext && this.#untimed.size > 0);
    this.#isUntimedNext = !isUntimed;
    return isUntimed ? this.#untimed : this.#others;
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
