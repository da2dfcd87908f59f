import { isIPv4, isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import { type QueueGroup, type Release, releaseOnce } from '../std/semaphore.ts';
import { Buckets, type Rate, type RateDecision } from './bucket.ts';
import { Gate, type GateBounds } from './gate.ts';

/*
 * The limits of principals and networks: `bucket.ts` limits rates, `gate.ts` the requests that
 * compute at a time, and this file requests at the same time.
 */

/** The eight groups of an IPv6 address; null for another text. */
function groupsOf(address: string): string[] | null {
  if (!isIPv6(address)) return null;
  const [head = '', tail] = address.split('::');
  const split = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const before = split(head);
  const after = tail === undefined ? [] : split(tail);
  const missing = Math.max(8 - before.length - after.length, 0);
  return [...before, ...Array.from({ length: missing }, () => '0'), ...after];
}

/**
 * The network by which a client is limited: an IPv4 address, or the /64 of an IPv6 address, because
 * one machine may use a whole /64 (RFC 6177).
 */
export function clientNetwork(address: string): string {
  if (isIPv4(address)) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const groups = groupsOf(address.replace(/%.*$/, ''));
  if (groups === null) return address;
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}

/** Concurrency limit by name. */
export class Concurrency {
  readonly #running = new Map<string, number>();

  get size(): number {
    return this.#running.size;
  }

  /** Admits a request; null if `runningMax` requests of the name are running. 0 is no limit. */
  acquire(name: string, runningMax: number): Release | null {
    const running = this.#running.get(name) ?? 0;
    if (runningMax > 0 && running >= runningMax) return null;
    this.#running.set(name, running + 1);
    return releaseOnce(() => {
      const left = (this.#running.get(name) ?? 1) - 1;
      if (left === 0) this.#running.delete(name);
      else this.#running.set(name, left);
    });
  }
}

/** Limits of one principal. 0 is no limit. */
interface PrincipalLimits extends Rate {
  /** Maximum number of concurrent requests. */
  readonly concurrent: number;
}

/** An API key's own limits. 0 is no limit; null defaults to the settings. */
export interface KeyLimits {
  readonly perMinute: number | null;
  readonly burst: number | null;
  readonly concurrent: number | null;
}

export interface LimitSettings {
  readonly principal: PrincipalLimits;
  /** Failed authentications of one network; 0 is no limit. */
  readonly failuresPerMinute: number;
  readonly gate: GateBounds;
}

/** Maximum number of buckets of a kind, so that memory is bounded. */
const BUCKETS_MAX = 100_000;

/** Maximum number of known credentials, about 300 bytes each; a typical operator has dozens. */
const KNOWN_MAX = 10_000;

/** The principal of a credential that was valid at its last check. */
export interface KnownPrincipal {
  readonly name: string;
  readonly limits: PrincipalLimits;
}

/** The limits of this process alone. A limit over several nodes belongs to the balancer. */
export class Limits {
  readonly gate: Gate;
  readonly concurrency = new Concurrency();
  /**
   * Principals by the hash of a valid credential: their limits are enforced before the credential
   * is checked again, so that requests beyond them cost little.
   */
  readonly known = new LRUCache<string, KnownPrincipal>({ max: KNOWN_MAX });
  readonly #settings: LimitSettings;
  readonly #principals = new Buckets(BUCKETS_MAX);
  readonly #failures = new Buckets(BUCKETS_MAX);

  /** @param queues queues of the database, which the gate joins: an outage stops their clocks */
  constructor(settings: LimitSettings, queues?: QueueGroup) {
    this.#settings = settings;
    this.gate = new Gate(settings.gate, queues);
  }

  /** Number of principals with a bucket. */
  get principals(): number {
    return this.#principals.size;
  }

  /** Limits of a principal: its own, with the settings as defaults. */
  effective(own: KeyLimits | null): PrincipalLimits {
    const usual = this.#settings.principal;
    const rate = own?.perMinute == null ? {} : { perMinute: own.perMinute, burst: own.burst ?? 1 };
    return { ...usual, ...rate, concurrent: own?.concurrent ?? usual.concurrent };
  }

  /** Counts one request of a principal; null without a rate limit. */
  takeRequest(name: string, limits: PrincipalLimits, nowMs: number): RateDecision | null {
    if (limits.perMinute === 0) return null;
    return this.#principals.take(name, limits, nowMs);
  }

  /** Seconds to wait for a network with too many failed authentications; null for another. */
  failureWaitSeconds(network: string, nowMs: number): number | null {
    const rate = this.#failureRate();
    if (rate === null) return null;
    const { isAllowed, resetSeconds } = this.#failures.peek(network, rate, nowMs);
    return isAllowed ? null : resetSeconds;
  }

  /** Counts a failure even beyond the limit, because concurrent requests were checked before it. */
  countFailure(network: string, nowMs: number): void {
    const rate = this.#failureRate();
    if (rate !== null) this.#failures.charge(network, rate, nowMs);
  }

  #failureRate(): Rate | null {
    const { failuresPerMinute } = this.#settings;
    return failuresPerMinute === 0
      ? null
      : { perMinute: failuresPerMinute, burst: failuresPerMinute };
  }
}
