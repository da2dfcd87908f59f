import type { LookupFunction } from 'node:net';
import type { Kysely } from 'kysely';
import type { Database } from '../db/schema.ts';
import { type Claimed, claim, purge, record, release } from './deliver.ts';
import { follow } from './follow.ts';
import { type LateRounds, lateRounds } from './late.ts';
import { bodyOf } from './message.ts';
import type { AllowedNetworks } from './receiver.ts';
import { send } from './send.ts';

/** Most messages that are sent at a time. A receiver has at most one of them. */
const SENDING_MAX = 100;
/**
 * Most of them to receivers whose last attempt failed: any number of receivers that do not answer
 * leaves room for the others.
 */
const FAILING_MAX = SENDING_MAX / 2;

/** Time between looks at the database. */
const ROUND_MS = 1_000;
/** Time between judgements of late prices. */
const LATE_MS = 60_000;
const PURGE_MS = 3_600_000;

/** A line for the log. */
export interface SenderLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly text: string;
  readonly details: object;
}

export interface SenderOptions {
  /** A database with the account for webhooks. */
  readonly db: Kysely<Database>;
  /** Address of the service for the links of messages, without a slash at its end. */
  readonly publicUrl: string;
  readonly graceMinutes: number;
  readonly networks: AllowedNetworks;
  readonly log: (line: SenderLine) => void;
  /** Milliseconds since 1970; tests give another clock. */
  readonly now?: () => number;
  readonly lookUp?: LookupFunction;
}

/** Sends the messages of a database. Several senders share the work. */
export class Sender {
  readonly #options: SenderOptions;
  readonly #now: () => number;
  readonly #judgeLate: LateRounds;
  readonly #stopping = new AbortController();
  readonly #stopped = Promise.withResolvers<void>();
  readonly #sending = new Set<Promise<void>>();
  /** Number of attempts under way to receivers whose last attempt failed. */
  #failing = 0;
  #lateAtMs = Number.NEGATIVE_INFINITY;
  #purgedAtMs = Number.NEGATIVE_INFINITY;
  #wake: () => void = () => {};
  #running: Promise<void> = Promise.resolve();
  #hasFailed = false;

  constructor(options: SenderOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#judgeLate = lateRounds(options.db, options.graceMinutes);
  }

  /** Makes the messages that are missing, and begins to send those that are due. */
  async round(): Promise<void> {
    const { db } = this.#options;
    const nowMs = this.#now();
    await follow(db, nowMs, this.#stopping.signal);
    await this.#sendDue(nowMs);
    // Last, so that a fault here delays no message. A clock that was set back delays nothing.
    if (Math.abs(nowMs - this.#lateAtMs) >= LATE_MS) {
      await this.#judgeLate(nowMs);
      this.#lateAtMs = nowMs;
      await this.#sendDue(nowMs);
    }
    if (Math.abs(nowMs - this.#purgedAtMs) >= PURGE_MS) {
      await purge(db, nowMs);
      this.#purgedAtMs = nowMs;
    }
  }

  async #sendDue(nowMs: number): Promise<void> {
    await this.#begin(nowMs, false, SENDING_MAX);
    await this.#begin(nowMs, true, FAILING_MAX - this.#failing);
  }

  /** Begins to send due messages to receivers whose last attempt failed, or to the others. */
  async #begin(nowMs: number, isFailing: boolean, most: number): Promise<void> {
    const { db } = this.#options;
    const limit = Math.min(most, SENDING_MAX - this.#sending.size);
    const claimed = limit > 0 ? await claim(db, nowMs, { isFailing, limit }) : [];
    const share = Number(isFailing);
    for (const message of claimed) {
      this.#failing += share;
      const sending = this.#send(message).finally(() => {
        this.#failing -= share;
        this.#sending.delete(sending);
        // The next message of the same receiver may be due.
        this.#wake();
      });
      this.#sending.add(sending);
    }
  }

  /** Resolves when no message is being sent. */
  async idle(): Promise<void> {
    while (this.#sending.size > 0) await Promise.all(this.#sending);
  }

  /** Runs rounds until `stop` is called. */
  start(): void {
    this.#running = this.#run();
  }

  /** Aborts the attempts that run, whose messages wait again, and ends the rounds. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#stopped.resolve();
    await this.#running;
    await this.idle();
  }

  async #run(): Promise<void> {
    const { log } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      // Registered before the round, so that no end of an attempt is missed.
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      try {
        await this.round();
        if (this.#hasFailed) log({ level: 'info', text: 'webhooks are sent again', details: {} });
        this.#hasFailed = false;
      } catch (err) {
        // Once for each interruption.
        const text = 'webhooks wait: the database did not do what they need';
        if (!this.#hasFailed) log({ level: 'error', text, details: { err } });
        this.#hasFailed = true;
      }
      const { promise: over, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ROUND_MS);
      // Without a pause, a database that fails would be asked all the time.
      await Promise.race([over, this.#stopped.promise, ...(this.#hasFailed ? [] : [woken])]);
      clearTimeout(timer);
    }
  }

  /** Sends one message and records its outcome. Never throws. */
  async #send(message: Claimed): Promise<void> {
    const { db, log } = this.#options;
    const { id, webhook, url, type } = message;
    try {
      const about = { webhook, receiver: new URL(url).host, message: id, type };
      const answer = await this.#attempt(message);
      if (answer === null) return await release(db, id);
      const outcome = await record(db, message, answer, this.#now());
      const result = answer === 'refused' ? answer : answer.text;
      const details = { ...about, attempt: message.attempts + 1, result };
      if (outcome === 'delivered') log({ level: 'info', text: 'message delivered', details });
      else if (outcome === 'retry') log({ level: 'warn', text: 'message not delivered', details });
      else log({ level: 'error', text: ENDS[outcome], details });
    } catch (err) {
      // The claim ends by itself, and the message is sent again with the same id.
      log({ level: 'error', text: 'the outcome of a message was not recorded', details: { err } });
    }
  }

  /** Returns null if the sender stopped meanwhile. */
  async #attempt(message: Claimed) {
    const { publicUrl, networks, lookUp } = this.#options;
    const { id, url, webhook, epoch, secrets, scopes } = message;
    const sight = { webhook, filter: message, scopes: new Set(scopes), epoch, publicUrl };
    const body = scopes && bodyOf(message, sight);
    if (body === null) return 'refused';
    const { signal } = this.#stopping;
    const options = { networks, lookUp, nowMs: this.#now(), signal };
    try {
      return await send({ id: `msg_${id}`, url, body, secrets }, options);
    } catch (error) {
      if (signal.aborted) return null;
      throw error;
    }
  }
}

/** Lines about messages that are not sent again. */
const ENDS = {
  failed: 'message given up after its last attempt',
  refused: 'message not sent: the key of the webhook may not read this any more',
  gone: 'webhook disabled: the receiver answered 410 Gone',
} as const;
