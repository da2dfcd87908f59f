import pg from 'pg';
import { answered, destroy } from './silence.ts';

/** A moment by the clock of the primary, and the last revision committed at or before it. */
export interface Settled {
  /** RFC 3339 in UTC with microseconds. */
  readonly until: string;
  readonly revision: string;
}

/** Newer than its clock are the last revisions of a primary whose clock was set back. */
const SETTLED = `
  with clock as materialized (
    select greatest(clock_timestamp() - interval '1 microsecond',
      (select max(committed_at) from revision)) as until
  ), found as materialized (
    select until, revision_as_of(until) as number from clock where not pg_is_in_recovery()
  )
  select to_char(until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as until,
    concat_ws('.', number, commit_id_of(number)) as revision from found`;

/** How long an answer is reused: the primary may be lost, and with it the revision. */
const FRESH_MS = 1_000;

interface PrimaryOptions {
  /** The servers among which the primary may be. */
  readonly urls: () => readonly string[];
  readonly connection: (url: string) => pg.ClientConfig;
  /** How long a server may take to answer, in milliseconds. */
  readonly silenceMs: number;
}

/** Asks the primary for what a standby cannot know. The connection is made when it is needed. */
export class Primary {
  readonly #options: PrimaryOptions;
  #client: pg.Client | null = null;
  #asking: Promise<void> | null = null;
  #settled: Settled | null = null;
  #readMs = 0;

  constructor(options: PrimaryOptions) {
    this.#options = options;
  }

  /**
   * A settled moment at or after an instant (UTC with microseconds); `future` where the clock of
   * the primary has not reached it, null where no primary answers. Concurrent callers share one
   * query that begins after their call.
   */
  async settledAt(instant: string): Promise<Settled | 'future' | null> {
    if (this.#options.urls().length === 0) return null;
    if (this.#has(instant)) return this.#settled;
    // A query under way may have read the clock before this call.
    await this.#asking;
    if (this.#has(instant)) return this.#settled;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
    });
    await this.#asking;
    if (this.#has(instant)) return this.#settled;
    return this.#client === null ? null : 'future';
  }

  close(): void {
    if (this.#client !== null) destroy(this.#client);
    this.#client = null;
  }

  #has(instant: string): boolean {
    const isFresh = performance.now() - this.#readMs < FRESH_MS;
    return isFresh && this.#settled !== null && this.#settled.until >= instant;
  }

  async #ask(): Promise<void> {
    if (this.#client !== null && (await this.#read(this.#client))) return;
    for (const url of this.#options.urls()) {
      this.close();
      const client = new pg.Client(this.#options.connection(url));
      client.on('error', () => this.#client === client && this.close());
      client.on('end', () => this.#client === client && this.close());
      this.#client = client;
      if (await this.#read(client, client.connect())) return;
    }
    this.close();
  }

  /** Reads a settled moment; false where the server does not answer, or is a standby. */
  async #read(client: pg.Client, connecting: Promise<unknown> = Promise.resolve()) {
    const read = connecting.then(() => client.query<Settled>(SETTLED));
    try {
      const { rows } = await answered(read, this.#options.silenceMs);
      this.#settled = rows[0] ?? null;
      this.#readMs = performance.now();
      return this.#settled !== null;
    } catch {
      read.catch(() => {});
      this.#settled = null;
      return false;
    }
  }
}
