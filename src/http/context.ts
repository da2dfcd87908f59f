import type { FastifyRequest } from 'fastify';
import type { Principal } from '../auth/credentials.ts';
import type { PriceBook } from '../book/book.ts';
import type { Scope } from '../catalog/scopes.ts';
import type { NewestRevision } from '../db/newest-revision.ts';
import type { AnswerWork } from '../prices/answer/answer.ts';
import type { Feed } from '../prices/changes/follow.ts';
import type { HeldBytes } from '../std/held-bytes.ts';
import type { Release } from '../std/semaphore.ts';
import type { BodyBytes } from './request-body.ts';
import type { RequestWork } from './work.ts';

/**
 * The access rule of a route: a given scope, the scope of any market, any valid credential, or no
 * credential.
 */
export type Access = { readonly scope: Scope } | 'some-market' | 'any' | 'none';

const NOTHING: Release = () => {};

/** The state of one request. The hooks of `pipeline.ts` fill it in their order. */
export class RequestContext implements AnswerWork {
  /** Cancels the statements of the request if its client disconnects or its deadline passes. */
  readonly work: RequestWork;
  /** Bytes written to its connection before this request. */
  readonly bytesBefore: number;
  /** The body, received while other checks run; null without a body. */
  body: BodyBytes | null = null;
  /** The client network, by which failed authentications are counted. */
  network = '';
  /** Hash of the sent credential, verified or not; empty without one. */
  credential = '';
  /** The name by which its principal is limited; empty until its limits are enforced. */
  limitName = '';
  /** Null until authentication, and on open routes. */
  principal: Principal | null = null;
  /** The `x-min-revision` of another history, which the answer cannot satisfy; else null. */
  unknownMinRevision: string | null = null;
  /** The error of a failed request; null otherwise. */
  failure: unknown = null;

  readonly #checkRevision: () => Promise<NewestRevision>;
  readonly #heldBytes: HeldBytes;
  #release: Release = NOTHING;
  #newest: Promise<NewestRevision> | null = null;

  constructor(
    work: RequestWork,
    heldBytes: HeldBytes,
    checkRevision: () => Promise<NewestRevision>,
    sentBefore: number,
  ) {
    this.work = work;
    this.#heldBytes = heldBytes;
    this.#checkRevision = checkRevision;
    this.bytesBefore = sentBefore;
    work.onEnd(() => this.releasePlace());
  }

  /** Holds a reservation or a place of the gate, until its release or the end of the request. */
  holdPlace(release: Release): void {
    if (this.work.isOver) release();
    else this.#release = release;
  }

  /** Releases what it holds of the gate. */
  releasePlace(): void {
    this.#release();
    this.#release = NOTHING;
  }

  /**
   * The newest revision, by a revision check after the request arrived. Each request has one, and
   * concurrent requests share the query. Rejects while the database is unavailable.
   */
  get newest(): Promise<NewestRevision> {
    if (this.#newest === null) {
      this.#newest = this.#checkRevision();
      // Avoids an unhandled rejection: the error is thrown where the promise is awaited.
      this.#newest.catch(() => {});
    }
    return this.#newest;
  }

  get signal(): AbortSignal {
    return this.work.signal;
  }

  get holdMax(): number {
    return this.#heldBytes.shareMax;
  }

  hold(bytes: number, of?: object): boolean {
    const giveBack = this.#heldBytes.hold(this.limitName, bytes, of);
    if (giveBack === null) return false;
    this.work.onEnd(giveBack);
    return true;
  }

  /** Uses a newest revision that was read for this request. */
  useNewest(newest: NewestRevision): void {
    this.#newest = Promise.resolve(newest);
  }

  /** Requires another revision check, for a request that has waited since the first. */
  resetNewest(): void {
    this.#newest = null;
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    context: RequestContext;
  }
  interface FastifyContextConfig {
    /** Required: a route without it cannot be registered. */
    access?: Access;
    /** True for the one address that calendar tokens open. */
    takesCalendarToken?: boolean;
    /** True for a long poll: it takes no place of the gate. */
    isWaiting?: (request: FastifyRequest) => boolean;
    /** True for a health route, which is never rejected under load. */
    isHealth?: boolean;
    /** True for a script or style sheet: it is small and in memory, and browsers cache it. */
    isPart?: boolean;
  }
  interface FastifyInstance {
    /** The price book; null if it is disabled. */
    book: PriceBook | null;
    /** The change feed and its followers. */
    feed: Feed;
    /** True during a stop, unless other processes take over the connections. */
    isStopping: boolean;
  }
}

/** True for requests that need no credential: pages, health, and unknown addresses. */
export const isOpen = ({ is404, routeOptions }: FastifyRequest): boolean =>
  is404 || routeOptions.config.access === 'none';

/** True for a long poll. */
export const isWaiting = (request: FastifyRequest): boolean =>
  request.routeOptions.config.isWaiting?.(request) === true;
