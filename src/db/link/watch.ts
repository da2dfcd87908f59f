import pg from 'pg';
import { isServerError } from '../failures.ts';
import type { Breaker } from './breaker.ts';
import {
  type Candidate,
  candidateAt,
  type Extent,
  type Servers,
  type Standing,
  Standings,
} from './servers.ts';
import { answered, destroy, Silence } from './silence.ts';

/** Checks all the time whether the database answers, over a connection of its own. */
export interface Watch {
  /** Begins to check; does nothing where it has begun. */
  start(): void;
  /** Something failed: checks at once. Settled once it is known whether the database is away. */
  hint(): Promise<void>;
  /** Checks, unless the database answered just now; null then. */
  verify(): Promise<void> | null;
  /** The database answered a statement. */
  heard(): void;
  /** How long a standby may have lacked by now what was committed, in ms; 0 for a primary. */
  readonly lagMs: number;
  /** Settled once the first check is over, and the other servers were tried where it failed. */
  readonly firstLook: Promise<void>;
  close(): Promise<void>;
}

interface WatchOptions {
  /** How to connect to a server. */
  readonly connection: (url: string) => pg.ClientConfig;
  readonly servers: Servers;
  /** Whether only a server will do that can be written to. */
  readonly mustWrite: boolean;
  /** How long a standby may lack what it should have, in milliseconds, before it is left. */
  readonly behindMs: number;
  readonly breaker: Breaker;
  /** How long the database may be silent, in milliseconds, before it counts as away. */
  readonly silenceMs: number;
  /** The newest that was told of the data: no server is used that lacks it, if it can be helped. */
  readonly newest: () => Extent | null;
  /** Called after checks that were answered, at the latest every second. */
  readonly onAnswer?: () => void;
  /** Called when another server is used from now on; why the one before is not. */
  readonly onMove?: (why: Error) => void;
  /** Makes all connections anew, after an interruption and on another server. */
  readonly renew: () => void;
  /** Called when a standby is behind, and no other server can take its place. */
  readonly onBehind?: (why: Error) => void;
}

/** Requests that wait for a silent database are refused in time only if it is checked often. */
const PERIOD_MS = 200;
/** How often `onAnswer` is called at most, but for the return of the database. */
const REPORT_MS = 800;
/** Between two attempts to connect while the database is away. */
const RECONNECT_MS = 100;
/** Attempts that may be under way at a time: a silent server answers none of them. */
const ATTEMPTS_MAX = 5;
/** How long an answer proves that the database is there. */
const RECENT_MS = 50;
/** How often another server is looked for while the one in use is behind. */
const SEARCH_MS = 5_000;
/** After so long without a database, one that has lost the newest data is better than none. */
const LOSS_MS = 5_000;

/** A server that answers, and is not the one to use. */
class Unfit extends Error {
  readonly code = '57P03';
}

const errorOf = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown));

class Watching implements Watch {
  readonly #options: WatchOptions;
  readonly #standings = new Standings();
  readonly #first = Promise.withResolvers<void>();
  /** Connections that are in use or being made. */
  readonly #clients = new Set<pg.Client>();
  #client: pg.Client | null = null;
  #timer: NodeJS.Timeout | undefined;
  /** The check under way, and the one that begins after it. */
  #current: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #isStarted = false;
  #isClosed = false;
  #heardAt = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;
  /** Since when there is no database; null while there is one. */
  #awaySince: number | null = null;
  #attempts = 0;
  #isSearching = false;
  #searchedAt = Number.NEGATIVE_INFINITY;
  #isBehind = false;
  /** The last known standing of the server in use. */
  #standing: Standing | null = null;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  get firstLook(): Promise<void> {
    return this.#first.promise;
  }

  get lagMs(): number {
    const standing = this.#standing;
    return standing?.isStandby ? performance.now() - standing.asOfMs : 0;
  }

  start(): void {
    if (!this.#isStarted) void this.hint();
  }

  hint(): Promise<void> {
    this.#isStarted = true;
    // A check under way may have had its answer before the failure.
    if (this.#current === null) return this.#check();
    this.#next ??= this.#current.then(() => this.#check());
    return this.#next;
  }

  verify(): Promise<void> | null {
    return performance.now() - this.#heardAt < RECENT_MS ? null : this.hint();
  }

  heard(): void {
    this.#heardAt = performance.now();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#first.resolve();
    this.#client = null;
    for (const client of this.#clients) destroy(client);
  }

  #check(): Promise<void> {
    this.#next = null;
    if (this.#isClosed || this.#awaySince !== null) return Promise.resolve();
    clearTimeout(this.#timer);
    this.#current = this.#probe().finally(() => {
      this.#current = null;
      if (this.#awaySince === null) this.#first.resolve();
    });
    return this.#current;
  }

  async #probe(): Promise<void> {
    const begun = performance.now();
    try {
      await this.#heed(await this.#ask());
    } catch (thrown) {
      this.#drop();
      const error = errorOf(thrown);
      if (this.#isClosed) return;
      if (!this.#isAnswer(error, begun)) {
        // A server that is silent now may have been so since the question was sent.
        return this.#goAway(error, error instanceof Silence ? begun : performance.now());
      }
    }
    this.#answered();
  }

  /** Also an answer to another connection is one. */
  #isAnswer(error: Error, begun: number): boolean {
    return error instanceof Silence ? this.#heardAt > begun : isServerError(error);
  }

  #answered(): void {
    if (this.#isClosed) return;
    const nowMs = performance.now();
    this.#heardAt = nowMs;
    if (nowMs - this.#reportedAt >= REPORT_MS) {
      this.#reportedAt = nowMs;
      this.#options.onAnswer?.();
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#check(), PERIOD_MS).unref();
  }

  #goAway(error: Error, sinceMs: number): void {
    this.#awaySince = sinceMs;
    this.#options.breaker.lose(error, sinceMs);
    this.#reconnect();
  }

  /** Attempts to connect at a steady pace, whatever became of the attempts before. */
  #reconnect(): void {
    if (this.#isClosed || this.#awaySince === null) return;
    if (this.#attempts < ATTEMPTS_MAX) void this.#attempt();
    this.#timer = setTimeout(() => this.#reconnect(), RECONNECT_MS).unref();
  }

  async #attempt(): Promise<void> {
    this.#attempts += 1;
    try {
      const { client, standing } = await this.#connect();
      await this.#heed(standing);
      this.#comeBack(client);
    } catch (thrown) {
      const error = errorOf(thrown);
      if (this.#awaySince !== null) this.#options.breaker.lose(error);
      if (await this.#searchOnce(error)) this.#comeBack(null);
    } finally {
      this.#attempts -= 1;
      this.#first.resolve();
    }
  }

  async #searchOnce(error: Error): Promise<boolean> {
    if (this.#isSearching || this.#awaySince === null) return false;
    this.#isSearching = true;
    return this.#search(error).finally(() => {
      this.#isSearching = false;
    });
  }

  #comeBack(client: pg.Client | null): void {
    if (this.#awaySince === null || this.#isClosed) {
      if (client !== null) destroy(client);
      return;
    }
    this.#awaySince = null;
    this.#reportedAt = Number.NEGATIVE_INFINITY;
    if (client !== null) this.#use(client);
    const { breaker, renew } = this.#options;
    renew();
    breaker.close();
    this.#answered();
  }

  async #ask(): Promise<Standing> {
    const { servers, silenceMs } = this.#options;
    if (this.#client !== null) {
      try {
        return await answered(this.#standings.of(servers.current, this.#client), silenceMs);
      } catch (thrown) {
        const error = errorOf(thrown);
        if (error instanceof Silence || isServerError(error)) throw error;
        // Perhaps only this connection was ended.
        this.#drop();
      }
    }
    const { client, standing } = await this.#connect();
    this.#use(client);
    return standing;
  }

  /** Leaves a server that is no longer the right one. @throws Unfit where it may not be used */
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
    if (!isBehind && this.#awaySince === null) this.#options.renew();
    this.#isBehind = isBehind;
  }

  /** Goes to the first of the other servers that will do; returns whether there was one. */
  async #search(why: Error): Promise<boolean> {
    const { servers, connection, silenceMs, onMove, newest } = this.#options;
    for (const url of servers.others) {
      const told = newest();
      const found = await candidateAt(url, connection(url), this.#standings, told, silenceMs);
      if (this.#isClosed) return false;
      if (found === null || !this.#willDo(found)) continue;
      this.#drop();
      servers.use(url);
      this.#standings.begin(url);
      this.#standing = { ...found, asOfMs: performance.now() };
      onMove?.(why);
      return true;
    }
    return false;
  }

  #willDo({ isStandby, behindMs, isLacking }: Candidate): boolean {
    const { mustWrite, behindMs: most } = this.#options;
    const since = this.#awaySince;
    if (isStandby && mustWrite) return false;
    // Where there is no other, one that is behind has to do.
    if (behindMs > most && since === null) return false;
    return !isLacking || (since !== null && performance.now() - since > LOSS_MS);
  }

  /** @throws Silence, and the errors of the server */
  async #connect(): Promise<{ client: pg.Client; standing: Standing }> {
    if (this.#isClosed) throw new Error('the watch is closed');
    const { servers, connection, silenceMs } = this.#options;
    const { current } = servers;
    const client = new pg.Client(connection(current));
    this.#clients.add(client);
    client.on('error', () => {});
    client.on('end', () => this.#lost(client));
    const first = async (): Promise<Standing> => {
      await client.connect();
      return this.#standings.of(current, client);
    };
    try {
      return { client, standing: await answered(first(), silenceMs) };
    } catch (error) {
      this.#clients.delete(client);
      destroy(client);
      throw error;
    }
  }

  #use(client: pg.Client): void {
    this.#drop();
    this.#client = client;
  }

  /** The connection ended by itself: perhaps the whole server did. */
  #lost(client: pg.Client): void {
    this.#clients.delete(client);
    if (this.#client !== client) return;
    this.#client = null;
    void this.hint();
  }

  #drop(): void {
    const client = this.#client;
    this.#client = null;
    if (client !== null) destroy(client);
  }
}

/** A watch, which begins with `start` or the first hint. */
export const watchOf = (options: WatchOptions): Watch => new Watching(options);
