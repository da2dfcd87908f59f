import pg from 'pg';
import { isPassing, isServerError } from '../failures.ts';
import type { Reads } from '../reads.ts';
import { commitIdOf, isAfter, numberOf } from '../revisions.ts';
import { orAborted } from '../shared-work.ts';
import type { Breaker } from './breaker.ts';
import { LOOK, type LookRow, quickLook, TOUCHED } from './look.ts';
import { goodbye } from './silence.ts';

/** The newest revision of a scope: a market, `reference`, or `fx:<source>`. */
interface ScopeState {
  readonly revision: string;
  /** When it was committed, as PostgreSQL prints it. */
  readonly committedAt: string;
}

/** What a look at the database found. The same object as before when nothing has changed. */
export interface Newest {
  readonly epoch: string;
  /** Another one after every change of an API key. */
  readonly keysVersion: string;
  /** The newest revision of all; "0" before the first. */
  readonly revision: string;
  readonly scopes: ReadonlyMap<string, ScopeState>;
  /** Grows from look to look that found other data: of two, the greater is the later one. */
  readonly order: number;
  /** Grows where a look found that a revision of the one before is gone, or the epoch another. */
  readonly history: number;
}

/** The state of the database as requests may trust it. */
export interface Pulse {
  /**
   * What a look finds that begins after this call: nothing committed before it is missed. All who
   * ask while a look is under way share the next one. Throws what the database throws.
   */
  look(): Promise<Newest>;
  /** What the last look found; null before the first. */
  readonly newest: Newest | null;
  /** How many looks there were, and how many asked for one. */
  readonly counts: { readonly looks: number; readonly asked: number };
  /** The connections are made anew: nothing that the one before tells counts any more. */
  move(): void;
  close(): Promise<void>;
}

interface PulseOptions {
  /** Where to connect, with the settings of the session. */
  readonly connection: () => pg.ClientConfig;
  /** Asked while the connection is being made. */
  readonly reads: Reads;
  /** Says when the database is away, sooner than the connection itself. */
  readonly breaker: Breaker;
  /** How long a look may take before its connection counts as lost, in milliseconds. */
  readonly patienceMs: number;
  readonly onError: (error: Error) => void;
}

const RETRY_MS = 100;
const RETRY_MS_MAX = 5_000;

type Row = readonly (string | null)[];
type Ask = (text: string, values: Row, name?: string) => Promise<readonly Row[]>;

/** A question as the driver takes it; rows are lists of texts. */
const question = (text: string, values: Row, name?: string) => ({
  ...(name === undefined ? {} : { name }),
  text,
  values: [...values],
  rowMode: 'array' as const,
});

const askerOf =
  (client: pg.Client): Ask =>
  async (...asked) =>
    (await client.query<(string | null)[]>(question(...asked))).rows;

/** What a look found, by way of any connection. */
const lookBy = async (ask: Ask): Promise<LookRow | undefined> =>
  (await ask(LOOK.text, [], LOOK.name))[0] as LookRow | undefined;

type Touched = readonly [scope: string, revision: string, committedAt: string, after: string];

const readTouched = async (ask: Ask, after: string, until: string) => {
  const ends = [after, until].flatMap((each) => [numberOf(each), commitIdOf(each)]);
  return (await ask(TOUCHED.text, ends, TOUCHED.name)) as unknown as readonly Touched[];
};

/** Reads what is new since a look; the very object when nothing is. */
async function readNewest(
  ask: Ask,
  row: LookRow | undefined,
  known: Newest | null,
): Promise<Newest> {
  if (!row) throw new Error('the table service has no row');
  const [epoch, keysVersion, revision] = row;
  const isSame = known !== null && epoch === known.epoch;
  if (isSame && revision === known.revision) {
    return keysVersion === known.keysVersion ? known : { ...known, keysVersion };
  }
  const isLater = isSame && isAfter(revision, known.revision);
  const touched = await readTouched(ask, isLater ? known.revision : '0', revision);
  // Where the revision that was known is gone, nothing that was known of it holds.
  const since = isLater && touched[0]?.[3] === numberOf(known.revision) ? known : null;
  const scopes = new Map(since?.scopes);
  for (const [scope, newest, committedAt] of touched) {
    scopes.set(scope, { revision: newest, committedAt });
  }
  const order = (known?.order ?? 0) + 1;
  const history = since?.history ?? (known?.history ?? 0) + 1;
  return { epoch, keysVersion, revision, scopes, order, history };
}

/** One look at a time, on a connection of its own that is always there. */
class Looking implements Pulse {
  readonly counts = { looks: 0, asked: 0 };
  readonly #options: PulseOptions;
  #newest: Newest | null = null;
  /** The look under way, and the one that begins after it. */
  #current: Promise<Newest> | null = null;
  #next: Promise<Newest> | null = null;
  #client: pg.Client | null = null;
  #isReady = false;
  /** Whether the connection has prepared the statement of a look. */
  #isPrepared = false;
  #attempts = 0;
  #moves = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: PulseOptions) {
    this.#options = options;
  }

  get newest(): Newest | null {
    return this.#newest;
  }

  look(): Promise<Newest> {
    this.counts.asked += 1;
    if (this.#current === null) return this.#begin();
    const begin = () => this.#begin();
    this.#next ??= this.#current.then(begin, begin);
    return this.#next;
  }

  move(): void {
    this.#moves += 1;
    const client = this.#client;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#attempts = 0;
    this.#forget();
    if (client) void goodbye(client);
    if (this.counts.looks > 0) this.#connect();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const client = this.#client;
    this.#forget();
    if (client) await goodbye(client);
  }

  #begin(): Promise<Newest> {
    this.counts.looks += 1;
    this.#next = null;
    const look = this.#read().then(
      (newest) => {
        this.#newest = newest;
        if (this.#current === look) this.#current = null;
        return newest;
      },
      (error: unknown) => {
        if (this.#current === look) this.#current = null;
        throw error;
      },
    );
    this.#current = look;
    return look;
  }

  async #read(): Promise<Newest> {
    const client = this.#client;
    if (client !== null && this.#isReady) {
      try {
        const newest = await orAborted(this.#ask(client), this.#options.breaker.lifeline);
        if (this.#client === client) return newest;
      } catch (error) {
        // An error that the server tells is an answer; after any other the line is dead.
        const isAnswer = isServerError(error);
        if (isAnswer && !isPassing(error)) throw error;
        if (!isAnswer) this.#lose(client, error as Error);
      }
    }
    this.#connect();
    const { reads } = this.#options;
    const ask: Ask = (...asked) => reads.query<Row>(question(...asked));
    const moves = this.#moves;
    const newest = await readNewest(ask, await lookBy(ask), this.#newest);
    // Its statements may have been answered by two servers.
    return moves === this.#moves ? newest : this.#read();
  }

  /** Looks over the connection that is there for it. */
  async #ask(client: pg.Client): Promise<Newest> {
    const ask = askerOf(client);
    const row = await (this.#isPrepared ? quickLook(client) : lookBy(ask));
    this.#isPrepared = this.#client === client;
    return readNewest(ask, row, this.#newest);
  }

  /** Begins to make the connection, unless it is there, being made, or was lost just now. */
  #connect(): void {
    if (this.#client !== null || this.#timer !== undefined || this.#isClosed) return;
    const { connection, patienceMs } = this.#options;
    const client = new pg.Client({
      ...connection(),
      keepAlive: true,
      query_timeout: patienceMs,
    });
    this.#client = client;
    client.on('error', (error) => this.#lose(client, error));
    client.on('end', () => this.#lose(client, new Error('the connection was closed')));
    client.connect().then(
      () => {
        if (this.#client !== client) return;
        this.#isReady = true;
        this.#attempts = 0;
      },
      (error: Error) => this.#lose(client, error),
    );
  }

  #forget(): void {
    this.#client = null;
    this.#isReady = false;
    this.#isPrepared = false;
  }

  #lose(client: pg.Client, error: Error): void {
    if (this.#client !== client) return;
    this.#forget();
    void goodbye(client);
    if (this.#attempts === 0) this.#options.onError(error);
    const waitMs = Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** this.#attempts);
    this.#attempts += 1;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#connect();
    }, waitMs).unref();
  }
}

/** Looks over a connection of their own, which is made with the first one. */
export const pulseOf = (options: PulseOptions): Pulse => new Looking(options);
