import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type t from 'tap';
import { price } from '../../clients/scripted-server.ts';
import { type Figures, within } from '../../support/process/figures.ts';
import { byLength } from '../../support/run/length.ts';

/** Duration of the calls, by the length of this run. */
export const SECONDS = byLength(6, 300);
/** The deadline of each call, in seconds. */
export const TIMEOUT = 6;
/** Concurrent calls of a client. */
export const CALLERS = 8;

const ATTEMPTS_MAX = 4;
/** The longest pause, in seconds, that a client makes unless `Retry-After` asks for one. */
const PAUSE_MAX = 2;
/** A `Retry-After` beyond every deadline. */
const RETRY_AFTER_HUGE = '999999999';

/** An attempt as the server saw it; the client may not retry before `notBeforeMs`. */
interface ObservedAttempt {
  readonly outcome: 'answered' | 'failed' | 'refused for long';
  readonly atMs: number;
  readonly notBeforeMs: number;
}

/** A call as the client saw it: its code, the codes of the answer or the error, its seconds. */
export type ClientCall = readonly [code: string, got: readonly string[] | string, seconds: number];

const pick = <T>(from: readonly [T, ...T[]]): T =>
  from[Math.floor(Math.random() * from.length)] ?? from[0];

function refuse(reply: ServerResponse, status: number): ObservedAttempt {
  const after = pick([
    undefined,
    '0',
    '0',
    '1',
    '-1',
    'soon',
    RETRY_AFTER_HUGE,
    new Date().toUTCString(),
  ]);
  const headers = { 'content-type': 'application/problem+json' };
  reply.writeHead(status, after === undefined ? headers : { ...headers, 'retry-after': after });
  reply.end(JSON.stringify({ status, code: 'refused', detail: 'refused' }));
  const atMs = performance.now();
  const outcome = after === RETRY_AFTER_HUGE ? 'refused for long' : 'failed';
  return { outcome, atMs, notBeforeMs: after === '1' ? atMs + 1_000 : atMs };
}

/** Answers a call in a random way. */
function answer(reply: ServerResponse, code: string): ObservedAttempt {
  const $metadata = { market: 'nickel', revision: 'abcd.1', count: 1, warnings: [] };
  const body = JSON.stringify({ $metadata, data: [price(code)] });
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  const way = pick(['ok', 'ok', 'ok', 429, 503, 304, 'cut', 'cut in the head', 'cut in the body']);
  const atMs = performance.now();
  if (way === 'ok') {
    reply.writeHead(200, headers).end(body);
    return { outcome: 'answered', atMs, notBeforeMs: atMs };
  }
  if (way === 429 || way === 503) return refuse(reply, way);
  // One in ten sends nothing more.
  if (Math.random() > 0.1) {
    if (way === 304) reply.writeHead(304).end();
    else if (way === 'cut') reply.destroy();
    else if (way === 'cut in the head') reply.socket?.end('HTTP/1.1 200 OK\r\ncontent-ty');
    else reply.writeHead(200, headers).write(body.slice(0, 20), () => reply.destroy());
  }
  return { outcome: 'failed', atMs, notBeforeMs: atMs };
}

/** True if the attempts of a call do not explain its outcome. */
function isWrong([code, got, seconds]: ClientCall, attempts: readonly ObservedAttempt[]): boolean {
  const outcomes = attempts.map(({ outcome }) => outcome);
  if (attempts.length > ATTEMPTS_MAX) return true;
  if (typeof got !== 'string') {
    return got.join() !== code || outcomes.indexOf('answered') !== outcomes.length - 1;
  }
  // The server may have sent an answer after the deadline of the call.
  if (seconds > TIMEOUT - PAUSE_MAX) return false;
  const hasReason = outcomes.length === ATTEMPTS_MAX || outcomes.at(-1) === 'refused for long';
  return outcomes.includes('answered') || !hasReason;
}

/** Attempts before Retry-After had passed, minus timer slack. */
const earlyOf = (attempts: readonly ObservedAttempt[]): number =>
  attempts.filter(({ atMs }, at) => atMs < (attempts[at - 1]?.notBeforeMs ?? 0) - 50).length;

/**
 * Runs calls of a client against a server that answers 200, 429, 503 and 304, cuts connections and
 * stalls, in random order. Each call requests its own code.
 * @param run makes the calls and returns their outcomes
 */
export async function callsAgainstUnreliableServer(
  test: typeof t,
  run: (url: string) => Promise<readonly ClientCall[]>,
): Promise<Figures> {
  const attempts = new Map<string, ObservedAttempt[]>();
  const server = createServer((request, reply) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const [code] = JSON.parse(Buffer.concat(parts).toString()).filters.codes;
      attempts.set(code, [...(attempts.get(code) ?? []), answer(reply, code)]);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const calls = await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);

  const sent = [...attempts.values()];
  const wrong = calls.filter((call) => isWrong(call, attempts.get(call[0]) ?? []));
  test.same(wrong.slice(0, 5), [], 'each end of a call is explained by its attempts');
  test.ok(calls.length > SECONDS, `${calls.length} calls`);
  const answered = calls.filter(([, got]) => typeof got !== 'string').length;
  const codes = new Set(calls.map(([code]) => code));
  const latest = Math.max(...calls.map(([, , seconds]) => seconds)) - TIMEOUT;
  return {
    minutes: SECONDS / 60,
    calls: calls.length,
    attempts: sent.flat().length,
    answered,
    'failed for a reason': calls.length - answered - wrong.length,
    lost: within([...attempts.keys()].filter((code) => !codes.has(code)).length, 0, 'answers'),
    doubled: within(calls.length - codes.size, 0, 'answers'),
    unexplained: within(wrong.length, 0, 'answers'),
    'attempts before Retry-After': within(
      sent.reduce((sum, each) => sum + earlyOf(each), 0),
      0,
      'answers',
    ),
    'beyond the deadline by at most': within(Math.max(0, latest * 1_000), 500),
  };
}
