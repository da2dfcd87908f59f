import pg from 'pg';
import type { Breaker } from './breaker.ts';
import { type Candidate, candidateAt, type Extent } from './candidate.ts';
import { destroy } from './goodbye.ts';
import type { Servers } from './servers.ts';
import { answered, Silence } from './silence.ts';
import { type Standing, Standings } from './standing.ts';

/** Looks all the time whether the database answers, over a connection of its own. */
export interface Watch {
  /** Begins to look; nothing where it looks already. */
  start(): void;
  /** Something failed: looks at once. */
  hint(): void;
  /** The database answered somebody else. */
  heard(): void;
  /** How long a standby may have lacked by now what was committed, in ms; 0 for a primary. */
  readonly lagMs: number;
  /** Settled once the first look is over. */
  readonly firstLook: Promise<void>;
  close(): Promise<void>;
}

export interface WatchOptions {
  /** How to connect to a server. */
  readonly connection: (url: string) => pg.ClientConfig;
  readonly servers: Servers;
  /** Whether only a server will do that can be written to. */
  readonly mustWrite: boolean;
  /** How long a standby may lack what it should have, in milliseconds, before it is left. */
  readonly behindMs: number;
  readonly breaker: Breaker;
  /** How long the database may be silent, in milliseconds, twice in a row. */
  readonly silenceMs: number;
  /** The newest that was told of the data: no server is used that lacks it, if it can be helped. */
  readonly newest: () => Extent | null;
  /** Called after each look that was answered. */
  readonly onAnswer?: () => void;
  /** Called when another server is used from now on; why the one before is not. */
  readonly onMove?: (why: Error) => void;
  /** Called when a standby is behind, and no other server can take its place. */
  readonly onBehind?: (why: Error) => void;
}

const PERIOD_MS = 800;
/** While the database is away. */
const IMPATIENT_MS = 250;
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
  #client: pg.Client | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;
  #isStarted = false;
  #isClosed = false;
  #heardAt = 0;
  #silences = 0;
  /** Since when there is no database; null while there is one. */
  #awaySince: number | null = null;
  #searchedAt = Number.NEGATIVE_INFINITY;
  #isBehind = false;
  /** How the server in use stood when it told it last. */
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
    if (this.#isStarted) return;
    this.#isStarted = true;
    void this.#look();
  }

  hint(): void {
    this.#isStarted = true;
    void this.#look();
  }

  heard(): void {
    this.#heardAt = performance.now();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#first.resolve();
    this.#drop();
  }

  async #look(): Promise<void> {
    if (this.#isLooking || this.#isClosed) return;
    this.#isLooking = true;
    clearTimeout(this.#timer);
    const waitMs = await this.#probe();
    this.#isLooking = false;
    this.#first.resolve();
    if (this.#isClosed) return this.#drop();
    this.#timer = setTimeout(() => void this.#look(), waitMs).unref();
  }

  /** Looks once, and tells the breaker; returns when to look again, in milliseconds. */
  async #probe(): Promise<number> {
    const { breaker, silenceMs, onAnswer } = this.#options;
    const begun = performance.now();
    try {
      await this.#heed(await answered(this.#ask(), silenceMs));
    } catch (thrown) {
      this.#drop();
      const error = errorOf(thrown);
      // What the server tells of a statement is an answer, and so is what it told others.
      if (!this.#isAnswer(error, begun)) {
        const waitMs = this.#fail(error);
        if (waitMs === 0 || !(await this.#search(error))) return waitMs;
      }
    }
    this.#silences = 0;
    this.#awaySince = null;
    breaker.close();
    onAnswer?.();
    return PERIOD_MS;
  }

  #isAnswer(error: Error, begun: number): boolean {
    if (error instanceof Silence) return this.#heardAt > begun;
    return (error as { severity?: string }).severity === 'ERROR';
  }

  #fail(error: Error): number {
    const { breaker } = this.#options;
    this.#silences = error instanceof Silence ? this.#silences + 1 : 0;
    if (this.#silences === 1) return 0;
    this.#awaySince ??= performance.now();
    if (this.#silences > 1) breaker.open(error);
    else breaker.lose(error);
    return IMPATIENT_MS;
  }

  async #ask(): Promise<Standing> {
    const { current } = this.#options.servers;
    const client = this.#client ?? (await this.#connect(current));
    return this.#standings.of(current, client);
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

  async #connect(url: string): Promise<pg.Client> {
    const client = new pg.Client(this.#options.connection(url));
    this.#client = client;
    client.on('error', () => this.#client === client && this.#drop());
    client.on('end', () => this.#lost(client));
    await client.connect();
    return client;
  }

  /** The connection ended by itself: perhaps the whole server did. */
  #lost(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#drop();
    this.hint();
  }

  #drop(): void {
    const client = this.#client;
    this.#client = null;
    if (client !== null) destroy(client);
  }
}

/** A watch, which begins with `start` or the first hint. */
export const watchOf = (options: WatchOptions): Watch => new Watching(options);
