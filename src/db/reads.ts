import { hash } from 'node:crypto';
import { Kysely, PostgresDialect } from 'kysely';
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';

import { type Release, Semaphore } from '../std/semaphore.ts';
import { cancelStatement } from './cancel.ts';
import { DatabaseFailure, isServerError, isTransient } from './failures.ts';
import type { Link } from './link/link.ts';
import { Silence } from './link/silence.ts';
import { Retries } from './retry.ts';
import type { Database } from './schema.ts';
import { orAborted } from './shared-work.ts';

/**
 * How the service reads: one statement at a time, each on any connection. A statement whose reader
 * has left, or whose time is over, is cancelled in the database, and its connection is thrown away.
 */
export interface Reads {
  /** A handle whose statements end with the signal; without one, with their own time limit. */
  db(signal?: AbortSignal): Kysely<Database>;
  /**
   * One statement as the driver takes it.
   * @param isUntimed true if the answer that it is for may have begun, as for `copy`
   */
  query<Row extends pg.QueryResultRow>(
    query: pg.QueryConfig,
    signal?: AbortSignal,
    isUntimed?: boolean,
  ): Promise<readonly Row[]>;
  /**
   * What is made of the bytes that a COPY TO STDOUT sends, while they come.
   * @param read is asked anew where the statement is tried once more
   */
  copy<T>(
    statement: string,
    read: (chunks: AsyncIterable<Buffer>) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T>;
  /** Statements that run, and that wait for a connection. */
  readonly slots: { readonly inUse: number; readonly waiting: number };
  /** How often a statement was tried once more. */
  readonly retries: { readonly count: number };
}

/** Does something around the work of a statement: all attempts at it, and what it waits for. */
export type Around = <T>(statement: string, work: () => Promise<T>) => Promise<T>;

interface ReadsOptions {
  readonly pool: pg.Pool;
  /** The epoch in which a connection was made: one from an earlier epoch may be dead. */
  readonly epochOf: (client: pg.PoolClient) => number;
  readonly link: Link;
  /** Statements at a time: the connections of the pool. */
  readonly connectionsMax: number;
  /** How long a statement waits for one of them, in milliseconds. */
  readonly waitMs: number;
  /** How many statements may wait, of requests that had none answered; others always may. */
  readonly waitingMax: number;
  /** How long its answer may take; 0 for as long as it likes. */
  readonly answerMs: number;
  /** For how long what fails in passing is tried again, in milliseconds. */
  readonly retryForMs?: number | undefined;
  readonly around?: Around | undefined;
}

type Work<T> = (client: pg.PoolClient) => Promise<T>;

/** A kind of statement. */
interface Kind {
  readonly isCopy: boolean;
  /**
   * True if the answer that it is for may have begun already, and must not break off because the
   * machine is busy: it waits for a connection as long as its reader does, and has more attempts.
   */
  readonly isUntimed: boolean;
}

const USUAL: Kind = { isCopy: false, isUntimed: false };
const UNTIMED: Kind = { isCopy: false, isUntimed: true };
const COPY: Kind = { isCopy: true, isUntimed: true };

/**
 * An interruption of the database ended a statement, which runs again afterwards. That is no retry:
 * it asks the database no more than once.
 */
class Interrupted extends Error {}

/** Most statements with a name: each takes some 200 KB in each connection of the database. */
const NAMED_MAX = 64;

/** Statements that ran once and are remembered as candidates for a name. */
const CANDIDATES = 256;

/**
 * Names the statements that run again. A connection parses and plans a named statement once, which
 * takes longer than most reads. The name is a digest of the text, so that a pooler between service
 * and database cannot run another statement by it.
 */
class StatementNames {
  readonly #names = new Map<string, string>();
  readonly #candidates = new LRUCache<string, true>({ max: CANDIDATES });

  /** The name of a statement; undefined at its first run, and once all names are taken. */
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

const NEVER = new AbortController().signal;

const busy = (): DatabaseFailure =>
  new DatabaseFailure('busy', 'Every connection to the database is busy; try again shortly');

/** Waits for work, and abandons it when a signal aborts or the time given is over first. */
function unlessAborted<T>(
  work: Promise<T>,
  signals: readonly AbortSignal[],
  abandon: () => void,
  patienceMs = 0,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      for (const each of signals) each.removeEventListener('abort', abort);
    };
    const giveUp = (reason: unknown): void => {
      end();
      abandon();
      reject(reason);
    };
    const abort = (): void => giveUp(signals.find((each) => each.aborted)?.reason);
    const silent = (): void => giveUp(new Silence('the database says nothing'));
    const timer = patienceMs > 0 ? setTimeout(silent, patienceMs) : undefined;
    for (const each of signals) each.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(end);
    if (signals.some((each) => each.aborted)) abort();
  });
}

class Reading implements Reads {
  readonly slots: Semaphore;
  readonly retries: Retries;
  /** The signals of requests for which a statement was answered. */
  readonly #begun = new WeakSet<AbortSignal>();
  readonly #options: ReadsOptions;
  readonly #shared: Kysely<Database>;
  readonly #names = new StatementNames();

  constructor(options: ReadsOptions) {
    this.#options = options;
    const { connectionsMax, waitingMax, waitMs, link } = options;
    this.slots = new Semaphore(connectionsMax, { waitingMax, waitMs }, link.queues);
    this.retries = new Retries(options.retryForMs);
    this.#shared = this.#handle(NEVER);
  }

  db(signal?: AbortSignal): Kysely<Database> {
    return signal ? this.#handle(signal) : this.#shared;
  }

  async query<Row extends pg.QueryResultRow>(
    query: pg.QueryConfig,
    signal = NEVER,
    isUntimed = false,
  ) {
    const kind = isUntimed ? UNTIMED : USUAL;
    const work: Work<pg.QueryResult<Row>> = (client) => client.query<Row>(query);
    const { rows } = await this.#run(query.text, work, signal, kind);
    return rows;
  }

  copy<T>(
    statement: string,
    read: (chunks: AsyncIterable<Buffer>) => Promise<T>,
    signal = NEVER,
  ): Promise<T> {
    const work: Work<T> = (client) => read(client.query(copyTo(statement)));
    return this.#run(statement, work, signal, COPY);
  }

  /** A handle of Kysely's that borrows a connection for each statement. */
  #handle(signal: AbortSignal): Kysely<Database> {
    const query = (text: string, values: readonly unknown[]) => {
      const name = this.#names.nameOf(text);
      const config = { ...(name === undefined ? {} : { name }), text, values: [...values] };
      return this.#run(text, (client) => client.query(config), signal);
    };
    const session = { query, release: () => {} } as unknown as pg.PoolClient;
    const pool = { options: {}, connect: async () => session, end: async () => {} };
    return new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  }

  #run<T>(text: string, work: Work<T>, signal: AbortSignal, kind = USUAL): Promise<T> {
    const { answerMs, around } = this.#options;
    const attempt = () => this.#attempt(work, signal, kind);
    const run = async (): Promise<T> => {
      for (;;) {
        try {
          return await this.retries.run(attempt, signal, kind.isUntimed ? answerMs : 0);
        } catch (error) {
          if (!(error instanceof Interrupted)) throw error;
        }
      }
    };
    return around ? around(text, run) : run();
  }

  /** @throws Interrupted where the whole database went away, not only this connection */
  async #attempt<T>(work: Work<T>, signal: AbortSignal, kind: Kind): Promise<T> {
    const { link } = this.#options;
    const leave = await this.#enter(signal, kind);
    const { epoch } = link;
    try {
      const client = await this.#connect(signal);
      const answer = await this.#answer(client, work, signal, kind);
      if (signal !== NEVER) this.#begun.add(signal);
      return answer;
    } catch (error) {
      leave();
      if (!isTransient(error) || isServerError(error)) throw error;
      await orAborted(link.hint(), signal);
      const isSame = link.state === 'up' && link.epoch === epoch;
      throw isSame ? error : new Interrupted('the database went away', { cause: error });
    } finally {
      leave();
    }
  }

  /**
   * Waits for a database that is not away, and for a free connection. Statements of requests that
   * are half done go first: rejected, these would have cost much for nothing. So do statements that
   * several requests share, until the backlog of an interruption is gone; at other times a slow
   * database would do nothing else. A statement without a time limit loses nothing by waiting.
   */
  async #enter(signal: AbortSignal, { isUntimed }: Kind): Promise<Release> {
    const { link } = this.#options;
    link.check();
    const isShared = signal === NEVER && link.queues.catchUp !== null;
    const hasPriority = !isUntimed && (isShared || this.#begun.has(signal));
    const leave = await this.slots.acquire({ signal, hasPriority, isUntimed });
    if (leave === null) throw busy();
    return leave;
  }

  async #connect(signal: AbortSignal): Promise<pg.PoolClient> {
    const { pool, link, epochOf } = this.#options;
    for (;;) {
      const connecting = pool.connect();
      const client = await unlessAborted(connecting, [signal, link.lifeline], () => {
        // It comes later, and nobody wants it any more.
        connecting.then((late) => late.release()).catch(() => {});
      });
      if (epochOf(client) === link.epoch) return client;
      client.release(true);
    }
  }

  async #answer<T>(client: pg.PoolClient, work: Work<T>, signal: AbortSignal, { isCopy }: Kind) {
    const { link, answerMs } = this.#options;
    let isSpoiled = false;
    const spoil = (): void => {
      isSpoiled = true;
      cancelStatement(client);
    };
    try {
      const signals = [signal, link.lifeline];
      const answer = await unlessAborted(work(client), signals, spoil, answerMs);
      link.heard();
      return answer;
    } catch (error) {
      // Half of a COPY may still be on the line.
      isSpoiled ||= isCopy || !isServerError(error);
      throw error;
    } finally {
      client.release(isSpoiled);
    }
  }
}

/** Reads over the connections of a pool. */
export const readsOf = (options: ReadsOptions): Reads => new Reading(options);
