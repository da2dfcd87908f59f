import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';

/** Commits a revision on a connection. @returns its number */
export async function commit(client: pg.Client, text: string): Promise<number> {
  await client.query('begin');
  await client.query('select lock_revisions()');
  const { rows } = await client.query("select open_revision('a test')::text as number");
  await client.query(text);
  await client.query('commit');
  return Number(rows[0].number);
}

export const renaming = (name: string): string =>
  `update price set name = '${name}' where code = 'CP-NI-0001'`;

export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** One writer, which commits at an interval and connects again after each failure. */
export class CommitWriter {
  commits = 0;
  /** Longest time between two commits, in milliseconds. */
  longestGapMs = 0;
  #lastMs = performance.now();
  #isOver = false;
  readonly #running: Promise<void>;

  constructor(url: string, intervalMs: number) {
    this.#running = this.#write(url, intervalMs);
  }

  /** Restarts the measurement of the gap. */
  reset(): void {
    this.longestGapMs = 0;
    this.#lastMs = performance.now();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  async #write(url: string, intervalMs: number): Promise<void> {
    let client: pg.Client | null = null;
    while (!this.#isOver) {
      try {
        client ??= await connect(url);
        await commit(client, renaming(`Commit ${this.commits}`));
        this.commits += 1;
        const now = performance.now();
        this.longestGapMs = Math.max(this.longestGapMs, now - this.#lastMs);
        this.#lastMs = now;
      } catch {
        client?.end().catch(() => {});
        client = null;
      }
      await pause(intervalMs);
    }
    await client?.end().catch(() => {});
  }
}
