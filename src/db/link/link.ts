import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { QueueGroup } from '../../std/semaphore.ts';
import {
  type DatabaseFailure,
  databaseFailureOf,
  isServerError,
  isTransient,
  TooFewConnections,
  unavailable,
  withOneAnswered,
} from '../failures.ts';
import { checkRevision, type NewestRevision, NoEpochError } from '../newest-revision.ts';
import { isAfter } from '../revisions.ts';
import { sharedNextRun, untilAborted } from '../shared-work.ts';
import { ReplicationMonitor, type ReplicationStatus } from './replication.ts';
import { type SessionConfig, SocketClient } from './socket-client.ts';
import { AnswerTimeout, withTimeout } from './timeout.ts';

/*
 * The link knows the state of the database: whether it answers, its newest revision, and its
 * replication lag. Requests ask it instead of finding out by a timeout.
 */

/** `up`: the database answers. `away`: it has just failed; requests wait. `down`: requests fail. */
export type LinkState = 'up' | 'away' | 'down';

/**
 * Receives the payload of each commit notification. Receives null if notifications may have been
 * missed: the connection was lost or made, or a check found a revision without a notification.
 */
type CommitListener = (payload: string | null) => void;

export interface LinkOptions {
  readonly connection: SessionConfig;
  /** Time without a response, in milliseconds, after which the server counts as away. */
  readonly silenceMs: number;
  /** Longest wait of requests while the database is away, in milliseconds. */
  readonly awayMs?: number | undefined;
  /** Replaces the connections of the pool: those of earlier epochs may be broken. */
  readonly renewPool: () => Promise<unknown>;
  /** Called after successful checks, about once a second. */
  readonly onAnswer?: () => void;
  /**
   * Called at each state change, with the last error of the database; and again while it is down,
   * if the cause turns out to be too few connections.
   */
  readonly onChange?: ((state: LinkState, before: LinkState, error: Error) => void) | undefined;
  /** Called when the connection is lost, and when a listener throws. */
  readonly onError?: ((error: Error) => void) | undefined;
}

/** Longer than a restart of PostgreSQL takes. */
const AWAY_MS = 2_200;
/** Short enough to detect a database that does not respond before waiters time out. */
const CHECK_INTERVAL_MS = 200;
/** Shortest time between two calls of `onAnswer`, except after an outage. */
const REPORT_INTERVAL_MS = 800;
/** Interval of attempts to connect while the database is away. */
const RECONNECT_INTERVAL_MS = 100;
/** Most concurrent attempts: a server that does not respond ends none of them. */
const ATTEMPTS_MAX = 5;
/** Time during which an answer proves that the database is up. */
const FRESH_MS = 50;
/** Time after a promotion in which the server starts its other processes, and may be slow. */
const PROMOTION_MS = 2_000;
/** Most attempts of a revision check with transient errors. */
const ATTEMPTS_PER_CHECK_MAX = 4;

const CHANNEL = 'revision';

/** The connections to a server that has responded. */
interface Session {
  /** Checks the status, and listens for commits. */
  readonly watcher: SocketClient;
  /** Runs revision checks, which may wait for the lock of a table while the server is up. */
  readonly checker: SocketClient;
  readonly status: ReplicationStatus;
}

const toError = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown));

const close = ({ watcher, checker }: Pick<Session, 'watcher' | 'checker'>): void => {
  watcher.destroySocket();
  checker.destroySocket();
};

const failureFrom = (cause: unknown): DatabaseFailure =>
  databaseFailureOf(cause) ?? unavailable(cause);

/**
 * The link to the database: two connections outside the pool that check whether the database is up,
 * and which revision is the newest.
 *
 * | State | Event | Next | Effect |
 * | --- | --- | --- | --- |
 * | up | first check | up | connects |
 * | up | commit on a primary | up | the notification reaches the listeners |
 * | up | commit on a standby | up | the next revision check notifies the listeners |
 * | up | connection ends, server answers | up | reconnects; keeps the pool |
 * | up | revision check is slow, server answers | up | none: the status has its own connection |
 * | up | connection ends, server refuses | away | pauses the queues |
 * | up | only this session times out | up | reconnects; keeps the pool |
 * | up | server times out | away | the outage counts from the unanswered query |
 * | up | answers are lost, server answers on a new connection | away | the same |
 * | up | standby promoted | up | listens for commits; wider bounds of the queues |
 * | away | server answers | up | new epoch; resumes the queues with wider bounds |
 * | away | `awayMs` passed | down | rejects waiting and new requests |
 * | down | server answers | up | new epoch; admits requests |
 *
 * The address leads to one server at a time. After an outage it may be another one, which may lack
 * commits: the commit ids show that. PostgreSQL sends notifications on a primary only, so on a
 * standby a revision check runs about once a second.
 */
export class Link {
  /** Revision checks, calls that shared them, and outages during which requests failed. */
  readonly counts = { checks: 0, requests: 0, outages: 0 };
  /** The queues for the database, which pause while it is away. */
  readonly queues: QueueGroup;
  /**
   * Checks the database at once, after a failure. Resolves when its state is known. Calls share
   * only checks that begin later: a running check may have been answered before the failure.
   */
  readonly recheck: () => Promise<void> = sharedNextRun(() => this.#check());
  readonly #readNext: () => Promise<NewestRevision> = sharedNextRun(() => this.#read());
  readonly #options: LinkOptions;
  readonly #monitor = new ReplicationMonitor();
  readonly #firstCheck = Promise.withResolvers<void>();
  readonly #firstAnswer = Promise.withResolvers<void>();
  readonly #listeners = new Set<CommitListener>();
  /** Connections in use, and those being made. */
  readonly #clients = new Set<SocketClient>();
  #state: LinkState = 'up';
  #session: Session | null = null;
  /** The connection on which LISTEN was sent. */
  #listenClient: pg.Client | null = null;
  /** True once the server has confirmed LISTEN. */
  #isListening = false;
  #timer: NodeJS.Timeout | undefined;
  #awayTimer: NodeJS.Timeout | undefined;
  #newest: NewestRevision | null = null;
  #highest: NewestRevision | null = null;
  #isStarted = false;
  #isClosed = false;
  #error = new Error('the database has not failed');
  #outageController = new AbortController();
  /** Resolved at the end of an outage. */
  #restored = Promise.withResolvers<void>();
  #epoch = 0;
  #answeredAtMs = 0;
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  /** Start of the outage; null while the database is up. */
  #awaySinceMs: number | null = null;
  #attempts = 0;
  /** Last known status of the server. */
  #status: ReplicationStatus | null = null;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.queues = new QueueGroup(() => this.verify());
  }

  get state(): LinkState {
    return this.#state;
  }

  /** Increases when connections must be replaced: earlier ones may be broken unnoticed. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Aborts running statements, with a DatabaseFailure, when the state becomes `down`. */
  get outageSignal(): AbortSignal {
    return this.#outageController.signal;
  }

  /** Upper bound of the lag of the server, in milliseconds; 0 for a primary. */
  get lagMs(): number {
    return this.#status?.isStandby ? performance.now() - this.#status.currentAsOfMs : 0;
  }

  /** True while the server is a standby. */
  get isStandby(): boolean {
    return this.#status?.isStandby === true;
  }

  /** True once the database has answered; at the end of an outage, once it had answered before. */
  get hasAnswered(): boolean {
    return this.#answeredAtMs > 0;
  }

  /** The newest revision as of the last check; null before the first check. */
  get lastRead(): NewestRevision | null {
    return this.#newest;
  }

  /** The revision with the greatest number that was read in the present epoch; it may be lost. */
  get highest(): NewestRevision | null {
    return this.#highest;
  }

  /** Resolves after the first check, whatever it found. */
  get firstCheck(): Promise<void> {
    return this.#firstCheck.promise;
  }

  /** Resolves once the database has answered. */
  get firstAnswer(): Promise<void> {
    return this.#firstAnswer.promise;
  }

  /** True if listeners receive each commit, by a notification or by the next check. */
  get reportsCommits(): boolean {
    return this.#session !== null && (this.#isListening || this.#status?.isStandby === true);
  }

  /** Starts the periodic checks, unless they run already. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    void this.recheck();
  }

  /** Checks the database; null if it has just answered. A standby may have been promoted since. */
  verify(): Promise<void> | null {
    const isFresh = performance.now() - this.#answeredAtMs < FRESH_MS;
    return isFresh && !this.isStandby ? null : this.recheck();
  }

  /** Called when the database has answered a statement. */
  reportAnswer(): void {
    this.#answeredAtMs = performance.now();
  }

  /** @throws DatabaseFailure while the state is `down` */
  check(): void {
    if (this.#state === 'down') throw failureFrom(this.#error);
  }

  /** Calls a listener at each commit. Returns a function that removes it. */
  onCommit(listener: CommitListener): () => void {
    this.#listeners.add(listener);
    this.start();
    return () => this.#listeners.delete(listener);
  }

  /**
   * Runs a revision check that begins after this call, so that it finds every earlier commit. All
   * calls during a check share the next one. Waits while the database is away.
   * @throws DatabaseFailure while it is down, and the errors of the server
   */
  newestRevision(): Promise<NewestRevision> {
    this.counts.requests += 1;
    return this.#readNext();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#awayTimer);
    this.#firstCheck.resolve();
    this.#restored.resolve();
    this.#listeners.clear();
    this.#session = null;
    for (const client of this.#clients) client.destroySocket();
  }

  async #read(): Promise<NewestRevision> {
    this.counts.checks += 1;
    for (let failures = 0; ; ) {
      const session = await this.#connected();
      try {
        const newest = await checkRevision(session.checker, this.#newest);
        // The link may have reconnected, to another server.
        if (this.#session !== session) continue;
        this.reportAnswer();
        return this.#store(newest);
      } catch (thrown) {
        failures += 1;
        if (thrown instanceof NoEpochError) throw thrown;
        if (!isServerError(thrown)) this.#handleLoss(session.checker, toError(thrown));
        else if (!isTransient(thrown) || failures === ATTEMPTS_PER_CHECK_MAX) throw thrown;
      }
    }
  }

  #store(newest: NewestRevision): NewestRevision {
    const before = this.#newest;
    this.#newest = newest;
    const highest = this.#highest;
    if (highest?.epoch !== newest.epoch || isAfter(newest.revision, highest.revision)) {
      this.#highest = newest;
    }
    if (before?.order !== newest.order && !this.#isListening) this.#notify(null);
    return newest;
  }

  /** Returns the connections, waiting for them if necessary. @throws DatabaseFailure */
  async #connected(): Promise<Session> {
    for (let checks = 0; ; ) {
      this.check();
      if (this.#isClosed) throw unavailable(new Error('the link is closed'));
      if (this.#awaySinceMs !== null) {
        await untilAborted(this.#restored.promise, this.outageSignal);
      } else if (this.#session !== null) {
        return this.#session;
      } else if (checks === ATTEMPTS_PER_CHECK_MAX) {
        throw failureFrom(this.#error);
      } else {
        checks += 1;
        await untilAborted(this.recheck(), this.outageSignal);
      }
    }
  }

  async #check(): Promise<void> {
    if (this.#isClosed || this.#awaySinceMs !== null) return;
    clearTimeout(this.#timer);
    const begun = performance.now();
    try {
      const wasStandby = this.isStandby;
      this.#status = await this.#readStatus();
      this.#subscribe();
      if (wasStandby && !this.isStandby)
        this.queues.recover(pause(PROMOTION_MS, null, { ref: false }));
    } catch (thrown) {
      const error = toError(thrown);
      if (this.#isClosed) return;
      this.#error = error;
      this.#disconnect();
      if (!isServerError(error)) {
        // After a timeout, the outage may have begun when the query was sent.
        const isTimeout = [error, error.cause].some((each) => each instanceof AnswerTimeout);
        const sinceMs = isTimeout ? Math.max(begun, this.#answeredAtMs) : performance.now();
        this.#startOutage(error, sinceMs);
      }
    }
    if (this.#awaySinceMs === null) this.#handleAnswer();
  }

  /** @throws AnswerTimeout, and the errors of the server */
  async #readStatus(): Promise<ReplicationStatus> {
    const session = this.#session;
    if (session !== null) {
      try {
        return await this.#awaitAnswer(this.#monitor.check(session.watcher));
      } catch (thrown) {
        if (thrown instanceof AnswerTimeout || isServerError(thrown)) throw thrown;
        // The server may have ended only this connection.
        this.#handleLoss(session.watcher, toError(thrown));
      }
    }
    const made = await this.#connect();
    this.#adopt(made);
    return made.status;
  }

  /**
   * Waits for an answer. A server that answers other statements meanwhile is slow, not away; the
   * timeouts of the connection still apply.
   * @throws AnswerTimeout, and the errors of the answer
   */
  async #awaitAnswer<T>(answer: Promise<T>): Promise<T> {
    for (;;) {
      const begun = performance.now();
      try {
        return await withTimeout(answer, this.#options.silenceMs);
      } catch (thrown) {
        if (!(thrown instanceof AnswerTimeout) || this.#answeredAtMs <= begun) throw thrown;
      }
    }
  }

  /** Listens for commits; only a primary sends notifications. */
  #subscribe(): void {
    const watcher = this.#session?.watcher;
    if (watcher === undefined || this.#listenClient === watcher || this.#status?.isStandby) return;
    this.#listenClient = watcher;
    const listening = (): void => {
      if (this.#session?.watcher !== watcher) return;
      this.#isListening = true;
      // The server sent no notifications of commits before its confirmation.
      this.#notify(null);
    };
    watcher
      .query(`listen ${CHANNEL}`)
      .then(listening, (error: Error) => this.#handleLoss(watcher, error));
  }

  #handleAnswer(): void {
    if (this.#isClosed) return;
    const nowMs = performance.now();
    this.#answeredAtMs = nowMs;
    this.#firstCheck.resolve();
    this.#firstAnswer.resolve();
    clearTimeout(this.#timer);
    if (!this.#isStarted) return;
    if (nowMs - this.#reportedAtMs >= REPORT_INTERVAL_MS) {
      this.#reportedAtMs = nowMs;
      this.#options.onAnswer?.();
    }
    this.#timer = setTimeout(() => void this.recheck(), CHECK_INTERVAL_MS).unref();
  }

  #startOutage(error: Error, sinceMs: number): void {
    this.#awaySinceMs = sinceMs;
    this.#restored = Promise.withResolvers();
    this.#setState('away', error);
    this.queues.pause(sinceMs);
    this.#notify(null);
    const leftMs = (this.#options.awayMs ?? AWAY_MS) - (performance.now() - sinceMs);
    this.#awayTimer = setTimeout(() => this.#failWaiters(), Math.max(0, leftMs));
    this.#reconnect();
  }

  #failWaiters(): void {
    const error = this.#error;
    this.counts.outages += 1;
    this.#setState('down', error);
    this.#outageController.abort(failureFrom(error));
    this.queues.reject(() => failureFrom(error));
  }

  /** Starts attempts to connect at a fixed rate, independent of running attempts. */
  #reconnect(): void {
    if (this.#isClosed || this.#awaySinceMs === null) return;
    if (this.#attempts < ATTEMPTS_MAX) void this.#attempt();
    this.#timer = setTimeout(() => this.#reconnect(), RECONNECT_INTERVAL_MS).unref();
  }

  async #attempt(): Promise<void> {
    this.#attempts += 1;
    try {
      this.#restore(await this.#connect());
    } catch (thrown) {
      this.#explain(toError(thrown));
    } finally {
      this.#attempts -= 1;
      this.#firstCheck.resolve();
    }
  }

  /**
   * Stores the error of an attempt during an outage. Too few connections explain the timeouts of
   * other attempts, which wait for the same ones, and are reported although the state is known.
   */
  #explain(error: Error): void {
    if (this.#awaySinceMs === null || this.#error instanceof TooFewConnections) return;
    this.#error = error;
    if (this.#state === 'down' && error instanceof TooFewConnections) this.#setState('down', error);
  }

  #restore(session: Session): void {
    if (this.#awaySinceMs === null || this.#isClosed) {
      close(session);
      return;
    }
    clearTimeout(this.#awayTimer);
    this.#awaySinceMs = null;
    this.#reportedAtMs = Number.NEGATIVE_INFINITY;
    this.#adopt(session);
    this.#status = session.status;
    if (this.#state === 'down') this.#outageController = new AbortController();
    this.#setState('up', this.#error);
    this.#renewConnections();
    this.queues.resume();
    this.#restored.resolve();
    this.#handleAnswer();
    void this.recheck();
  }

  #open(): SocketClient {
    if (this.#isClosed) throw new Error('the link is closed');
    const client = new SocketClient(this.#options.connection);
    this.#clients.add(client);
    client.on('error', (error) => this.#handleLoss(client, error));
    client.on('end', () => {
      this.#clients.delete(client);
      this.#handleLoss(client, new Error('the connection was closed'));
    });
    client.on('notification', ({ payload }) => {
      if (this.#session?.watcher === client) this.#notify(payload ?? '');
    });
    return client;
  }

  /**
   * Connects and checks the status.
   * @throws AnswerTimeout, TooFewConnections, and the errors of the server
   */
  async #connect(): Promise<Session> {
    const [watcher, checker] = [this.#open(), this.#open()];
    let connected = 0;
    const connect = async (client: SocketClient): Promise<void> => {
      await client.connect();
      connected += 1;
    };
    const first = async (): Promise<ReplicationStatus> => {
      await Promise.all([connect(watcher), connect(checker)]);
      return this.#monitor.check(watcher);
    };
    try {
      return { watcher, checker, status: await this.#awaitAnswer(first()) };
    } catch (error) {
      close({ watcher, checker });
      throw connected === 1 ? withOneAnswered(error) : error;
    }
  }

  #adopt(session: Session): void {
    this.#disconnect();
    this.#session = session;
  }

  /** Replaces all connections; wider bounds apply to the queues meanwhile. */
  #renewConnections(): void {
    this.#epoch += 1;
    this.queues.recover(this.#options.renewPool());
    this.#notify(null);
  }

  /** Checks the server after the loss of a connection, because it may have failed as a whole. */
  #handleLoss(client: SocketClient, error: Error): void {
    if (this.#session?.watcher !== client && this.#session?.checker !== client) return;
    this.#disconnect();
    this.#options.onError?.(error);
    this.#notify(null);
    void this.recheck();
  }

  #disconnect(): void {
    const session = this.#session;
    this.#session = null;
    this.#isListening = false;
    if (session !== null) close(session);
  }

  #setState(state: LinkState, error: Error): void {
    const before = this.#state;
    this.#state = state;
    this.#error = error;
    this.#options.onChange?.(state, before, error);
  }

  #notify(payload: string | null): void {
    for (const listener of this.#listeners) {
      try {
        listener(payload);
      } catch (error) {
        this.#options.onError?.(toError(error));
      }
    }
  }
}
