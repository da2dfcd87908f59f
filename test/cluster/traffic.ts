import { Agent } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { type HttpAnswer, type HttpRequest, send, type Target } from '../support/process/load.ts';

/** Bytes of the largest request body that is allowed, BODY_BYTES_MAX. */
const BODY_BYTES_MAX = 131_072;
export const CLIENTS = 8;

const FILTERS = { codes: ['CP-NI-0001'] };
const LAST = { includeSeries: true, lastObservations: 5 };

const padded = (value: object, bytes: number): string => {
  const text = JSON.stringify(value);
  return `${text.slice(0, -1)}${' '.repeat(bytes - text.length)}}`;
};

/** Reads by GET and by POST; the last has a body of the largest size. */
const ASKS: readonly HttpRequest[] = [
  { path: '/v3/prices/nickel?codes=CP-NI-0001' },
  { path: '/v3/prices/nickel', body: JSON.stringify({ filters: FILTERS, options: LAST }) },
  { path: '/v3/prices/copper?limit=3' },
  { path: '/v3/prices/nickel', body: JSON.stringify({ filters: FILTERS }) },
  { path: '/v3/prices' },
  { path: '/v3/prices/nickel', body: padded({ filters: FILTERS }, BODY_BYTES_MAX) },
];

/** Results of the clients. */
export interface TrafficResults {
  requests: number;
  /** Answers that are not 200, in words. */
  readonly failed: string[];
  longestMs: number;
  /** Answers with a smaller revision than the client had seen. */
  older: number;
}

interface TrafficOptions {
  /** True if each client sends the last revision that it has seen. */
  readonly isMonotonic?: boolean;
  /**
   * Mean pause of a client between requests, in milliseconds; it varies, so that clients do not
   * stay in step.
   */
  readonly pauseMs?: number;
  /** Number of clients; 8 by default. */
  readonly clients?: number;
}

export const numberOf = ({ headers }: Pick<HttpAnswer, 'headers'>): number =>
  Number(String(headers['x-data-revision'] ?? '').split('.')[1] ?? 0);

/** Clients that read, each over its own connection, one request after another. */
export class Traffic {
  readonly seen: TrafficResults = { requests: 0, failed: [], longestMs: 0, older: 0 };
  readonly #target: Target;
  readonly #options: TrafficOptions;
  readonly #clients: Promise<void>[];
  #isOver = false;

  constructor(target: Target, options: TrafficOptions = {}) {
    this.#target = target;
    this.#options = options;
    const { clients = CLIENTS } = options;
    this.#clients = Array.from({ length: clients }, (_, at) => this.#read(at));
  }

  /** Waits until so many requests were answered since the start. */
  async reach(requests: number): Promise<void> {
    while (this.seen.requests < requests) await pause(20);
  }

  async stop(): Promise<TrafficResults> {
    this.#isOver = true;
    await Promise.all(this.#clients);
    return this.seen;
  }

  async #read(first: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const { seen } = this;
    const { isMonotonic = false, pauseMs = 0 } = this.#options;
    let newest = { text: '', number: 0 };
    /** The last revision of each request: that of a market that changes rarely is smaller. */
    const last = new Map<HttpRequest, number>();
    for (let at = first; !this.#isOver; at += 1) {
      const ask = ASKS[at % ASKS.length] as HttpRequest;
      const headers: Record<string, string> =
        isMonotonic && newest.text !== '' ? { 'x-min-revision': newest.text } : {};
      const answer = await send(agent, this.#target, { ...ask, headers });
      seen.requests += 1;
      seen.longestMs = Math.max(seen.longestMs, answer.ms);
      if (answer.status !== 200) {
        const { status, ms, text } = answer;
        seen.failed.push(`${ask.path} ${status} after ${Math.round(ms)} ms: ${text.slice(0, 160)}`);
      } else if (answer.headers['x-data-revision'] !== undefined) {
        const number = numberOf(answer);
        if (answer.headers['x-min-revision-unknown'] !== undefined) {
          // Revisions of two histories cannot be compared.
          last.clear();
          newest = { text: '', number: 0 };
        }
        if (number < (last.get(ask) ?? 0)) seen.older += 1;
        last.set(ask, number);
        if (number > newest.number) {
          newest = { text: String(answer.headers['x-data-revision']), number };
        }
      }
      if (pauseMs > 0) await pause(pauseMs * (0.5 + Math.random()));
    }
    agent.destroy();
  }
}
