import type { FastifyRequest } from 'fastify';
import type { Gate } from '../../limits/gate.ts';
import type { AfterWrite } from '../../std/body-stream.ts';
import type { RequestContext } from '../context.ts';

/**
 * Least speed of a reader, in bytes per second: 128 kbit/s, a slow mobile connection. An answer of
 * 20 MB may take 20 minutes.
 */
const BYTES_PER_SECOND_MIN = 16_384;

/** Answers without a place at a time, each with about 1 MB. */
const WAITING_MAX = 128;

/** Wait from which a reader may be closed in favour of others: it takes less than 4 Mbit/s. */
const SLOW_MS = 1_000;

/** An answer that waits for its reader. */
interface Wait {
  readonly sinceMs: number;
  readonly close: () => void;
}

/**
 * Gives the places of begun answers to others. An answer has none while it waits for its reader,
 * and takes turns with the requests that wait for a place. The connection of a reader below the
 * least speed is closed. Beyond `WAITING_MAX` answers, so is that of the slowest reader; if none is
 * slow, an answer keeps its place.
 */
export class Readers {
  readonly #gate: Gate;
  readonly #stallMs: number;
  /** The longest wait is the first. */
  readonly #waits = new Set<Wait>();
  /** Answers that wait for a place. */
  #resuming = 0;

  /** @param stallMs time that a reader may be behind the least speed */
  constructor(gate: Gate, stallMs: number) {
    this.#gate = gate;
    this.#stallMs = stallMs;
  }

  /** Follows the writes of an answer. */
  follow({ context, raw }: Pick<FastifyRequest, 'context' | 'raw'>): AfterWrite {
    const close = (): void => {
      raw.socket.destroy();
    };
    let leftMs = this.#stallMs;
    const waitForReader = async (drained: Promise<void>): Promise<void> => {
      const wait = { sinceMs: performance.now(), close };
      const timer = setTimeout(close, leftMs);
      const hasRoom = this.#makeRoom(wait.sinceMs);
      if (hasRoom) {
        this.#waits.add(wait);
        context.releasePlace();
      }
      await drained;
      this.#waits.delete(wait);
      clearTimeout(timer);
      leftMs -= performance.now() - wait.sinceMs;
      if (hasRoom && !context.work.isOver) await this.#takePlace(context);
    };
    return (bytes, drained) => {
      leftMs = Math.min(this.#stallMs, leftMs + (bytes * 1_000) / BYTES_PER_SECOND_MIN);
      if (drained !== null) return waitForReader(drained);
      if (!this.#gate.isWaitedFor(context.limitName) || !this.#hasRoom) return null;
      context.releasePlace();
      return this.#takePlace(context);
    };
  }

  get #hasRoom(): boolean {
    return this.#waits.size + this.#resuming < WAITING_MAX;
  }

  /** True if another answer may wait, possibly instead of the one that waits for the longest. */
  #makeRoom(nowMs: number): boolean {
    if (this.#hasRoom) return true;
    const [slowest] = this.#waits;
    if (slowest === undefined || nowMs - slowest.sinceMs < SLOW_MS) return false;
    this.#waits.delete(slowest);
    slowest.close();
    return true;
  }

  /** Takes a place again. An answer that has begun does not fail for lack of one. */
  async #takePlace(context: RequestContext): Promise<void> {
    const { limitName, work } = context;
    if (limitName === '') return;
    this.#resuming += 1;
    const options = { signal: work.signal, isUntimed: true };
    const place = await this.#gate.acquire(limitName, options).catch(() => null);
    this.#resuming -= 1;
    if (place !== null) context.holdPlace(place);
  }
}
