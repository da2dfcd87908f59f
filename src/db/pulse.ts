import pg from 'pg';

/** The newest revision of a scope: a market, `reference`, or `fx:<source>`. */
export interface ScopeState {
  readonly revision: string;
  /** When it was committed, as PostgreSQL prints it. */
  readonly committedAt: string;
}

/** What a look at the database found. The same object as before when nothing has changed. */
export interface Newest {
  readonly epoch: string;
  /** Grows with every change of an API key. */
  readonly keysVersion: string;
  /** The newest revision of all; "0" before the first. */
  readonly revision: string;
  readonly scopes: ReadonlyMap<string, ScopeState>;
}

/** The state of the database as requests may trust it. */
export interface Pulse {
  /**
   * What a look finds that begins after this call: nothing committed before it is missed. All who
   * ask while a look is under way share the next one. Throws what the database throws.
   */
  look(): Promise<Newest>;
  /** How many looks there were, and how many asked for one. */
  readonly counts: { readonly looks: number; readonly asked: number };
  close(): Promise<void>;
}

export interface PulseOptions {
  /** Where to connect, with the settings of the session. */
  readonly connection: pg.ClientConfig;
  /** Asked while the connection is being made. */
  readonly pool: pg.Pool;
  /** How long a look may take before its connection counts as lost, in milliseconds. */
  readonly patienceMs: number;
  readonly onError: (error: Error) => void;
}

const LOOK = {
  name: 'look',
  text: `select epoch, keys_version,
    (select coalesce(max(number), 0) from revision) as revision from service`,
};

/** What the revisions after one, up to another, touched. */
const TOUCHED = `select s.scope, s.revision, r.committed_at
  from (select scope, max(revision) as revision from revision_scope
    where revision > $1 and revision <= $2 group by scope) as s
  join revision as r on r.number = s.revision`;

const RETRY_MS = 100;
const RETRY_MS_MAX = 5_000;

type Row = readonly (string | null)[];
type Ask = (text: string, values: readonly string[], name?: string) => Promise<readonly Row[]>;

/** Asks a connection or the pool; rows as lists of texts. */
const asker =
  (where: pg.Client | pg.Pool): Ask =>
  async (text, values, name) => {
    const named = name === undefined ? {} : { name };
    const query = { ...named, text, values: [...values], rowMode: 'array' as const };
    return (await where.query<(string | null)[]>(query)).rows;
  };

/** Reads what is new since a look; the very object when nothing is. */
async function readNewest(ask: Ask, known: Newest | null): Promise<Newest> {
  const [row] = await ask(LOOK.text, [], LOOK.name);
  if (!row) throw new Error('the table service has no row');
  const [epoch, keysVersion, revision] = row as [string, string, string];
  const isSame = known !== null && epoch === known.epoch;
  if (isSame && revision === known.revision) {
    return keysVersion === known.keysVersion ? known : { ...known, keysVersion };
  }
  // A number that went back is of a restored database: nothing that was known of it holds.
  const since = isSame && BigInt(revision) > BigInt(known.revision) ? known : null;
  const touched = await ask(TOUCHED, [since?.revision ?? '0', revision]);
  const scopes = new Map(since?.scopes);
  for (const [scope, newest, committedAt] of touched as [string, string, string][]) {
    scopes.set(scope, { revision: newest, committedAt });
  }
  return { epoch, keysVersion, revision, scopes };
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
  #attempts = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: PulseOptions) {
    this.#options = options;
  }

  look(): Promise<Newest> {
    this.counts.asked += 1;
    if (this.#current === null) return this.#begin();
    const begin = () => this.#begin();
    this.#next ??= this.#current.then(begin, begin);
    return this.#next;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const client = this.#client;
    this.#forget();
    await client?.end().catch(() => {});
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
        return await readNewest(asker(client), this.#newest);
      } catch (error) {
        // An error that the server tells is an answer; after any other the line is dead.
        if ((error as { severity?: string }).severity === 'ERROR') throw error;
        this.#lose(client, error as Error);
      }
    }
    this.#connect();
    return readNewest(asker(this.#options.pool), this.#newest);
  }

  /** Begins to make the connection, unless it is there, being made, or was lost just now. */
  #connect(): void {
    if (this.#client !== null || this.#timer !== undefined || this.#isClosed) return;
    const { connection, patienceMs } = this.#options;
    const client = new pg.Client({
      ...connection,
      pipeline: true,
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
  }

  #lose(client: pg.Client, error: Error): void {
    if (this.#client !== client) return;
    this.#forget();
    void client.end().catch(() => {});
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
