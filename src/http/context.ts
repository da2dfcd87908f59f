import type { FastifyRequest } from 'fastify';
import type { Principal } from '../auth/principal.ts';
import type { PriceBook } from '../book/book.ts';
import type { Scope } from '../catalog/scopes.ts';
import type { Newest } from '../db/newest.ts';
import type { Feed } from '../prices/changes/follow.ts';
import type { Release } from '../std/semaphore.ts';
import type { BodyBytes } from './body.ts';
import type { Work } from './work.ts';

/**
 * The callers that a route admits: holders of a scope, of the scope of any market, anyone with a
 * credential, or anyone at all.
 */
export type Access = { readonly scope: Scope } | 'some-market' | 'any' | 'none';

/** The record of one request, which the hooks of `pipeline.ts` fill in their order. */
export class RequestContext {
  /** Cancels the statements that run for the request, when its client leaves or time is up. */
  readonly work: Work;
  /** Bytes that its connection had sent before it. */
  readonly sentBefore: number;
  /** The bytes of its body, which arrive while other things are checked; null without a body. */
  body: BodyBytes | null = null;
  /** True while it has to wait for a place of the gate before it may ask the database. */
  needsPlace = false;
  /** Releases the place that it has; null without one. */
  leavePlace: Release | null = null;
  /** The network that it came from, as far as failed authentications are counted. */
  network = '';
  /** Null on routes that are open to anyone. */
  principal: Principal | null = null;
  /** The error that it failed with; null where it was answered. */
  failure: unknown = null;

  readonly #look: () => Promise<Newest>;
  #newest: Promise<Newest> | null = null;

  constructor(work: Work, look: () => Promise<Newest>, sentBefore: number) {
    this.work = work;
    this.#look = look;
    this.sentBefore = sentBefore;
  }

  /**
   * The newest revision, read after the request came: each request reads it once, and concurrent
   * requests share the query. Rejects while the database is away.
   */
  get newest(): Promise<Newest> {
    if (this.#newest === null) {
      this.#newest = this.#look();
      // A failure waits for who awaits it.
      this.#newest.catch(() => {});
    }
    return this.#newest;
  }

  /** Has the newest revision read again, for a request that has waited since. */
  forgetNewest(): void {
    this.#newest = null;
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    context: RequestContext;
  }
  interface FastifyContextConfig {
    /** Every route states it; a route without it does not register. */
    access?: Access;
    /** True for a request that waits for new data: it takes no place of the gate. */
    isWaiting?: (request: FastifyRequest) => boolean;
    /** A health address: it is answered however many requests there are. */
    isHealth?: boolean;
    /** A small part of a page, which is dead without it: it is in memory, and browsers keep it. */
    isPart?: boolean;
  }
  interface FastifyInstance {
    /** Prices that are kept ready; null where the settings keep none. */
    book: PriceBook | null;
    /** The feed of changes, and the readers that wait for the next. */
    feed: Feed;
    /** True once the service stops, if no other process takes over its connections. */
    isStopping: boolean;
  }
}

/** True for requests without a caller: pages, health, and addresses that do not exist. */
export const isOpen = ({ is404, routeOptions }: FastifyRequest): boolean =>
  is404 || routeOptions.config.access === 'none';

/** True for a request that waits for new data. */
export const isWaiting = (request: FastifyRequest): boolean =>
  request.routeOptions.config.isWaiting?.(request) === true;
