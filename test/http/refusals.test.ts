import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { Refusals } from '../../src/http/edge/refuse.ts';
import { answerOf } from '../support/http/sockets.ts';

const errorOf = (code: string): Error => Object.assign(new Error(code), { code });
const LATE = errorOf('ERR_HTTP_REQUEST_TIMEOUT');

t.test('many late connections are refused in several turns, each once and in order', async (t) => {
  const codes: string[] = [];
  const refusals = new Refusals(({ code }) => codes.push(code));
  const sockets = Array.from({ length: 30 }, () => new PassThrough());
  for (const socket of sockets) refusals.refuse(LATE, socket);
  const refused = (): number => sockets.filter(({ writableEnded }) => writableEnded).length;
  t.equal(refused(), 0, 'Node is not notified while it checks for timeouts');
  let before = 0;
  for (let turns = 0; before < sockets.length; turns += 1) {
    t.ok(turns < 30, 'each turn refuses some');
    await turn();
    const now = refused();
    t.ok(now - before <= 8, `${now - before} in one turn`);
    t.same(
      sockets.slice(0, now).map(({ writableEnded }) => writableEnded),
      Array(now).fill(true),
      'those who came first',
    );
    before = now;
  }
  t.same(codes, Array(30).fill('request_timeout'));
  for (const socket of sockets) t.equal(answerOf(String(socket.read())).status, 408);
});

t.test('a late request is refused even while others are being refused', async (t) => {
  const refusals = new Refusals(() => {});
  const [first, second] = [new PassThrough(), new PassThrough()];
  refusals.refuse(LATE, first);
  await once(first, 'finish');
  refusals.refuse(LATE, second);
  await once(second, 'finish');
  t.equal(answerOf(String(second.read())).status, 408);
});

t.test('a connection closed before its refusal is not refused, and not counted', async (t) => {
  const codes: string[] = [];
  const refusals = new Refusals(({ code }) => codes.push(code));
  const socket = new PassThrough();
  refusals.refuse(LATE, socket);
  socket.destroy();
  const last = new PassThrough();
  refusals.refuse(LATE, last);
  await once(last, 'finish');
  t.same(codes, ['request_timeout']);
});

t.test('a violation of HTTP is refused at once', async (t) => {
  const socket = new PassThrough();
  new Refusals(() => {}).refuse(errorOf('HPE_INVALID_METHOD'), socket);
  t.equal(answerOf(String(socket.read())).status, 400);
});

/** A connection on which the body of a request arrives. */
const arriving = (response: { headersSent: boolean; writableEnded: boolean } | null) =>
  Object.assign(new PassThrough(), {
    parser: { incoming: { complete: false } },
    _httpMessage: response,
  });

t.test('a client that ends in the middle of a request is answered, and not counted', async (t) => {
  const codes: string[] = [];
  const refusals = new Refusals(({ code }) => codes.push(code));
  const leaver = arriving({ headersSent: false, writableEnded: false });
  const other = new PassThrough();
  refusals.refuse(errorOf('HPE_INVALID_EOF_STATE'), leaver);
  refusals.refuse(errorOf('HPE_INVALID_METHOD'), other);
  t.equal(answerOf(String(leaver.read())).status, 400, 'he may have closed one half only');
  t.same(codes, ['malformed_request'], 'the other one is counted');
  const headless = new PassThrough();
  refusals.refuse(errorOf('HPE_INVALID_EOF_STATE'), headless);
  t.equal(codes.length, 2, 'and one that ends in the midst of a head, for there is no request');
});

t.test('an answered connection is closed once its answer is sent', async (t) => {
  const codes: string[] = [];
  const refusals = new Refusals(({ code }) => codes.push(code));
  for (const response of [null, { headersSent: true, writableEnded: true }]) {
    const socket = arriving(response);
    socket.write('an answer');
    refusals.refuse(errorOf('HPE_INVALID_CHUNK_SIZE'), socket);
    t.equal(String(socket.read()), 'an answer');
    t.equal(socket.writableEnded, true);
  }
  t.same(codes, []);
});

t.test('a request that was answered before its refusal is not refused', async (t) => {
  const codes: string[] = [];
  const refusals = new Refusals(({ code }) => codes.push(code));
  const [complete, last] = [new PassThrough(), new PassThrough()];
  refusals.refuse(LATE, complete);
  refusals.refuse(LATE, last);
  t.equal(refusals.cancel(complete), true);
  t.equal(refusals.cancel(complete), false);
  await once(last, 'finish');
  t.equal(refusals.cancel(last), false);
  t.equal(complete.read(), null);
  t.same(codes, ['request_timeout']);
});
