import { setTimeout as pause } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import { LRUCache } from 'lru-cache';
import type { Primary } from './as-of.ts';
import { DatabaseFailure } from './failures.ts';
import type { Link } from './link/link.ts';
import type { NewestRevision } from './newest-revision.ts';
import { findRevision, isAfter, wireText } from './revisions.ts';
import type { Database } from './schema.ts';

/** A lower bound for the data of an answer: a revision in the wire format, or `LATEST`. */
type MinRevision = string;

/** The bound that requires the newest revision of the primary. */
export const LATEST = 'latest';

/**
 * `here`: this server has the revision. `later`: its newest revision has a smaller number in the
 * same epoch. `other`: it has another epoch, or another commit with this number.
 */
type RevisionPresence = 'here' | 'later' | 'other';

interface MinRevisionOptions {
  readonly db: Kysely<Database>;
  readonly link: Pick<Link, 'newestRevision' | 'lagMs' | 'isStandby'>;
  readonly primary: Pick<Primary, 'newest'>;
  /** Maximum wait of a request for a revision, in milliseconds. */
  readonly waitMs: number;
  /** Maximum lag of a standby before the node reports it, in milliseconds; 0 for no limit. */
  readonly lagMsMax: number;
}

const POLL_MS = 5;
/** Most cached revisions of this server, so that reading all pages of an answer runs one query. */
const KNOWN_MAX = 1_000;

const notReplayed = (detail: string): DatabaseFailure =>
  new DatabaseFailure('not_replayed', detail);

/**
 * Enforces `x-min-revision`: an answer contains the revision that the client has already seen,
 * possibly on another node, so that its data never get older. Also reports if this node is behind,
 * which no client can cause.
 */
export class MinRevisionCheck {
  readonly counts = { waits: 0, refusals: 0, others: 0 };
  readonly #options: MinRevisionOptions;
  readonly #known = new LRUCache<string, true>({ max: KNOWN_MAX });

  constructor(options: MinRevisionOptions) {
    this.#options = options;
  }

  /**
   * Waits within the bound until a standby has a revision. A primary lacks nothing: a number beyond
   * its newest one was lost, for example by a restore.
   * @returns the newest revision; `isKnown` is false if `min` belongs to another history
   * @throws DatabaseFailure `not_replayed` after the wait, and the errors of the revision check
   */
  async reach(
    min: MinRevision,
  ): Promise<{ readonly newest: NewestRevision; readonly isKnown: boolean }> {
    const { link, waitMs } = this.#options;
    const text = min === LATEST ? await this.#latest() : min;
    const begun = performance.now();
    for (let isFirst = true; ; isFirst = false) {
      const wasStandby = link.isStandby;
      const newest = await link.newestRevision();
      const found = text === null ? 'here' : await this.#find(newest, text);
      // The link may have moved from a standby to the primary after the read.
      if (found !== 'later' || !(wasStandby || link.isStandby)) {
        if (found !== 'here') this.counts.others += 1;
        return { newest, isKnown: found === 'here' };
      }
      if (isFirst) this.counts.waits += 1;
      if (performance.now() - begun >= waitMs) {
        this.counts.refusals += 1;
        throw notReplayed(
          'The server in use does not have this x-min-revision yet; repeat the request',
        );
      }
      await pause(POLL_MS);
    }
  }

  /** Time for which a standby has been behind its bound, in milliseconds; null if it is current. */
  behindMs(): number | null {
    const { link, lagMsMax } = this.#options;
    const { lagMs } = link;
    return lagMsMax > 0 && lagMs > lagMsMax ? lagMs : null;
  }

  /** The newest revision of the primary, queried after this call; null if this is the primary. */
  async #latest(): Promise<string | null> {
    if (!this.#options.link.isStandby) return null;
    const text = await this.#options.primary.newest();
    if (text !== null) return text;
    throw notReplayed(
      'This node reads a standby, and no primary answers with its newest revision; repeat the ' +
        'request, or name a revision in x-min-revision',
    );
  }

  async #find(newest: NewestRevision, text: string): Promise<RevisionPresence> {
    const [prefix = '', number = ''] = text.split('.');
    if (!prefix.startsWith(newest.epoch)) return 'other';
    if (isAfter(number, newest.revision)) return 'later';
    if (text === wireText(newest.epoch, newest.revision)) return 'here';
    // The number of a lost commit may be reused by another one; then `history` differs.
    const key = `${newest.history} ${text}`;
    if (this.#known.get(key)) return 'here';
    const { revision } = await findRevision(this.#options.db, text);
    if (revision === null) return 'other';
    this.#known.set(key, true);
    return 'here';
  }
}
