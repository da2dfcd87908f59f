import pg from 'pg';
import { isServerError } from '../failures.ts';
import { goodbye } from './silence.ts';

/**
 * Is told the payload of a notice; null when some may have been missed: the connection was lost,
 * or made.
 */
type NoticeListener = (payload: string | null) => void;

/** What other sessions tell by NOTIFY, over one connection of its own. */
export interface Notices {
  /**
   * Tells a listener the notices of a channel from now on. The first one makes the connection, in
   * the background. Returns how to end it.
   */
  onNotice(channel: string, listener: NoticeListener): () => void;
  /** Whether a notice of this channel that is sent now will be heard. */
  isHeard(channel: string): boolean;
  /**
   * Asks one short statement over the connection that hears; notices wait meanwhile. Null where it
   * is not there or was not answered.
   */
  ask<Row extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<readonly Row[] | null>;
  /** The connections are made anew. */
  move(): void;
  close(): Promise<void>;
}

interface NoticesOptions {
  /** Where to connect, with the settings of the session. */
  readonly connection: () => pg.ClientConfig;
  /** Told once when the connection is lost or cannot be made, not at each new attempt. */
  readonly onError: (error: Error) => void;
  /** Time between two looks whether the connection still lives, in milliseconds. */
  readonly heartbeatMs?: number;
  /** What an answer of the server may take before the connection counts as lost. */
  readonly answerMs?: number;
}

/** That time where nothing else is said. */
export const ANSWER_MS = 5_000;

const HEARTBEAT_MS = 10_000;
/** The first wait before a new attempt; it doubles up to the last. */
const RETRY_MS = 100;
const RETRY_MS_MAX = 5_000;

const errorOf = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown));

class Listening implements Notices {
  readonly #options: NoticesOptions;
  readonly #listeners = new Map<string, Set<NoticeListener>>();
  /** The connection that is in use or being made. */
  #client: pg.Client | null = null;
  /** Channels that the server has confirmed on this connection. */
  #heard = new Set<string>();
  /** The question before; the driver takes one at a time. */
  #asked: Promise<unknown> = Promise.resolve();
  #attempts = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: NoticesOptions) {
    this.#options = options;
  }

  onNotice(channel: string, listener: NoticeListener): () => void {
    const known = this.#listeners.get(channel) ?? new Set();
    known.add(listener);
    this.#listeners.set(channel, known);
    this.#begin();
    return () => {
      known.delete(listener);
      if (known.size === 0 && this.#listeners.get(channel) === known) {
        this.#listeners.delete(channel);
      }
      if (this.#listeners.size === 0) void this.#disconnect();
    };
  }

  isHeard(channel: string): boolean {
    return this.#heard.has(channel);
  }

  async ask<Row extends pg.QueryResultRow>(query: pg.QueryConfig) {
    const client = this.#client;
    if (client === null || this.#heard.size === 0) return null;
    try {
      return (await this.#ask<Row>(client, query)).rows;
    } catch (error) {
      // An error that the server tells is an answer; after any other the line is dead.
      if (!isServerError(error)) this.#lose(client, errorOf(error));
      return null;
    }
  }

  move(): void {
    this.#attempts = 0;
    if (this.#client !== null) this.#lose(this.#client, new Error('the connections are made anew'));
    else this.#begin();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#disconnect();
  }

  /** Makes the connection when there is none; one that is being made asks for all by itself. */
  #begin(): void {
    if (this.#isClosed || this.#listeners.size === 0) return;
    if (this.#client === null) void this.#connect();
    else if (this.#heard.size > 0) void this.#listen(this.#client);
  }

  #ask<Row extends pg.QueryResultRow>(
    client: pg.Client,
    statement: string | pg.QueryConfig,
  ): Promise<pg.QueryResult<Row>> {
    const answer = this.#asked.then(() => client.query<Row>(statement));
    this.#asked = answer.catch(() => {});
    return answer;
  }

  async #connect(): Promise<void> {
    clearTimeout(this.#timer);
    const client = new pg.Client({
      ...this.#options.connection(),
      keepAlive: true,
      keepAliveInitialDelayMillis: HEARTBEAT_MS,
      query_timeout: this.#options.answerMs ?? ANSWER_MS,
    });
    this.#client = client;
    this.#asked = Promise.resolve();
    client.on('error', (error) => this.#lose(client, error));
    client.on('end', () => this.#lose(client, new Error('the connection was closed')));
    client.on('notification', ({ channel, payload }) => this.#tell(channel, payload ?? ''));
    try {
      await client.connect();
    } catch (error) {
      return this.#lose(client, errorOf(error));
    }
    await this.#listen(client);
  }

  /** Asks for every channel that is not heard yet, also those that come meanwhile. */
  async #listen(client: pg.Client): Promise<void> {
    try {
      for (const channel of this.#listeners.keys()) {
        if (this.#client !== client) return;
        if (this.#heard.has(channel)) continue;
        await this.#ask(client, `listen ${client.escapeIdentifier(channel)}`);
        if (this.#client !== client) return;
        this.#heard.add(channel);
        // What was committed before the server confirmed was not heard.
        this.#tell(channel, null);
      }
    } catch (error) {
      return this.#lose(client, errorOf(error));
    }
    if (this.#client !== client) return;
    this.#attempts = 0;
    this.#beat(client);
  }

  /** Looks now and then whether the other side is still there: a dead line makes no sound. */
  #beat(client: pg.Client): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(async () => {
      try {
        await this.#ask(client, 'select 1');
        if (this.#client === client) this.#beat(client);
      } catch (error) {
        this.#lose(client, errorOf(error));
      }
    }, this.#options.heartbeatMs ?? HEARTBEAT_MS).unref();
  }

  #lose(client: pg.Client, error: Error): void {
    if (this.#client !== client) return;
    if (this.#attempts === 0) this.#options.onError(error);
    this.#client = null;
    this.#heard = new Set();
    void client.end().catch(() => {});
    for (const channel of this.#listeners.keys()) this.#tell(channel, null);
    const waitMs = Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** this.#attempts);
    this.#attempts += 1;
    clearTimeout(this.#timer);
    // Spread, so that many services do not come back all at once.
    const spreadMs = waitMs * (0.5 + Math.random() / 2);
    this.#timer = setTimeout(() => this.#begin(), spreadMs).unref();
  }

  #tell(channel: string, payload: string | null): void {
    for (const listener of this.#listeners.get(channel) ?? []) {
      try {
        listener(payload);
      } catch (error) {
        this.#options.onError(errorOf(error));
      }
    }
  }

  async #disconnect(): Promise<void> {
    clearTimeout(this.#timer);
    const client = this.#client;
    this.#client = null;
    this.#heard = new Set();
    this.#attempts = 0;
    if (client !== null) await goodbye(client);
  }
}

/** Notices over a connection of their own, which is made when somebody listens. */
export const noticesOf = (options: NoticesOptions): Notices => new Listening(options);
