import pg from 'pg';

import { QueueGroup } from '../../std/semaphore.ts';
import {
  type DatabaseFailure,
  databaseFailureOf,
  isServerError,
  isTransient,
  unavailable,
} from '../failures.ts';
import { checkRevision, type NewestRevision, NoEpochError } from '../newest-revision.ts';
import { isAfter } from '../revisions.ts';
import { sharedNextRun, untilAborted } from '../shared-work.ts';
import {
  checkSystem,
  lacksCommit,
  ReplicationMonitor,
  type ReplicationStatus,
  sessionIsIdle,
} from './replication.ts';
import { AnswerTimeout, destroySocket, pendingInput, withTimeout } from './timeout.ts';

/** `up`: the database answers. `away`: it has just failed; requests wait. `down`: requests fail. */
export type LinkState = 'up' | 'away' | 'down';

/**
 * Receives the payload of each commit notification. Receives null if notifications may have been
 * missed: the connection was lost or made, or a check found a revision without a notification.
 */
type CommitListener = (payload: string | null) => void;

export interface LinkOptions {
  /** Servers that hold the same data, in the order in which they are tried; at least one. */
  readonly urls: readonly string[];
  readonly connection: (url: string) => pg.ClientConfig;
  /** True if a standby cannot be used. */
  readonly mustWrite: boolean;
  /** A server with another system identifier is never used; any may be used by default. */
  readonly systemIdentifier?: string | undefined;
  /**
   * Lag of a standby, in milliseconds, from which other servers are tried; 0 for no limit on the
   * first server.
   */
  readonly behindMs: number;
  /** Time without a response, in milliseconds, after which a server counts as away. */
  readonly silenceMs: number;
  /** Longest wait of requests while the database is away, in milliseconds. */
  readonly awayMs?: number | undefined;
  /** Replaces the connections of the pool: those of earlier epochs may be broken. */
  readonly renewPool: () => Promise<unknown>;
  /** Called after successful checks, about once a second. */
  readonly onAnswer?: () => void;
  /** Called at each state change, with the last error of the database. */
  readonly onChange?: ((state: LinkState, before: LinkState, error: Error) => void) | undefined;
  /** Called after a switch to another server, with the reason. */
  readonly onFailover?: ((why: Error, url: string) => void) | undefined;
  /** Called when a standby is behind, and no other server is usable. */
  readonly onBehind?: ((why: Error) => void) | undefined;
  /** Called when the connection is lost, and when a listener throws. */
  readonly onError?: ((error: Error) => void) | undefined;
}

/** Longer than a restart of PostgreSQL takes. */
const AWAY_MS = 2_200;
/** Limit of the lag of all servers but the first, in milliseconds, if the first has none. */
const OTHER_LAG_MS_MAX = 1_000;
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
/** Interval of searches for a server that is current, or that is the first. */
const SEARCH_INTERVAL_MS = 5_000;
/** Length of an outage after which a server that lacks the newest commits is accepted. */
const ACCEPT_LOSS_MS = 5_000;
/** Most attempts of a revision check with transient errors. */
const ATTEMPTS_PER_CHECK_MAX = 4;

const CHANNEL = 'revision';

/** A server responds, but must not be used. */
class UnusableServer extends Error {
  readonly code = '57P03';
}

/** A connection to a server that has responded. */
interface ServerConnection {
  readonly client: pg.Client;
  readonly status: ReplicationStatus;
}

const toError = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown));

const failureFrom = (cause: unknown): DatabaseFailure =>
  databaseFailureOf(cause) ?? unavailable(cause);

/**
 * The link to the database: a connection outside the pool that checks whether the database is up,
 * which of its servers to use, and which revision is the newest.
 *
 * | State | Event | Next | Effect |
 * | --- | --- | --- | --- |
 * | up | first check | up | connects |
 * | up | commit on a primary | up | the notification reaches the listeners |
 * | up | commit on a standby | up | the next revision check notifies the listeners |
 * | up | connection ends, server answers | up | reconnects; keeps the pool |
 * | up | revision check is slow, server answers | up | the status check uses another connection |
 * | up | connection ends, server refuses | away | pauses the queues |
 * | up | only this session times out | up | reconnects; keeps the pool |
 * | up | server times out | away | the outage counts from the unanswered query |
 * | up | answers are lost, server answers on a new connection | away | the same |
 * | up | standby where a primary is needed | away | tries the other servers |
 * | up | standby behind, another server usable | up | switches to it; new epoch |
 * | up | standby behind, no other server usable | up | reports it once |
 * | up | first server usable again | up | returns to it; new epoch |
 * | up | standby promoted | up | listens for commits |
 * | away | server answers | up | new epoch; resumes the queues with wider bounds |
 * | away | another server usable | up | switches to it; new epoch |
 * | away | another server lacks the newest commit | away | accepts it after 5 s |
 * | away | `awayMs` passed | down | rejects waiting and new requests |
 * | down | server answers | up | new epoch; admits requests |
 * | down | another server usable | up | switches to it, even if it lacks the newest commit |
 *
 * The first server is the one of this node. If all nodes stayed where an outage took them, the next
 * outage would concern all of them. It counts as usable again after two checks in a row, and only
 * if it or the server in use is a standby: of two primaries, one was replaced.
 *
 * Each attempt tries the server in use first. A status check does not wait long for a running
 * revision check, which may itself wait for the lock of a table while the server is up. If the
 * server is not running that check, the network has lost the open connections, as a firewall does
 * that forgets them. PostgreSQL sends notifications on a primary only, so on a standby a revision
 * check runs about once a second.
 */
export class Link {
  readonly counts = { checks: 0, requests: 0 };
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
  readonly #listeners = new Set<CommitListener>();
  /** Connections in use, and those being made. */
  readonly #clients = new Set<pg.Client>();
  #url: string;
  #state: LinkState = 'up';
  #client: pg.Client | null = null;
  /** The last query on `#client`: queries run one after the other. */
  #lastQuery: Promise<unknown> | null = null;
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
  #outages = 0;
  #epoch = 0;
  #answeredAtMs = 0;
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  /** Start of the outage; null while the database is up. */
  #awaySinceMs: number | null = null;
  #attempts = 0;
  #searchedAtMs = Number.NEGATIVE_INFINITY;
  #isBehind = false;
  #firstCheckedAtMs = Number.NEGATIVE_INFINITY;
  /** True if the first server was usable when it was checked last. */
  #isFirstUsable = false;
  /** Last known status of the server in use. */
  #status: ReplicationStatus | null = null;

  constructor(options: LinkOptions) {
    const [first] = options.urls;
    if (first === undefined) throw new Error('a database has at least one server');
    this.#options = options;
    this.#url = first;
    this.queues = new QueueGroup({ verify: () => this.verify() });
  }

  get state(): LinkState {
    return this.#state;
  }

  /** Address of the server in use. */
  get url(): string {
    return this.#url;
  }

  /** Addresses of the other servers. */
  get fallbackUrls(): readonly string[] {
    return this.#options.urls.filter((url) => url !== this.#url);
  }

  /** Number of outages during which requests failed. */
  get outages(): number {
    return this.#outages;
  }

  /** Increases when connections must be replaced: earlier ones may be broken unnoticed. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Aborts running statements, with a DatabaseFailure, when the state becomes `down`. */
  get outageSignal(): AbortSignal {
    return this.#outageController.signal;
  }

  /** Upper bound of the lag of the server in use, in milliseconds; 0 for a primary. */
  get lagMs(): number {
    return this.#status?.isStandby ? performance.now() - this.#status.currentAsOfMs : 0;
  }

  /** True while the server in use is a standby. */
  get isStandby(): boolean {
    return this.#status?.isStandby === true;
  }

  /** The newest revision as of the last check; null before the first check. */
  get lastRead(): NewestRevision | null {
    return this.#newest;
  }

  /** The revision with the greatest number that was read in the present epoch; it may be lost. */
  get highest(): NewestRevision | null {
    return this.#highest;
  }

  /** Resolves after the first check, and after an attempt on the other servers if it failed. */
  get firstCheck(): Promise<void> {
    return this.#firstCheck.promise;
  }

  /** True if listeners receive each commit, by a notification or by the next check. */
  get reportsCommits(): boolean {
    return this.#client !== null && (this.#isListening || this.#status?.isStandby === true);
  }

  /** Starts the periodic checks, unless they run already. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    void this.recheck();
  }

  /** Checks the database; null if it has just answered. */
  verify(): Promise<void> | null {
    return performance.now() - this.#answeredAtMs < FRESH_MS ? null : this.recheck();
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
    this.#client = null;
    for (const client of this.#clients) destroySocket(client);
  }

  async #read(): Promise<NewestRevision> {
    this.counts.checks += 1;
    for (let failures = 0; ; ) {
      const client = await this.#connection();
      try {
        const newest = await this.#enqueue(client, () => checkRevision(client, this.#newest));
        // The link may have switched to another server.
        if (this.#client !== client) continue;
        this.reportAnswer();
        return this.#store(newest);
      } catch (thrown) {
        failures += 1;
        if (thrown instanceof NoEpochError) throw thrown;
        if (!isServerError(thrown)) this.#handleLoss(client, toError(thrown));
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

  /** Returns the connection, waiting for one if necessary. @throws DatabaseFailure */
  async #connection(): Promise<pg.Client> {
    for (let checks = 0; ; ) {
      this.check();
      if (this.#isClosed) throw unavailable(new Error('the link is closed'));
      if (this.#awaySinceMs !== null) {
        await untilAborted(this.#restored.promise, this.outageSignal);
      } else if (this.#client !== null) {
        return this.#client;
      } else if (checks === ATTEMPTS_PER_CHECK_MAX) {
        throw failureFrom(this.#error);
      } else {
        checks += 1;
        await untilAborted(this.recheck(), this.outageSignal);
      }
    }
  }

  /** Runs a query after those that were enqueued before. */
  #enqueue<T>(client: pg.Client, query: () => Promise<T>): Promise<T> {
    const result = this.#lastQuery === null ? query() : this.#lastQuery.then(query);
    const settled: Promise<unknown> = result
      .catch(() => {})
      .then(() => {
        if (this.#client === client && this.#lastQuery === settled) this.#lastQuery = null;
      });
    this.#lastQuery = settled;
    return result;
  }

  async #check(): Promise<void> {
    if (this.#isClosed || this.#awaySinceMs !== null) return;
    clearTimeout(this.#timer);
    const begun = performance.now();
    try {
      await this.#checkStatus(await this.#readStatus());
      this.#subscribe();
    } catch (thrown) {
      const error = toError(thrown);
      if (this.#isClosed) return;
      this.#error = error;
      this.#disconnect();
      if (!isServerError(error)) {
        // After a timeout, the outage may have begun when the query was sent.
        const isTimeout = error instanceof AnswerTimeout;
        const sinceMs = isTimeout ? Math.max(begun, this.#answeredAtMs) : performance.now();
        this.#startOutage(error, sinceMs);
      }
    }
    if (this.#awaySinceMs === null) this.#handleAnswer();
  }

  /** @throws AnswerTimeout, and the errors of the server */
  async #readStatus(): Promise<ReplicationStatus> {
    const [client, url, begun] = [this.#client, this.#url, performance.now()];
    if (client !== null) {
      try {
        const status = await this.#statusOver(client, url);
        if (status !== null) return status;
      } catch (thrown) {
        if (thrown instanceof AnswerTimeout || isServerError(thrown)) throw thrown;
        // The server may have ended only this connection.
        this.#handleLoss(client, toError(thrown));
      }
    }
    const server = await this.#connect(url);
    if (this.#client === null) {
      this.#adopt(server);
      return server.status;
    }
    try {
      if (this.#client === client) await this.#requireRunning(client, server.client, begun);
    } finally {
      destroySocket(server.client);
    }
    return server.status;
  }

  /**
   * Checks over another connection that the server is running the late query of a connection, or
   * has answered some statement meanwhile.
   * @throws AnswerTimeout if the answer is lost, and the errors of the server
   */
  async #requireRunning(late: pg.Client, other: pg.Client, sinceMs: number): Promise<void> {
    const isIdle = await withTimeout(sessionIsIdle(other, late), this.#options.silenceMs);
    // The answer may have arrived meanwhile.
    await pendingInput();
    if (isIdle && this.#answeredAtMs < sinceMs) {
      throw new AnswerTimeout('the answers of the database are lost');
    }
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

  /** Checks the status on the connection; null if an earlier query on it takes too long. */
  async #statusOver(client: pg.Client, url: string): Promise<ReplicationStatus | null> {
    const turn = Promise.withResolvers<void>();
    let isLate = false;
    const status = this.#enqueue(client, async () => {
      turn.resolve();
      return isLate ? null : this.#awaitAnswer(this.#monitor.check(url, client));
    });
    try {
      await withTimeout(turn.promise, this.#options.silenceMs);
    } catch {
      isLate = true;
      return null;
    }
    return status;
  }

  /**
   * Switches to another server if this one is behind.
   * @throws UnusableServer for a standby where a primary is needed
   */
  async #checkStatus(status: ReplicationStatus): Promise<void> {
    const { isStandby, behindMs } = status;
    this.#status = status;
    const { mustWrite, onBehind } = this.#options;
    if (isStandby && mustWrite)
      throw new UnusableServer('the server is a standby, which is read-only');
    if (!this.#isTooFarBehind(status, true)) {
      this.#isBehind = false;
      return;
    }
    if (performance.now() - this.#searchedAtMs < SEARCH_INTERVAL_MS) return;
    this.#searchedAtMs = performance.now();
    const why = new UnusableServer(`the standby is ${(behindMs / 1_000).toFixed(1)} s behind`);
    const isBehind = !(await this.#search(why));
    if (isBehind && !this.#isBehind) onBehind?.(why);
    this.#isBehind = isBehind;
  }

  /** Applies the limit of the lag to the server in use, or to one that is to be used. */
  #isTooFarBehind({ behindMs }: ReplicationStatus, isInUse: boolean): boolean {
    const { behindMs: lagMax, urls } = this.#options;
    if (lagMax === 0 && isInUse && this.#url === urls[0]) return false;
    return behindMs > (lagMax || OTHER_LAG_MS_MAX);
  }

  /** Listens for commits; only a primary sends notifications. */
  #subscribe(): void {
    const client = this.#client;
    if (client === null || this.#listenClient === client || this.#status?.isStandby) return;
    this.#listenClient = client;
    const listening = (): void => {
      if (this.#client !== client) return;
      this.#isListening = true;
      // The server sent no notifications of commits before its confirmation.
      this.#notify(null);
    };
    const query = () => client.query(`listen ${CHANNEL}`);
    this.#enqueue(client, query).then(listening, (error: Error) => this.#handleLoss(client, error));
  }

  #handleAnswer(): void {
    if (this.#isClosed) return;
    const nowMs = performance.now();
    this.#answeredAtMs = nowMs;
    this.#firstCheck.resolve();
    clearTimeout(this.#timer);
    if (!this.#isStarted) return;
    if (nowMs - this.#reportedAtMs >= REPORT_INTERVAL_MS) {
      this.#reportedAtMs = nowMs;
      this.#options.onAnswer?.();
      void this.#returnToFirst();
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
    this.#outages += 1;
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

  /** Tries all servers, the one in use first. */
  async #attempt(): Promise<void> {
    this.#attempts += 1;
    try {
      const url = this.#url;
      const server = await this.#connect(url);
      try {
        await this.#checkStatus(server.status);
        if (this.#url === url) this.#restore(server);
      } finally {
        if (this.#client !== server.client) destroySocket(server.client);
      }
    } catch (thrown) {
      if (this.#awaySinceMs === null) return;
      this.#error = toError(thrown);
      await this.#search(this.#error);
    } finally {
      this.#attempts -= 1;
      this.#firstCheck.resolve();
    }
  }

  #restore(server: ServerConnection): void {
    if (this.#awaySinceMs === null || this.#isClosed) return;
    clearTimeout(this.#awayTimer);
    this.#awaySinceMs = null;
    this.#reportedAtMs = Number.NEGATIVE_INFINITY;
    this.#adopt(server);
    if (this.#state === 'down') this.#outageController = new AbortController();
    this.#setState('up', this.#error);
    this.#renewConnections();
    this.queues.resume();
    this.#restored.resolve();
    this.#handleAnswer();
    void this.recheck();
  }

  /** Switches to the first usable server among the others; false if there is none. */
  async #search(why: Error): Promise<boolean> {
    for (const url of this.fallbackUrls) {
      const since = this.#awaySinceMs;
      const server = await this.#connect(url).catch(() => null);
      if (server === null) continue;
      const isUsable = await this.#isUsable(server).catch(() => false);
      const isNeeded = this.#awaySinceMs === since && !this.#isClosed;
      if (!isUsable || !isNeeded) {
        destroySocket(server.client);
        if (!isNeeded) return false;
        continue;
      }
      this.#switchTo(url, server, why);
      return true;
    }
    return false;
  }

  #switchTo(url: string, server: ServerConnection, why: Error): void {
    this.#url = url;
    this.#isFirstUsable = false;
    this.#monitor.reset(url);
    this.#status = { ...server.status, currentAsOfMs: performance.now() };
    this.#options.onFailover?.(why, url);
    if (this.#awaySinceMs !== null) {
      this.#restore(server);
    } else {
      this.#adopt(server);
      this.#renewConnections();
    }
  }

  /** Checks the first server while another is in use, and returns to it. */
  async #returnToFirst(): Promise<void> {
    const [first = ''] = this.#options.urls;
    const [url, nowMs] = [this.#url, performance.now()];
    if (url === first || nowMs - this.#firstCheckedAtMs < SEARCH_INTERVAL_MS) return;
    this.#firstCheckedAtMs = nowMs;
    const server = await this.#connect(first).catch(() => null);
    const isUsable =
      server !== null &&
      (server.status.isStandby || this.isStandby) &&
      (await this.#isUsable(server).catch(() => false));
    const isSteady = isUsable && this.#isFirstUsable;
    this.#isFirstUsable = isUsable;
    if (server === null) return;
    if (isSteady && this.#url === url && this.#awaySinceMs === null && !this.#isClosed) {
      this.#switchTo(first, server, new Error('the first server is usable again'));
    } else {
      destroySocket(server.client);
    }
  }

  /** True if another server can be used now. */
  async #isUsable({ client, status }: ServerConnection): Promise<boolean> {
    const { mustWrite, silenceMs } = this.#options;
    const since = this.#awaySinceMs;
    if (status.isStandby && mustWrite) return false;
    // During an outage, a standby that is behind is better than none.
    if (this.#isTooFarBehind(status, false) && since === null) return false;
    if (since !== null && performance.now() - since > ACCEPT_LOSS_MS) return true;
    return !(await withTimeout(lacksCommit(client, this.#newest), silenceMs));
  }

  /** Connects to a server and checks its status. @throws AnswerTimeout, and the server's errors */
  async #connect(url: string): Promise<ServerConnection> {
    if (this.#isClosed) throw new Error('the link is closed');
    const client = new pg.Client(this.#options.connection(url));
    this.#clients.add(client);
    client.on('error', (error) => this.#handleLoss(client, error));
    client.on('end', () => {
      this.#clients.delete(client);
      this.#handleLoss(client, new Error('the connection was closed'));
    });
    client.on('notification', ({ payload }) => {
      if (this.#client === client) this.#notify(payload ?? '');
    });
    const first = async (): Promise<ReplicationStatus> => {
      await client.connect();
      await checkSystem(client, this.#options.systemIdentifier);
      return this.#monitor.check(url, client);
    };
    try {
      const status =
        url === this.#url
          ? await this.#awaitAnswer(first())
          : await withTimeout(first(), this.#options.silenceMs);
      return { client, status };
    } catch (error) {
      destroySocket(client);
      throw error;
    }
  }

  #adopt({ client }: ServerConnection): void {
    this.#disconnect();
    this.#client = client;
  }

  /** Replaces all connections; wider bounds apply to the queues meanwhile. */
  #renewConnections(): void {
    this.#epoch += 1;
    this.queues.recover(this.#options.renewPool());
    this.#notify(null);
  }

  /** Checks the server after the loss of a connection, because it may have failed as a whole. */
  #handleLoss(client: pg.Client, error: Error): void {
    if (this.#client !== client) return;
    this.#disconnect();
    this.#options.onError?.(error);
    this.#notify(null);
    void this.recheck();
  }

  #disconnect(): void {
    const client = this.#client;
    this.#client = null;
    this.#lastQuery = null;
    this.#isListening = false;
    if (client !== null) destroySocket(client);
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
