import pg from 'pg';

import { type QueueBounds, QueueGroup } from '../../std/semaphore.ts';
import {
  type DatabaseFailure,
  databaseFailureOf,
  isServerError,
  isTransient,
  unavailable,
} from '../failures.ts';
import { type Newest, NoService, readNewest } from '../newest.ts';
import { orAborted, sharedNext } from '../shared-work.ts';
import { lacks, type Standing, Standings } from './servers.ts';
import { answered, destroy, Silence } from './silence.ts';

/** `up`: it answers. `away`: it went just now, and requests wait. `down`: requests are refused. */
export type LinkState = 'up' | 'away' | 'down';

/**
 * Receives the payload of each notification of a commit; null when some may have been missed: the
 * connection was lost or made, or a reading found a revision that nobody had told.
 */
type CommitListener = (payload: string | null) => void;

export interface LinkOptions {
  /** Servers that hold the same data, in the order in which they are tried; at least one. */
  readonly urls: readonly string[];
  /** How to connect to a server. */
  readonly connection: (url: string) => pg.ClientConfig;
  /** True if only a server will do that can be written to. */
  readonly mustWrite: boolean;
  /** How long a standby may lack what it should have, in milliseconds, before it is left. */
  readonly behindMs: number;
  /** How long a server may be silent, in milliseconds, before it counts as away. */
  readonly silenceMs: number;
  /** How long requests wait for a database that is away, in milliseconds. */
  readonly awayMs?: number | undefined;
  /** Bounds of the waiting lines until the backlog of an interruption is gone. */
  readonly catchUp?: QueueBounds | undefined;
  /** Makes the connections of the pool anew; those of earlier epochs may be dead. */
  readonly renewPool: () => Promise<unknown>;
  /** Called after answered checks, at the latest every second. */
  readonly onAnswer?: () => void;
  /** Called at each change of the state, with the last error of the database. */
  readonly onChange?: ((state: LinkState, before: LinkState, error: Error) => void) | undefined;
  /** Called when another server is used from now on, with the reason. */
  readonly onMove?: ((why: Error, url: string) => void) | undefined;
  /** Called when a standby is behind, and no other server can take its place. */
  readonly onBehind?: ((why: Error) => void) | undefined;
  /** Called when the connection is lost, and when a listener throws. */
  readonly onError?: ((error: Error) => void) | undefined;
}

/** Longer than a restart of PostgreSQL takes. */
const AWAY_MS = 2_200;
/** Between two checks: a silent database must be noticed before those who wait are refused. */
const PERIOD_MS = 200;
/** How often `onAnswer` is called at most, except after the return of the database. */
const REPORT_MS = 800;
/** Between two attempts to connect while the database is away. */
const RECONNECT_MS = 100;
/** Attempts under way at a time: a silent server answers none of them. */
const ATTEMPTS_MAX = 5;
/** How long an answer proves that the database is there. */
const RECENT_MS = 50;
/** How often another server is searched while the one in use is behind. */
const SEARCH_MS = 5_000;
/** After so long without a database, one that has lost the newest commits is better than none. */
const LOSS_MS = 5_000;
/** How often a reading of the newest revision is tried that fails in passing. */
const READINGS_MAX = 4;

const CHANNEL = 'revision';

/** A server that answers, and is not to be used. */
class Unfit extends Error {
  readonly code = '57P03';
}

/** A connection to a server that has answered. */
interface Opened {
  readonly client: pg.Client;
  readonly standing: Standing;
}

const errorOf = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown));

const failureFrom = (cause: unknown): DatabaseFailure =>
  databaseFailureOf(cause) ?? unavailable(cause);

/**
 * The link to the database: one connection beside the pool, by which the service knows whether the
 * database answers, which of its servers to use, and which revision is the newest.
 *
 * | State | Event | Next | Effect |
 * | --- | --- | --- | --- |
 * | up | first check | up | connects; the answer is known from now on |
 * | up | commit on a primary | up | the notification reaches the listeners |
 * | up | commit on a standby | up | a reading of the newest revision reaches the listeners |
 * | up | connection ends, server answers | up | connects again; the pool stays |
 * | up | reading takes long, server answers | up | the check uses a connection of its own |
 * | up | connection ends, server refuses | away | the waiting lines pause |
 * | up | silence of this session alone | up | connects again; the pool stays |
 * | up | silence | away | the time counts from the unanswered question |
 * | up | standby where a primary is needed | away | the other servers are searched |
 * | up | standby behind, another server will do | up | moves there; a new epoch |
 * | up | standby behind, no other server will do | up | reported once |
 * | up | standby promoted | up | listens for commits from now on |
 * | away | server answers | up | a new epoch; the lines go on with wider bounds |
 * | away | another server will do | up | moves there; a new epoch |
 * | away | another server lacks the newest commit | away | it is used after 5 s only |
 * | away | bound passed | down | everybody who waits is refused, and so are newcomers |
 * | down | server answers | up | a new epoch; requests are admitted again |
 * | down | another server will do | up | moves there, even if it lacks the newest commit |
 *
 * Each attempt tries the server in use first. A check does not wait behind a reading of the newest
 * revision for long, as that may wait for a lock of a table: then the server is not silent.
 * PostgreSQL notifies sessions of a primary only, so a standby is read every second at the latest.
 */
export class Link {
  readonly counts = { looks: 0, asked: 0 };
  /** The waiting lines before the database, which stop while it is away. */
  readonly queues: QueueGroup;
  /**
   * Something failed: checks at once. Settled once it is known whether the database is away. A
   * check under way may have had its answer before the failure.
   */
  readonly hint: () => Promise<void> = sharedNext(() => this.#check());
  readonly #readNext: () => Promise<Newest> = sharedNext(() => this.#read());
  readonly #options: LinkOptions;
  readonly #standings = new Standings();
  readonly #firstCheck = Promise.withResolvers<void>();
  readonly #listeners = new Set<CommitListener>();
  /** Connections that are in use or being made. */
  readonly #clients = new Set<pg.Client>();
  #url: string;
  #state: LinkState = 'up';
  #client: pg.Client | null = null;
  /** The question under way on it: the driver takes one at a time. */
  #asking: Promise<unknown> | null = null;
  /** The connection that was asked to listen, and whether the server has confirmed it. */
  #listenClient: pg.Client | null = null;
  #isListening = false;
  #timer: NodeJS.Timeout | undefined;
  #bound: NodeJS.Timeout | undefined;
  #newest: Newest | null = null;
  #isStarted = false;
  #isClosed = false;
  #error = new Error('the database has not failed');
  #lifeline = new AbortController();
  /** Resolved when the database is back. */
  #back = Promise.withResolvers<void>();
  #outages = 0;
  #epoch = 0;
  #heardAt = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;
  /** Since when there is no database; null while there is one. */
  #awaySince: number | null = null;
  #attempts = 0;
  #searchedAt = Number.NEGATIVE_INFINITY;
  #isBehind = false;
  /** The last known standing of the server in use. */
  #standing: Standing | null = null;

  constructor(options: LinkOptions) {
    const [first] = options.urls;
    if (first === undefined) throw new Error('a database has at least one server');
    this.#options = options;
    this.#url = first;
    this.queues = new QueueGroup({ catchUp: options.catchUp, verify: () => this.verify() });
  }

  get state(): LinkState {
    return this.#state;
  }

  /** The address of the server in use. */
  get url(): string {
    return this.#url;
  }

  /** The addresses of the others. */
  get others(): readonly string[] {
    return this.#options.urls.filter((url) => url !== this.#url);
  }

  /** How often the database was away for so long that requests were refused. */
  get outages(): number {
    return this.#outages;
  }

  /** Grows when connections are to be made anew: those from before may be dead without a sound. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Aborts running statements, with the refusal, when the wait for the database is over. */
  get lifeline(): AbortSignal {
    return this.#lifeline.signal;
  }

  /** How long a standby may have lacked by now what was committed, in ms; 0 for a primary. */
  get lagMs(): number {
    return this.#standing?.isStandby ? performance.now() - this.#standing.asOfMs : 0;
  }

  /** True while the server in use is a standby. */
  get isStandby(): boolean {
    return this.#standing?.isStandby === true;
  }

  /** The newest revision that was read last, possibly some time ago; null before the first. */
  get lastRead(): Newest | null {
    return this.#newest;
  }

  /** Settled once the first check is over, and the other servers were tried if it failed. */
  get firstCheck(): Promise<void> {
    return this.#firstCheck.promise;
  }

  /** True if each commit will reach the listeners: by a notification, or by the next reading. */
  get hears(): boolean {
    return this.#client !== null && (this.#isListening || this.#standing?.isStandby === true);
  }

  /** Begins to check all the time; does nothing if it has begun. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    void this.hint();
  }

  /** Checks, unless the database answered just now; null then. */
  verify(): Promise<void> | null {
    return performance.now() - this.#heardAt < RECENT_MS ? null : this.hint();
  }

  /** The database answered a statement. */
  heard(): void {
    this.#heardAt = performance.now();
  }

  /** @throws DatabaseFailure while requests are refused */
  check(): void {
    if (this.#state === 'down') throw failureFrom(this.#error);
  }

  /** Calls a listener at each commit from now on. Returns how to end it. */
  onCommit(listener: CommitListener): () => void {
    this.#listeners.add(listener);
    this.start();
    return () => this.#listeners.delete(listener);
  }

  /**
   * The newest revision, read after this call: nothing committed before it is missed. All calls
   * during a reading share the next one. Waits while the database is away.
   * @throws DatabaseFailure while it is down, and the errors of the server
   */
  look(): Promise<Newest> {
    this.counts.asked += 1;
    return this.#readNext();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#bound);
    this.#firstCheck.resolve();
    this.#back.resolve();
    this.#listeners.clear();
    this.#client = null;
    for (const client of this.#clients) destroy(client);
  }

  async #read(): Promise<Newest> {
    this.counts.looks += 1;
    for (let failures = 0; ; ) {
      const client = await this.#connected();
      try {
        const newest = await this.#ask(client, () => readNewest(client, this.#newest));
        // Another server may be in use by now.
        if (this.#client !== client) continue;
        this.heard();
        return this.#found(newest);
      } catch (thrown) {
        failures += 1;
        if (thrown instanceof NoService) throw thrown;
        if (!isServerError(thrown)) this.#lost(client, errorOf(thrown));
        else if (!isTransient(thrown) || failures === READINGS_MAX) throw thrown;
      }
    }
  }

  #found(newest: Newest): Newest {
    const before = this.#newest;
    this.#newest = newest;
    if (before?.order !== newest.order && !this.#isListening) this.#tell(null);
    return newest;
  }

  /** The connection, once there is one. @throws DatabaseFailure */
  async #connected(): Promise<pg.Client> {
    for (let checks = 0; ; ) {
      this.check();
      if (this.#isClosed) throw unavailable(new Error('the link is closed'));
      if (this.#awaySince !== null) {
        await orAborted(this.#back.promise, this.lifeline);
      } else if (this.#client !== null) {
        return this.#client;
      } else if (checks === READINGS_MAX) {
        throw failureFrom(this.#error);
      } else {
        checks += 1;
        await orAborted(this.hint(), this.lifeline);
      }
    }
  }

  /** Asks one question after the other. */
  #ask<T>(client: pg.Client, question: () => Promise<T>): Promise<T> {
    const asking = this.#asking === null ? question() : this.#asking.then(question);
    const over: Promise<unknown> = asking
      .catch(() => {})
      .then(() => {
        if (this.#client === client && this.#asking === over) this.#asking = null;
      });
    this.#asking = over;
    return asking;
  }

  async #check(): Promise<void> {
    if (this.#isClosed || this.#awaySince !== null) return;
    clearTimeout(this.#timer);
    const begun = performance.now();
    try {
      await this.#heed(await this.#askStanding());
      this.#listen();
    } catch (thrown) {
      const error = errorOf(thrown);
      if (this.#isClosed) return;
      this.#error = error;
      this.#drop();
      if (!isServerError(error)) {
        // A server that is silent now may have been so since the question was sent.
        const isSilent = error instanceof Silence;
        this.#goAway(error, isSilent ? Math.max(begun, this.#heardAt) : performance.now());
      }
    }
    if (this.#awaySince === null) this.#answered();
  }

  async #askStanding(): Promise<Standing> {
    const [client, url] = [this.#client, this.#url];
    if (client !== null) {
      try {
        const standing = await this.#standingOver(client, url);
        if (standing !== null) return standing;
      } catch (thrown) {
        if (thrown instanceof Silence || isServerError(thrown)) throw thrown;
        // Perhaps only this connection was ended.
        this.#lost(client, errorOf(thrown));
      }
    }
    const opened = await this.#open(url);
    if (this.#client === null) this.#use(opened);
    else destroy(opened.client);
    return opened.standing;
  }

  /**
   * Waits for an answer, which ends by itself at the latest with the time limits of a connection. A
   * server that answers others meanwhile is slow, not silent.
   * @throws Silence, and what the answer fails with
   */
  async #unlessSilent<T>(answer: Promise<T>): Promise<T> {
    for (;;) {
      const begun = performance.now();
      try {
        return await answered(answer, this.#options.silenceMs);
      } catch (thrown) {
        if (!(thrown instanceof Silence) || this.#heardAt <= begun) throw thrown;
      }
    }
  }

  /** The standing by way of the connection; null while a question before it takes long. */
  async #standingOver(client: pg.Client, url: string): Promise<Standing | null> {
    const turn = Promise.withResolvers<void>();
    let isLate = false;
    const asked = this.#ask(client, async () => {
      turn.resolve();
      return isLate ? null : this.#unlessSilent(this.#standings.of(url, client));
    });
    try {
      await answered(turn.promise, this.#options.silenceMs);
    } catch {
      isLate = true;
      return null;
    }
    return asked;
  }

  /** Leaves a server that is no longer the right one. @throws Unfit if it may not be used */
  async #heed(standing: Standing): Promise<void> {
    const { isStandby, behindMs } = standing;
    this.#standing = standing;
    const { mustWrite, behindMs: most, onBehind } = this.#options;
    if (isStandby && mustWrite) throw new Unfit('the server is a standby, which only reads');
    if (behindMs <= most) {
      this.#isBehind = false;
      return;
    }
    if (performance.now() - this.#searchedAt < SEARCH_MS) return;
    this.#searchedAt = performance.now();
    const why = new Unfit(`the standby is ${(behindMs / 1_000).toFixed(1)} s behind`);
    const isBehind = !(await this.#search(why));
    if (isBehind && !this.#isBehind) onBehind?.(why);
    this.#isBehind = isBehind;
  }

  /** Listens for commits, of which only a primary notifies. */
  #listen(): void {
    const client = this.#client;
    if (client === null || this.#listenClient === client || this.#standing?.isStandby) return;
    this.#listenClient = client;
    const listening = (): void => {
      if (this.#client !== client) return;
      this.#isListening = true;
      // Commits before the server confirmed were not notified.
      this.#tell(null);
    };
    const question = () => client.query(`listen ${CHANNEL}`);
    this.#ask(client, question).then(listening, (error: Error) => this.#lost(client, error));
  }

  #answered(): void {
    if (this.#isClosed) return;
    const nowMs = performance.now();
    this.#heardAt = nowMs;
    this.#firstCheck.resolve();
    clearTimeout(this.#timer);
    if (!this.#isStarted) return;
    if (nowMs - this.#reportedAt >= REPORT_MS) {
      this.#reportedAt = nowMs;
      this.#options.onAnswer?.();
    }
    this.#timer = setTimeout(() => void this.hint(), PERIOD_MS).unref();
  }

  #goAway(error: Error, sinceMs: number): void {
    this.#awaySince = sinceMs;
    this.#back = Promise.withResolvers();
    this.#enter('away', error);
    this.queues.pause();
    this.#tell(null);
    const leftMs = (this.#options.awayMs ?? AWAY_MS) - (performance.now() - sinceMs);
    this.#bound = setTimeout(() => this.#goDown(), Math.max(0, leftMs));
    this.#reconnect();
  }

  #goDown(): void {
    const error = this.#error;
    this.#outages += 1;
    this.#enter('down', error);
    this.#lifeline.abort(failureFrom(error));
    this.queues.reject(() => failureFrom(error));
  }

  /** Attempts to connect at a steady pace, whatever became of the attempts before. */
  #reconnect(): void {
    if (this.#isClosed || this.#awaySince === null) return;
    if (this.#attempts < ATTEMPTS_MAX) void this.#attempt();
    this.#timer = setTimeout(() => this.#reconnect(), RECONNECT_MS).unref();
  }

  /** Tries all servers, the one in use first. */
  async #attempt(): Promise<void> {
    this.#attempts += 1;
    try {
      const url = this.#url;
      const opened = await this.#open(url);
      try {
        await this.#heed(opened.standing);
        if (this.#url === url) this.#comeBack(opened);
      } finally {
        if (this.#client !== opened.client) destroy(opened.client);
      }
    } catch (thrown) {
      if (this.#awaySince === null) return;
      this.#error = errorOf(thrown);
      await this.#search(this.#error);
    } finally {
      this.#attempts -= 1;
      this.#firstCheck.resolve();
    }
  }

  #comeBack(opened: Opened): void {
    if (this.#awaySince === null || this.#isClosed) return;
    clearTimeout(this.#bound);
    this.#awaySince = null;
    this.#reportedAt = Number.NEGATIVE_INFINITY;
    this.#use(opened);
    if (this.#state === 'down') this.#lifeline = new AbortController();
    this.#enter('up', this.#error);
    this.#renew();
    this.queues.resume();
    this.#back.resolve();
    this.#answered();
    void this.hint();
  }

  /** Goes to the first of the other servers that will do; returns whether there was one. */
  async #search(why: Error): Promise<boolean> {
    for (const url of this.others) {
      const since = this.#awaySince;
      const opened = await this.#open(url).catch(() => null);
      if (opened === null) continue;
      const willDo = await this.#willDo(opened).catch(() => false);
      const isNeeded = this.#awaySince === since && !this.#isClosed;
      if (!willDo || !isNeeded) {
        destroy(opened.client);
        if (!isNeeded) return false;
        continue;
      }
      this.#url = url;
      this.#standings.begin(url);
      this.#standing = { ...opened.standing, asOfMs: performance.now() };
      this.#options.onMove?.(why, url);
      if (this.#awaySince !== null) {
        this.#comeBack(opened);
      } else {
        this.#use(opened);
        this.#renew();
      }
      return true;
    }
    return false;
  }

  /** True if another server can be used, of which it has found out whether it lacks commits. */
  async #willDo({ client, standing }: Opened): Promise<boolean> {
    const { mustWrite, behindMs: most, silenceMs } = this.#options;
    const { isStandby, behindMs } = standing;
    const since = this.#awaySince;
    if (isStandby && mustWrite) return false;
    // If there is no other, one that is behind has to do.
    if (behindMs > most && since === null) return false;
    if (since !== null && performance.now() - since > LOSS_MS) return true;
    return !(await answered(lacks(client, this.#newest), silenceMs));
  }

  /** Connects to a server and asks for its standing. @throws Silence, and the server's errors */
  async #open(url: string): Promise<Opened> {
    if (this.#isClosed) throw new Error('the link is closed');
    const client = new pg.Client(this.#options.connection(url));
    this.#clients.add(client);
    client.on('error', (error) => this.#lost(client, error));
    client.on('end', () => {
      this.#clients.delete(client);
      this.#lost(client, new Error('the connection was closed'));
    });
    client.on('notification', ({ payload }) => {
      if (this.#client === client) this.#tell(payload ?? '');
    });
    const first = async (): Promise<Standing> => {
      await client.connect();
      return this.#standings.of(url, client);
    };
    try {
      const standing =
        url === this.#url
          ? await this.#unlessSilent(first())
          : await answered(first(), this.#options.silenceMs);
      return { client, standing };
    } catch (error) {
      destroy(client);
      throw error;
    }
  }

  #use({ client }: Opened): void {
    this.#drop();
    this.#client = client;
  }

  /** Has all connections made anew; those that wait meanwhile have wider bounds. */
  #renew(): void {
    this.#epoch += 1;
    this.queues.recover(this.#options.renewPool());
    this.#tell(null);
  }

  /** The connection ended by itself, or does not answer: perhaps the whole server does not. */
  #lost(client: pg.Client, error: Error): void {
    if (this.#client !== client) return;
    this.#drop();
    this.#options.onError?.(error);
    this.#tell(null);
    void this.hint();
  }

  #drop(): void {
    const client = this.#client;
    this.#client = null;
    this.#asking = null;
    this.#isListening = false;
    if (client !== null) destroy(client);
  }

  #enter(state: LinkState, error: Error): void {
    const before = this.#state;
    this.#state = state;
    this.#error = error;
    this.#options.onChange?.(state, before, error);
  }

  #tell(payload: string | null): void {
    for (const listener of this.#listeners) {
      try {
        listener(payload);
      } catch (error) {
        this.#options.onError?.(errorOf(error));
      }
    }
  }
}
