import { gzipSync } from 'node:zlib';
import type t from 'tap';
import { newKey } from '../../../src/auth/keys/format.ts';
import { seededDatabase } from '../../support/database/database.ts';
import { peakGrowth, startServiceProcess } from '../../support/http/service-process.ts';
import { answerOf, RawConnection, startListening, until } from '../../support/http/sockets.ts';
import { within } from '../../support/process/figures.ts';
import { agentOf, type HttpAnswer, quantile, send } from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';

type Test = typeof t;

const KIB = 1_024;
const JSON_TYPE = 'application/json';

/** An invalid body that a lenient parser would accept. */
const badly = (bytes: readonly number[]): Buffer =>
  Buffer.concat([Buffer.from('{"filters":{"regions":["'), Buffer.from(bytes), Buffer.from('"]}}')]);

/** Hostile bodies and the status of their rejection. */
const HUGE: readonly (readonly [
  what: string,
  body: string | Buffer,
  status: number[],
  type?: string,
])[] = [
  ['100,000 lists in each other', '['.repeat(100_000) + ']'.repeat(100_000), [413]],
  ['60,000 lists in each other', '['.repeat(60_000) + ']'.repeat(60_000), [400]],
  ['20,000 objects in each other', `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`, [400]],
  ['lists that never end', '['.repeat(128 * KIB), [400]],
  ['128 KiB and one byte', `{}${' '.repeat(128 * KIB - 1)}`, [413]],
  ['128 KiB of white space', `{}${' '.repeat(128 * KIB - 2)}`, [200]],
  ['16 MiB', Buffer.alloc(16 * KIB * KIB, 0x20), [413]],
  [
    '10,000 short members',
    `{${Array.from({ length: 10_000 }, (_, at) => `"k${at}":1`).join()}}`,
    [400],
  ],
  ['the same member 15,000 times', `{${'"a":1,'.repeat(15_000)}"a":1}`, [400]],
  ['a number of 120,000 digits', `{"options":{"decimals":${'9'.repeat(120_000)}}}`, [400]],
  ['a fraction of 120,000 digits', `{"options":{"decimals":0.${'1'.repeat(120_000)}}}`, [400]],
  ['1e400', '{"options":{"decimals":1e400}}', [400]],
  ['1e-400', '{"options":{"decimals":1e-400}}', [200, 400]],
  ['-0', '{"options":{"decimals":-0}}', [200, 400]],
  ['60,000 escapes in one text', `{"filters":{"regions":["${'\\u0041'.repeat(20_000)}"]}}`, [400]],
  ['a text of backslashes', `{"filters":{"regions":["${'\\\\'.repeat(60_000)}"]}}`, [400]],
  ['40,000 empty items', `{"filters":{"codes":[${'"",'.repeat(40_000)}""]}}`, [400]],
  ['a byte order mark', Buffer.from('\ufeff{}'), [400]],
  ['UTF-16', Buffer.from('{"filters":{}}', 'utf16le'), [400]],
  ['UTF-16, said', Buffer.from('{}', 'utf16le'), [415], 'application/json; charset=utf-16'],
  ['bytes that are not UTF-8', badly([0xff]), [400]],
  ['an overlong slash', badly([0xc0, 0xaf]), [400]],
];

/** Reads an answer; an early rejection may be lost with the connection. */
async function answerTo(...[agent, target, ask]: Parameters<typeof send>): Promise<HttpAnswer> {
  for (let tries = 1; ; tries += 1) {
    const answer = await send(agent, target, ask);
    if (answer.status !== 0 || tries === 20) return answer;
  }
}

const bomb = gzipSync(Buffer.alloc(32 * KIB * KIB, 0x5b));

fault(
  'F21',
  'deep and huge JSON, gzip bombs',
  'rejected with 400, 413 or 415 within 50 ms; the event loop is blocked for ≤ 100 ms',
  async (t) => {
    const service = await startListening(t, await seededDatabase(t));
    const agent = agentOf(t, 1);
    const watcher = agentOf(t, 1);
    const path = '/v3/prices/nickel';
    // Warm-up: the first request of a service is slow whatever its body.
    await send(agent, service, { path, body: '{}' });
    let isOver = false;
    const lives: HttpAnswer[] = [];
    const watching = (async (): Promise<void> => {
      while (!isOver) lives.push(await send(watcher, service, { path: '/live' }));
    })();
    const answers: HttpAnswer[] = [];
    for (const [what, body, statuses, type = JSON_TYPE] of HUGE) {
      const answer = await answerTo(agent, service, {
        path,
        body,
        headers: { 'content-type': type },
      });
      answers.push(answer);
      t.ok(
        statuses.includes(answer.status),
        `${what}: ${answer.status} ${answer.text.slice(0, 99)}`,
      );
    }
    for (const encoding of ['gzip', 'deflate', 'br', 'gzip, gzip', 'identity, gzip', 'x-gzip']) {
      const headers = { 'content-type': JSON_TYPE, 'content-encoding': encoding };
      const answer = await answerTo(agent, service, { path, body: bomb, headers });
      answers.push(answer);
      t.equal(answer.status, 415, encoding);
    }
    isOver = true;
    await watching;
    t.ok(lives.every(({ status }) => status === 200));
    const last = await answerTo(agent, service, { path, body: '{}' });
    t.equal(last.status, 200, 'the next request is answered');
    t.same(service.failures(), []);
    return {
      bodies: answers.length,
      '5xx': answers.filter(({ status }) => status >= 500).length,
      longest: within(
        quantile(
          answers.filter(({ status }) => status !== 200),
          1,
        ),
        50,
      ),
      'longest /live meanwhile': within(quantile(lives, 1), 100),
    };
  },
);

/** A body of 128 KiB, the maximum, with one chunk per byte. */
const inChunks = `${'1\r\n \r\n'.repeat(128 * KIB - 2)}2\r\n{}\r\n0\r\n\r\n`;

/** Sends the body with a key and waits for the answer, which may come early. */
async function askInChunks(test: Test, port: number, key: string): Promise<number> {
  const connection = new RawConnection(test, port);
  connection.socket.write(
    `POST /v3/prices/nickel HTTP/1.1\r\nHost: test\r\nx-api-key: ${key}\r\n` +
      'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  );
  connection.socket.write(inChunks);
  await until('the request is answered', () => connection.bytes > 0);
  connection.socket.destroy();
  return answerOf(connection.text).status;
}

fault(
  'F21b',
  'many largest bodies in chunks of one byte, with and without a credential',
  'each body is read correctly; without a credential the answer is 401, or 503 while the ' +
    'service is busy; ≤ 4 MB more memory for each body at the peak, ≤ 1 MB without a credential',
  async (t) => {
    const service = await startServiceProcess(t, await seededDatabase(t));
    const { pid = 0 } = service.running.child;
    const sendMany = async (count: number, keyOf: () => string) => {
      const statuses = new Set<number>();
      const grown = await peakGrowth(pid, async () => {
        const ask = () => askInChunks(t, service.port, keyOf());
        for (const each of await Promise.all(Array.from({ length: count }, ask))) {
          statuses.add(each);
        }
      });
      return { statuses: [...statuses], each: grown / count };
    };
    await sendMany(1, () => service.key);
    const own = await sendMany(16, () => service.key);
    t.same(own.statuses, [200]);
    const anonymous = await sendMany(24, () => newKey().text);
    t.ok(
      anonymous.statuses.every((status) => status === 401 || status === 503),
      anonymous.statuses.join(),
    );
    return {
      bodies: 40,
      'memory for each': within(own.each, 4, 'MB'),
      'for each without a credential': within(anonymous.each, 1, 'MB'),
    };
  },
);
