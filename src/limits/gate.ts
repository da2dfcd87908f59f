import {
  type AcquireOptions,
  type QueueBounds,
  QueueGroup,
  type Release,
  Semaphore,
} from '../std/semaphore.ts';

/** Part of the places, and of the queue, that one principal may have. */
const SHARE = 1 / 4;

const shareOf = (all: number): number => Math.min(all, Math.max(1, Math.floor(all * SHARE)));

const STRANGERS = 'strangers of ';

/** The name under which requests of a network reserve while their principal is unknown. */
export const strangersOf = (network: string): string => `${STRANGERS}${network}`;

const NOTHING: Release = () => {};

/** The bounds of a gate. */
export interface GateBounds extends QueueBounds {
  /** Requests that compute at a time; 0 for no limit. */
  readonly runningMax: number;
}

/**
 * Bounds the requests that compute at a time. A place is for computing: a request has none while
 * its body arrives and while its client reads. One principal has at most a quarter of the places
 * and of the queue, and its waiters do not block those of others. The backlog of an interruption
 * is bounded as a whole only, as a service may have a single client.
 */
export class Gate {
  readonly #all: Semaphore;
  /** Queues of the principals with requests; idle ones are removed. */
  readonly #own = new Map<string, Semaphore>();
  readonly #bounds: GateBounds;
  readonly #group: QueueGroup;

  /** @param group queues of the database, which the gate joins: an outage stops their clocks */
  constructor(bounds: GateBounds, group = new QueueGroup()) {
    this.#bounds = bounds;
    this.#group = group;
    this.#all = new Semaphore(bounds.runningMax, bounds, group);
  }

  get inUse(): number {
    return this.#all.inUse;
  }

  get waiting(): number {
    return [...this.#own.values()].reduce((sum, own) => sum + own.waiting, this.#all.waiting);
  }

  /**
   * Reserves a place, or one in the queue, for a request whose checks begin: rejections are cheap
   * only before them.
   * @param name the principal, or the strangers of a network
   * @returns null if there is none for it
   */
  reserve(name: string): Release | null {
    const all = this.#all.reserve();
    if (all === null || this.#bounds.runningMax === 0) return all;
    const own = this.#ownOf(name);
    const mine = own.reserve();
    if (mine === null) all();
    return mine && this.#together(name, own, [all, mine]);
  }

  /** True if another request waits for the place of a principal. */
  isWaitedFor(name: string): boolean {
    return this.#all.waiting > 0 || (this.#own.get(name)?.waiting ?? 0) > 0;
  }

  /** Checks that no interruption has begun unnoticed; null if that is known. */
  verify(): Promise<void> | null {
    return this.#group.verify();
  }

  /** Acquires a place without waiting; null if none is free. */
  tryAcquire(name: string): Release | null {
    if (this.#all.isFull) return null;
    if (this.#bounds.runningMax === 0) return this.#all.tryAcquire();
    const own = this.#ownOf(name);
    const mine = own.tryAcquire();
    const place = mine && this.#all.tryAcquire();
    if (place === null) mine?.();
    if (place === null || mine === null) this.#removeIdle(name, own);
    return place && mine && this.#together(name, own, [place, mine]);
  }

  /**
   * Acquires a place, and waits for it if none is free.
   * @returns null if the queue is full, or after a timeout
   * @throws the reason of the signal, and the error with which the group rejects its waiters
   */
  async acquire(name: string, options: AcquireOptions = {}): Promise<Release | null> {
    if (this.#bounds.runningMax === 0) return this.#all.acquire(options);
    // Waiters in the queue of a principal count in that of all as well.
    const reserved = options.isUntimed ? NOTHING : await this.#reserveVerified();
    if (reserved === null) return null;
    const own = this.#ownOf(name);
    let mine: Release | null = null;
    let place: Release | null = null;
    try {
      mine = await own.acquire(options);
      reserved();
      place = mine && (await this.#all.acquire(options));
    } finally {
      reserved();
      if (place === null) mine?.();
      this.#removeIdle(name, own);
    }
    return place && mine && this.#together(name, own, [place, mine]);
  }

  async #reserveVerified(): Promise<Release | null> {
    const reserved = this.#all.reserve();
    if (reserved !== null) return reserved;
    await this.verify();
    return this.#all.reserve();
  }

  #together(name: string, own: Semaphore, releases: readonly Release[]): Release {
    return () => {
      for (const release of releases) release();
      this.#removeIdle(name, own);
    };
  }

  #ownOf(name: string): Semaphore {
    const known = this.#own.get(name);
    if (known) return known;
    const { runningMax, waitingMax, waitMs } = this.#bounds;
    const bounds = { waitingMax: shareOf(waitingMax), waitMs };
    // A service may have a single client, whose backlog is that of all, but not a single stranger.
    const part = name.startsWith(STRANGERS) ? SHARE : 1;
    const rate = (): number => this.#all.perSecond * part;
    const own = new Semaphore(shareOf(runningMax), bounds, this.#group, rate);
    this.#own.set(name, own);
    return own;
  }

  #removeIdle(name: string, own: Semaphore): void {
    if (!own.isIdle || this.#own.get(name) !== own) return;
    this.#own.delete(name);
    this.#group.remove(own);
  }
}
