import { hash } from 'node:crypto';
import type { Kysely } from 'kysely';
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';

import { type Release, Semaphore } from '../std/semaphore.ts';
import { kyselyOver } from './connection.ts';
import { DatabaseFailure, isServerError, isTransient, withOneAnswered } from './failures.ts';
import type { Link } from './link/link.ts';
import { withTimeout } from './link/timeout.ts';
import { Retries } from './retry.ts';
import type { Database } from './schema.ts';
import { untilAborted } from './shared-work.ts';

interface ReadsOptions {
  readonly pool: pg.Pool;
  /** The link epoch in which a connection was made. Those of earlier epochs may be broken. */
  readonly epochOf: (client: pg.PoolClient) => number;
  readonly link: Link;
  /** Most concurrent statements: the connections of the pool. */
  readonly connectionsMax: number;
  /** Timeout of a statement for a free connection, in milliseconds. */
  readonly waitMs: number;
  /** Most waiting statements of requests without an answered statement; others are not counted. */
  readonly waitingMax: number;
  /** Timeout of an answer, in milliseconds; 0 for none. */
  readonly answerMs: number;
  /** Time during which transient failures are retried, in milliseconds. */
  readonly retryForMs?: number | undefined;
}

type StatementWork<T> = (client: pg.PoolClient) => Promise<T>;

/** A kind of statement. */
interface StatementKind {
  readonly isCopy: boolean;
  /**
   * True if the answer to the client may have begun. It must not be truncated under load, so the
   * statement waits for a connection without a timeout, and is retried for longer.
   */
  readonly isUntimed: boolean;
}

const USUAL: StatementKind = { isCopy: false, isUntimed: false };
const UNTIMED: StatementKind = { isCopy: false, isUntimed: true };
const COPY: StatementKind = { isCopy: true, isUntimed: true };

/**
 * An interruption of the database ended a statement, which runs again afterwards. This does not
 * count as a retry, because it adds no load.
 */
class Interruption extends Error {}

/** Most named statements: each needs about 200 KB in each connection of the database. */
const NAMED_MAX = 64;

/** Most cached statements that ran once: they are named at their second run. */
const CANDIDATES_MAX = 256;

/**
 * Names repeated statements. A connection parses and plans a named statement only once, which takes
 * longer than most reads. The name is a digest of the text, so that a pooler between service and
 * database cannot execute another statement under it.
 */
class StatementNames {
  readonly #names = new Map<string, string>();
  readonly #candidates = new LRUCache<string, true>({ max: CANDIDATES_MAX });

  /** The name of a statement; undefined at its first run, and if `NAMED_MAX` is reached. */
  nameOf(text: string): string | undefined {
    const known = this.#names.get(text);
    if (known !== undefined || this.#names.size >= NAMED_MAX) return known;
    const name = hash('sha256', text, 'base64url');
    if (!this.#candidates.delete(name)) {
      this.#candidates.set(name, true);
      return undefined;
    }
    this.#names.set(text, name);
    return name;
  }
}

const NO_SIGNAL = new AbortController().signal;

const busy = (): DatabaseFailure =>
  new DatabaseFailure('busy', 'Every connection to the database is busy; try again shortly');

/**
 * Reads of the service: single statements, each on any connection of the pool. A statement that is
 * aborted or times out is cancelled in the database, and its connection is closed.
 */
export class Reads {
  /** Counts statements that run, and that wait for a connection. */
  readonly slots: Semaphore;
  readonly retries: Retries;
  /** Signals of requests with an answered statement. */
  readonly #answered = new WeakSet<AbortSignal>();
  readonly #options: ReadsOptions;
  readonly #shared: Kysely<Database>;
  readonly #names = new StatementNames();

  constructor(options: ReadsOptions) {
    this.#options = options;
    const { connectionsMax, waitingMax, waitMs, link } = options;
    this.slots = new Semaphore(connectionsMax, { waitingMax, waitMs }, link.queues);
    this.retries = new Retries(options.retryForMs);
    this.#shared = this.#handle(NO_SIGNAL);
  }

  /** A handle whose statements are cancelled on abort; without a signal only by their timeout. */
  db(signal?: AbortSignal): Kysely<Database> {
    return signal ? this.#handle(signal) : this.#shared;
  }

  /**
   * Runs one statement through the driver.
   * @param isUntimed true if the answer to the client may have begun, as for `copy`
   */
  async query<Row extends pg.QueryResultRow>(
    query: pg.QueryConfig,
    signal = NO_SIGNAL,
    isUntimed = false,
  ): Promise<readonly Row[]> {
    const kind = isUntimed ? UNTIMED : USUAL;
    const work: StatementWork<pg.QueryResult<Row>> = (client) => client.query<Row>(query);
    const { rows } = await this.#run(work, signal, kind);
    return rows;
  }

  /**
   * Streams the bytes of a COPY TO STDOUT through `read`, and returns its result.
   * @param read called again for each retry
   */
  copy<T>(
    statement: string,
    read: (chunks: AsyncIterable<Buffer>) => Promise<T>,
    signal = NO_SIGNAL,
  ): Promise<T> {
    const work: StatementWork<T> = (client) => read(client.query(copyTo(statement)));
    return this.#run(work, signal, COPY);
  }

  /** A Kysely handle that acquires a connection for each statement. */
  #handle(signal: AbortSignal): Kysely<Database> {
    const query = (text: string, values: readonly unknown[]) => {
      const name = this.#names.nameOf(text);
      const config = { ...(name === undefined ? {} : { name }), text, values: [...values] };
      return this.#run((client) => client.query(config), signal);
    };
    return kyselyOver(query as pg.PoolClient['query']);
  }

  async #run<T>(work: StatementWork<T>, signal: AbortSignal, kind = USUAL): Promise<T> {
    const { answerMs } = this.#options;
    const attempt = () => this.#attempt(work, signal, kind);
    for (;;) {
      try {
        return await this.retries.run(attempt, signal, kind.isUntimed ? answerMs : 0);
      } catch (error) {
        if (!(error instanceof Interruption)) throw error;
      }
    }
  }

  /** @throws Interruption if the server was lost, not only this connection */
  async #attempt<T>(work: StatementWork<T>, signal: AbortSignal, kind: StatementKind): Promise<T> {
    const { link } = this.#options;
    const release = await this.#acquire(signal, kind);
    const { epoch } = link;
    try {
      const client = await this.#connect(signal);
      const answer = await this.#execute(client, work, signal, kind);
      if (signal !== NO_SIGNAL) this.#answered.add(signal);
      return answer;
    } catch (error) {
      release();
      if (!isTransient(error) || isServerError(error)) throw error;
      await untilAborted(link.recheck(), signal);
      const isSame = link.state === 'up' && link.epoch === epoch;
      throw isSame
        ? withOneAnswered(error)
        : new Interruption('the database was interrupted', { cause: error });
    } finally {
      release();
    }
  }

  /**
   * Waits until the database is up and a connection is free. Requests with an answered statement
   * have priority, because their work would be lost. Shared statements have priority only until
   * the backlog of an interruption is gone: otherwise they would starve the others on a slow
   * database. Untimed statements need no priority.
   */
  async #acquire(signal: AbortSignal, kind: StatementKind): Promise<Release> {
    const { link } = this.#options;
    link.check();
    const isFirst = signal !== NO_SIGNAL && !this.#answered.has(signal);
    // With a cached selection, the points are the first read of a request: nothing is sent yet.
    const isUntimed = kind.isUntimed && !isFirst;
    const isShared = signal === NO_SIGNAL && link.queues.isCatchingUp;
    const hasPriority = !isUntimed && (isShared || this.#answered.has(signal));
    const release = await this.slots.acquire({ signal, hasPriority, isUntimed });
    if (release === null) throw busy();
    return release;
  }

  async #connect(signal: AbortSignal): Promise<pg.PoolClient> {
    const { pool, link, epochOf } = this.#options;
    for (;;) {
      const connecting = pool.connect();
      const client = await untilAborted(connecting, signal, link.outageSignal).catch((error) => {
        // The connection may be made after the abort.
        connecting.then((late) => late.release()).catch(() => {});
        throw error;
      });
      if (epochOf(client) === link.epoch) return client;
      client.release(true);
    }
  }

  async #execute<T>(
    client: pg.PoolClient,
    work: StatementWork<T>,
    signal: AbortSignal,
    { isCopy }: StatementKind,
  ) {
    const { link, answerMs } = this.#options;
    let isUnusable = false;
    try {
      const running = answerMs > 0 ? withTimeout(work(client), answerMs) : work(client);
      const answer = await untilAborted(running, signal, link.outageSignal);
      link.reportAnswer();
      return answer;
    } catch (error) {
      // The rest of a COPY may still be in the socket.
      isUnusable = isCopy || !isServerError(error);
      throw error;
    } finally {
      // Destroys the socket of a running statement; client_connection_check_interval ends it.
      client.release(isUnusable);
    }
  }
}
