import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';
import { LENGTH } from '../run/length.ts';

type Test = Pick<typeof t, 'teardown'>;

/** A request. */
export interface HttpRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /**
   * Sent once more if its reused connection ends before the answer begins. The server closed it
   * while the request was on its way. RFC 9112 (9.3.1) allows the repetition of such a request, and
   * Node recommends it (`request.reusedSocket`).
   */
  readonly isRepeatable?: true;
}

/** The outcome of a request; status 0 for no answer. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Time from the due time to the last byte. */
  readonly ms: number;
  /** End time by `performance.now()`. */
  readonly endedAt: number;
  /** True if the request was sent twice, see `isRepeatable`. */
  readonly isRepeated?: boolean;
}

/** The service that a request goes to. */
export interface Target {
  readonly port: number;
  /** An API key, or a token. */
  readonly key: string;
}

/** A connection pool, keep-alive by default; the teardown closes it. */
export function agentOf(test: Test, maxSockets = 64, keepAlive = true): Agent {
  const agent = new Agent({ keepAlive, maxSockets });
  test.teardown(() => agent.destroy());
  return agent;
}

/** Sends one request and waits for its outcome; it never throws. */
export function send(
  agent: Agent | false,
  { port, key }: Target,
  ask: HttpRequest,
  dueAt = performance.now(),
): Promise<HttpAnswer> {
  const { method = ask.body === undefined ? 'GET' : 'POST', path, body } = ask;
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const credential = key.startsWith('ey')
    ? { authorization: `Bearer ${key}` }
    : { 'x-api-key': key };
  // A request with its own credential sends no second one: two are rejected.
  const isOwn = 'authorization' in (ask.headers ?? {}) || 'x-api-key' in (ask.headers ?? {});
  const headers = { ...(isOwn ? {} : credential), ...type, ...ask.headers };
  return new Promise((resolve) => {
    const end = (status: number, text: string, told: IncomingHttpHeaders = {}): void => {
      const endedAt = performance.now();
      resolve({ status, headers: told, text, ms: endedAt - dueAt, endedAt });
    };
    const options = { agent, port, host: '127.0.0.1', path, method, headers };
    const asking = request(options, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('error', (error) => end(0, error.message));
      answer.on('end', () => {
        end(answer.statusCode ?? 0, Buffer.concat(parts).toString('utf8'), answer.headers);
      });
    });
    asking.on('error', (error) => {
      // Node reports the connection only while no answer has begun.
      if (!ask.isRepeatable || !asking.reusedSocket) return end(0, error.message);
      void send(false, { port, key }, ask, dueAt).then((answer) =>
        resolve({ ...answer, isRepeated: true }),
      );
    });
    asking.end(body);
  });
}

/** Sends all requests with bounded concurrency; returns the answers in request order. */
export async function sendAll(
  test: Test,
  target: Target,
  asks: readonly HttpRequest[],
  atOnce = 16,
): Promise<HttpAnswer[]> {
  const agent = agentOf(test, atOnce);
  const answers: HttpAnswer[] = [];
  const rest = asks.entries();
  const worker = async (): Promise<void> => {
    for (const [at, ask] of rest) answers[at] = await send(agent, target, ask);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  agent.destroy();
  return answers;
}

/** The outcome of a request of a load. */
export interface LoadAnswer extends HttpAnswer {
  readonly ask: HttpRequest;
}

export interface OpenLoad {
  /** The number of sent requests. */
  sent(): number;
  /** The answers so far; the text of a 200 is not kept. */
  readonly answers: readonly LoadAnswer[];
  /** Changes the rate. */
  rate(perSecond: number): void;
  /**
   * Stops sending and waits for the requests in flight. Asserts that at least `SENT_MIN` of the
   * scheduled requests were sent, except beside other tests, which hold this one up.
   */
  stop(): Promise<readonly LoadAnswer[]>;
}

/** Share of the scheduled requests that a load sends at least. */
const SENT_MIN = 0.95;

/** Bound of requests in flight, below the socket limit of the machine. */
const UNANSWERED_MAX = 1_000;

/** A timer that fires later than this was held up in the test, by other work on the machine. */
const HELD_UP_MS = 20;

/** The due times of requests at a fixed rate, in `performance.now` time. */
class Schedule {
  perSecond: number;
  /** Number of requests that are not sent, because the test was held up. */
  missed = 0;
  #dueMs = performance.now();

  constructor(perSecond: number) {
    this.perSecond = perSecond;
  }

  /**
   * Waits for the next due time. If the test was held up, the schedule continues from then on: the
   * missed requests would arrive all at once, which is another load than the given rate.
   */
  async next(): Promise<number> {
    const waitMs = this.#dueMs - performance.now();
    if (waitMs > 0) {
      await pause(waitMs);
      const lateMs = performance.now() - this.#dueMs;
      if (lateMs > HELD_UP_MS) {
        this.#dueMs += lateMs;
        this.missed += (lateMs * this.perSecond) / 1_000;
      }
    }
    const dueMs = this.#dueMs;
    this.#dueMs += 1_000 / this.perSecond;
    return dueMs;
  }
}

/** Sends requests at a fixed rate regardless of the answers (an open loop). */
export function openLoad(
  test: Pick<typeof t, 'teardown' | 'ok'>,
  target: Target,
  questions: readonly HttpRequest[],
  perSecond: number,
  keepAlive = true,
  maxSockets = Number.POSITIVE_INFINITY,
): OpenLoad {
  const agent = agentOf(test, maxSockets, keepAlive);
  const answers: LoadAnswer[] = [];
  const running = new Set<Promise<void>>();
  const schedule = new Schedule(perSecond);
  let sent = 0;
  let isOver = false;
  /** Resolves the wait for a request in flight to end. */
  let proceed = (): void => {};
  const run = async (): Promise<void> => {
    while (!isOver) {
      const due = await schedule.next();
      if (running.size >= UNANSWERED_MAX) {
        await new Promise<void>((resolve) => {
          proceed = resolve;
        });
      }
      const ask = questions[sent++ % questions.length];
      if (isOver || !ask) break;
      const one: Promise<void> = send(agent, target, ask, due).then((answer) => {
        answers.push({ ...answer, ask, text: answer.status === 200 ? '' : answer.text });
        running.delete(one);
        proceed();
      });
      running.add(one);
    }
  };
  const all = run();
  const stop = async (): Promise<readonly LoadAnswer[]> => {
    isOver = true;
    await all;
    await Promise.all(running);
    agent.destroy();
    const scheduled = Math.round(sent + schedule.missed);
    const isIntended = sent >= SENT_MIN * scheduled;
    if (LENGTH !== 'short') test.ok(isIntended, `${sent} of ${scheduled} requests were sent`);
    return answers;
  };
  test.teardown(() => {
    isOver = true;
  });
  return {
    sent: () => sent,
    answers,
    rate: (next) => {
      schedule.perSecond = next;
    },
    stop,
  };
}

/** The number of answers by status. */
export function countsOf(answers: readonly { readonly status: number }[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** A quantile of the latencies; `share` 1 is the maximum. */
export function quantile(answers: readonly { readonly ms: number }[], share: number): number {
  const sorted = answers.map(({ ms }) => ms).toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** The code of a problem; null for other bodies. */
export function codeOf({ text }: Pick<HttpAnswer, 'text'>): string | null {
  try {
    const { code } = JSON.parse(text) as { code?: unknown };
    return typeof code === 'string' ? code : null;
  } catch {
    return null;
  }
}

/**
 * Unacceptable outcomes: no answer, a 5xx other than 503 and 504, or a 503 without Retry-After.
 */
export const unacceptable = (answers: readonly HttpAnswer[]): string[] =>
  answers
    .filter(
      ({ status, headers }) =>
        status === 0 ||
        (status >= 500 && status !== 503 && status !== 504) ||
        (status === 503 && headers['retry-after'] === undefined),
    )
    .slice(0, 20)
    .map(({ status, text }) => `${status} ${text.slice(0, 200)}`);
