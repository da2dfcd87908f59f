import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { python } from '../support/process/python.ts';
import { byLength } from '../support/run/faults.ts';

const SECONDS = byLength(8, 300);
const TIMEOUT = 6;
const ATTEMPTS_MAX = 4;
/** The longest pause of the client that no `Retry-After` asked for. */
const PAUSE_MAX = 2;
const ABSURD = '999999999';

/** The outcome of an attempt: a whole answer, a failure, or a refusal beyond any deadline. */
type Attempt = 'answered' | 'failed' | 'refused for long';

/** Calls in eight threads, each for a code of its own; prints one outcome a call. */
const PROGRAM = `
import itertools, json, threading, time
import commodity_prices as cp

numbers, outcomes, end = itertools.count(), [], time.monotonic() + ${SECONDS}

def call():
    while time.monotonic() < end:
        code = f"CALL-{next(numbers)}"
        begun = time.monotonic()
        try:
            found = cp.prices("nickel", codes=[code], timeout=${TIMEOUT})
            answer = [each["code"] for each in found]
        except cp.PricesError as error:
            answer = str(error)
        outcomes.append([code, answer, time.monotonic() - begun])

threads = [threading.Thread(target=call) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
print(json.dumps(outcomes))`;

const pick = <T>(from: readonly [T, ...T[]]): T =>
  from[Math.floor(Math.random() * from.length)] ?? from[0];

function refuse(reply: ServerResponse, status: number): Attempt {
  const now = new Date().toUTCString();
  const after = pick([undefined, '0', '0', '1', '-1', 'soon', ABSURD, now]);
  const headers = { 'content-type': 'application/problem+json' };
  reply.writeHead(status, after === undefined ? headers : { ...headers, 'retry-after': after });
  reply.end(JSON.stringify({ status, code: 'refused', detail: 'refused' }));
  return after === ABSURD ? 'refused for long' : 'failed';
}

/** Answers a call for a code in one of many ways. */
function answer(reply: ServerResponse, code: string): Attempt {
  const body = JSON.stringify({ $metadata: { warnings: [] }, data: [{ code }] });
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  const way = pick(['ok', 'ok', 429, 503, 304, 'cut', 'cut in the head', 'cut in the body']);
  if (way === 'ok') {
    reply.writeHead(200, headers).end(body);
    return 'answered';
  }
  if (way === 429 || way === 503) return refuse(reply, way);
  if (way === 304) reply.writeHead(304).end();
  else if (way === 'cut') reply.destroy();
  else if (way === 'cut in the head') reply.socket?.end('HTTP/1.1 200 OK\r\ncontent-ty');
  else reply.writeHead(200, headers).write(body.slice(0, 20), () => reply.destroy());
  return 'failed';
}

t.test('no call is lost, doubled or late while a server fails at random', async (t) => {
  const attempts = new Map<string, Attempt[]>();
  const server = createServer((request, reply) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const [code] = JSON.parse(Buffer.concat(parts).toString()).filters.codes;
      attempts.set(code, [...(attempts.get(code) ?? []), answer(reply, code)]);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const env = { COMMODITY_PRICES_URL: `http://127.0.0.1:${port}`, COMMODITY_PRICES_KEY: 'key' };
  const timeout = (SECONDS + 60) * 1_000;
  const { stdout, stderr } = await python(PROGRAM, env, { timeout });
  t.equal(stderr, '');
  const outcomes: readonly [string, string[] | string, number][] = JSON.parse(stdout);

  t.ok(outcomes.length > SECONDS, `${outcomes.length} calls`);
  t.equal(new Set(outcomes.map(([code]) => code)).size, outcomes.length, 'one outcome a call');
  t.equal(attempts.size, outcomes.length, 'every call reached the server');
  const late = outcomes.filter(([, , seconds]) => seconds > TIMEOUT + 0.5);
  t.same(late, [], 'none beyond its deadline');
  const wrong = outcomes.filter(([code, got, seconds]) => {
    const made = attempts.get(code) ?? [];
    if (Array.isArray(got)) return got[0] !== code || made.indexOf('answered') < made.length - 1;
    if (seconds > TIMEOUT - PAUSE_MAX) return made.length > ATTEMPTS_MAX;
    const hasReason = made.length === ATTEMPTS_MAX || made.at(-1) === 'refused for long';
    return made.includes('answered') || !hasReason;
  });
  t.same(wrong, [], 'an answer ends its call, and is the one that it asked for');
  const counts = outcomes.map(([, got]) => (Array.isArray(got) ? 'answered' : 'failed'));
  t.comment(`${counts.filter((each) => each === 'answered').length} of ${counts.length} answered`);
});
