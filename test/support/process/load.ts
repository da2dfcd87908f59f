import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';

type Test = Pick<typeof t, 'teardown'>;

/** A request as it is sent. */
export interface Ask {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** What became of a request; status 0 when there was no answer. */
export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** From when it was due to its last byte. */
  readonly ms: number;
  /** When it ended, by `performance.now()`. */
  readonly endedAt: number;
}

/** Where requests go. */
export interface Target {
  readonly port: number;
  /** An API key, or a token. */
  readonly key: string;
}

/** Connections that are kept open unless it is said otherwise, and closed after the test. */
export function agentOf(test: Test, maxSockets = 64, keepAlive = true): Agent {
  const agent = new Agent({ keepAlive, maxSockets });
  test.teardown(() => agent.destroy());
  return agent;
}

/** Sends one request and waits for its end, whatever it is; it never throws. */
export function send(
  agent: Agent | false,
  { port, key }: Target,
  ask: Ask,
  dueAt = performance.now(),
): Promise<Answered> {
  const { method = ask.body === undefined ? 'GET' : 'POST', path, body } = ask;
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const credential = key.startsWith('ey')
    ? { authorization: `Bearer ${key}` }
    : { 'x-api-key': key };
  // A request that has a credential of its own sends no other: two are refused as such.
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
    asking.on('error', (error) => end(0, error.message));
    asking.end(body);
  });
}

/** Sends all, so many at a time; returns the answers in the order of the questions. */
export async function sendAll(
  test: Test,
  target: Target,
  asks: readonly Ask[],
  atOnce = 16,
): Promise<Answered[]> {
  const agent = agentOf(test, atOnce);
  const answers: Answered[] = [];
  const rest = asks.entries();
  const worker = async (): Promise<void> => {
    for (const [at, ask] of rest) answers[at] = await send(agent, target, ask);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  agent.destroy();
  return answers;
}

/** What became of a request of a load. */
export interface LoadAnswer extends Answered {
  readonly ask: Ask;
}

export interface OpenLoad {
  /** How many were sent so far. */
  sent(): number;
  /** Those that were answered so far; the text of a 200 is not kept. */
  readonly answers: readonly LoadAnswer[];
  /** Changes the rate. */
  rate(perSecond: number): void;
  /** Sends no more, and waits for those under way. */
  stop(): Promise<readonly LoadAnswer[]>;
}

/** Beyond so many without an answer it is the machine that fails, which has no more sockets. */
const UNANSWERED_MAX = 1_000;

/** Sends requests at a rate, whether they are answered or not, as clients do who do not wait. */
export function openLoad(
  test: Test,
  target: Target,
  questions: readonly Ask[],
  perSecond: number,
  keepAlive = true,
  maxSockets = Number.POSITIVE_INFINITY,
): OpenLoad {
  const agent = agentOf(test, maxSockets, keepAlive);
  const answers: LoadAnswer[] = [];
  const running = new Set<Promise<void>>();
  let rate = perSecond;
  let sent = 0;
  let isOver = false;
  /** Called when there is one less without an answer. */
  let proceed = (): void => {};
  const run = async (): Promise<void> => {
    for (let due = performance.now(); !isOver; due += 1_000 / rate) {
      const wait = due - performance.now();
      if (wait > 0) await pause(wait);
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
    return answers;
  };
  test.teardown(() => {
    isOver = true;
  });
  return {
    sent: () => sent,
    answers,
    rate: (next) => {
      rate = next;
    },
    stop,
  };
}

/** How often each came. */
export function countsOf(answers: readonly { readonly status: number }[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** So many of all took no longer; `share` 1 is the longest. */
export function quantile(answers: readonly { readonly ms: number }[], share: number): number {
  const sorted = answers.map(({ ms }) => ms).toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** The code of a problem; null of anything else. */
export function codeOf({ text }: Pick<Answered, 'text'>): string | null {
  try {
    const { code } = JSON.parse(text) as { code?: unknown };
    return typeof code === 'string' ? code : null;
  } catch {
    return null;
  }
}

/**
 * Answers that a client cannot put up with: no answer, a failure of the service, or a 503 that
 * does not say when to come back.
 */
export const intolerable = (answers: readonly Answered[]): string[] =>
  answers
    .filter(
      ({ status, headers }) =>
        status === 0 ||
        (status >= 500 && status !== 503 && status !== 504) ||
        (status === 503 && headers['retry-after'] === undefined),
    )
    .slice(0, 20)
    .map(({ status, text }) => `${status} ${text.slice(0, 200)}`);
