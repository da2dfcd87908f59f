import { setTimeout as pause } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import { LRUCache } from 'lru-cache';
import type { Primary } from './as-of.ts';
import { DatabaseFailure } from './failures.ts';
import type { Link } from './link/link.ts';
import type { NewestRevision } from './newest-revision.ts';
import { findRevision, isAfter, wireText } from './revisions.ts';
import type { Database } from './schema.ts';

/** A lower bound for the data of an answer: a revision as on the wire, or the newest there is. */
type MinRevision = string;

/** The bound that asks for the newest revision of the primary. */
export const LATEST = 'latest';

/**
 * `here`: this server has the revision. `later`: it has a smaller number and the same epoch.
 * `other`: it has another commit of this number, or another epoch.
 */
type Found = 'here' | 'later' | 'other';

interface MinRevisionOptions {
  readonly db: Kysely<Database>;
  readonly link: Pick<Link, 'newestRevision' | 'lagMs' | 'lastRead' | 'isStandby'>;
  readonly primary: Pick<Primary, 'newest'>;
  /** Maximum wait of a request for a revision, in milliseconds. */
  readonly waitMs: number;
  /** Maximum lag of a standby before the node reports it, in milliseconds; 0 for ever. */
  readonly lagMsMax: number;
}

/** A revision that a client has seen and this server lacks. */
interface Missing {
  readonly text: string;
  /** Arrival time of the request, by `performance.now()`. */
  readonly atMs: number;
}

const POLL_MS = 5;
/** Revisions that are known to be here, so that a walk asks the database once. */
const KNOWN_MAX = 1_000;

const notHere = (detail: string): DatabaseFailure => new DatabaseFailure('not_replayed', detail);

/**
 * Holds answers to a revision that the client has already seen, possibly on another node, so that
 * time never runs backwards for it. Also reports if this node is behind.
 */
export class MinRevisionCheck {
  readonly counts = { waits: 0, refusals: 0, others: 0 };
  readonly #options: MinRevisionOptions;
  readonly #known = new LRUCache<string, true>({ max: KNOWN_MAX });
  #missing: Missing | null = null;

  constructor(options: MinRevisionOptions) {
    this.#options = options;
  }

  /**
   * Waits within the bound until this server has a revision.
   * @returns the newest revision, which contains it, and false if it belongs to another history
   * @throws DatabaseFailure `not_replayed` after the wait, and what the revision check throws
   */
  async reach(
    min: MinRevision,
  ): Promise<{ readonly newest: NewestRevision; readonly isKnown: boolean }> {
    const { link, waitMs } = this.#options;
    const text = min === LATEST ? await this.#latest() : min;
    const begun = performance.now();
    for (let isFirst = true; ; isFirst = false) {
      const newest = await link.newestRevision();
      const found = text === null ? 'here' : await this.#find(newest, text);
      if (found !== 'later' || text === null) {
        if (found === 'other') this.counts.others += 1;
        return { newest, isKnown: found === 'here' };
      }
      if (isFirst) this.counts.waits += 1;
      if (performance.now() - begun >= waitMs) {
        this.counts.refusals += 1;
        // A primary lacks nothing: such a number was never committed.
        if (link.isStandby) this.#missing = { text, atMs: begun };
        throw notHere(
          'The server that answers does not have this x-min-revision yet; repeat the request',
        );
      }
      await pause(POLL_MS);
    }
  }

  /**
   * Since when this node is behind, in milliseconds before now; null if it is current. A standby is
   * behind if it has lacked received data for longer than the bound, or lacks a revision that a
   * client has seen. The latter ends once it shows everything received after that request: a
   * revision that does not exist keeps no node out.
   */
  behindMs(): number | null {
    const { link, lagMsMax } = this.#options;
    const lagMs = link.lagMs;
    if (lagMsMax > 0 && lagMs > lagMsMax) return lagMs;
    const missing = this.#missing;
    if (missing === null) return null;
    const nowMs = performance.now();
    const [, number = ''] = missing.text.split('.');
    const { lastRead } = link;
    const hasIt = lastRead !== null && !isAfter(number, lastRead.revision);
    if (link.isStandby && !hasIt && nowMs - lagMs <= missing.atMs) return nowMs - missing.atMs;
    this.#missing = null;
    return null;
  }

  /** The newest revision of the primary, asked after this call; null if this is the primary. */
  async #latest(): Promise<string | null> {
    if (!this.#options.link.isStandby) return null;
    const text = await this.#options.primary.newest();
    if (text !== null) return text;
    throw notHere(
      'This node reads a standby and cannot ask the primary for its newest revision; repeat the ' +
        'request, or name a revision in x-min-revision',
    );
  }

  async #find(newest: NewestRevision, text: string): Promise<Found> {
    const [prefix = '', number = ''] = text.split('.');
    if (!prefix.startsWith(newest.epoch)) return 'other';
    if (isAfter(number, newest.revision)) return 'later';
    if (text === wireText(newest.epoch, newest.revision)) return 'here';
    // A number that was lost and taken again is another commit.
    const key = `${newest.history} ${text}`;
    if (this.#known.get(key)) return 'here';
    const { revision } = await findRevision(this.#options.db, text);
    if (revision === null) return 'other';
    this.#known.set(key, true);
    return 'here';
  }
}
