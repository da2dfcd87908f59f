import { connect } from 'node:net';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import {
  exchange,
  type ListeningService,
  type RawAnswer,
  startListening,
  until,
} from '../support/http/sockets.ts';
import { recordFigures } from '../support/run/faults.ts';

const HOST = 'Host: test\r\n';
const CLOSE = `${HOST}Connection: close\r\n`;
const JSON_TYPE = 'Content-Type: application/json\r\n';
const CHUNKED = 'Transfer-Encoding: chunked\r\n';

/** Invalid request lines and headers, by their fault. */
const post = (headers: string, body: string) => (key: string) =>
  `POST /v3/prices/nickel HTTP/1.1\r\n${HOST}x-api-key: ${key}\r\n` +
  `${JSON_TYPE}${headers}\r\n${body}`;
const get = (headers: string, target = '/live') => `GET ${target} HTTP/1.1\r\n${headers}\r\n`;

type Test = Parameters<typeof startListening>[0];
type Case = readonly [what: string, send: string | Buffer | ((key: string) => string)];

const MALFORMED: readonly Case[] = [
  ['a length and chunks at once', post(`${CHUNKED}Content-Length: 4\r\n`, '2\r\n{}\r\n0\r\n\r\n')],
  ['two lengths', post('Content-Length: 2\r\nContent-Length: 3\r\n', '{}')],
  ['a length that is no number', post('Content-Length: abc\r\n', '{}')],
  ['a length below zero', post('Content-Length: -1\r\n', '{}')],
  ['a length with a sign', post('Content-Length: +2\r\n', '{}')],
  ['a coding that is not chunked', post('Transfer-Encoding: gzip\r\n', '{}')],
  ['a chunk without a size', post(CHUNKED, 'zz\r\n{}\r\n0\r\n\r\n')],
  ['a chunk longer than its size', post(CHUNKED, '1\r\n{}\r\n0\r\n\r\n')],
  ['no host', `GET /live HTTP/1.1\r\n\r\n`],
  ['two hosts', `GET /live HTTP/1.1\r\n${HOST}${HOST}\r\n`],
  ['no method that HTTP has', `FOO /live HTTP/1.1\r\n${HOST}\r\n`],
  ['a method in small letters', `get /live HTTP/1.1\r\n${HOST}\r\n`],
  ['HTTP/0.9', 'GET /live\r\n\r\n'],
  ['HTTP/2 without upgrade', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a version that is none', `GET /live HTTP/9.x\r\n${HOST}\r\n`],
  ['TLS on a plain port', Buffer.from('16030100a5010000a10303', 'hex')],
  ['no HTTP at all', 'EHLO mail.example\r\n'],
  ['a folded header', get(`${HOST}X-A: b\r\n c\r\n`)],
  ['a control character in a header', get(`${HOST}X-A: b\u0001c\r\n`)],
  ['a zero byte in a header', get(`${HOST}X-A: b\u0000c\r\n`)],
  ['a space before the colon', get('Host : test\r\n')],
  ['a header without a name', get(`${HOST}: x\r\n`)],
  ['bare line feeds', 'GET /live HTTP/1.1\nHost: test\n\n'],
  ['a space in the address', get(HOST, '/li ve')],
  ['a byte that is not ASCII in the address', get(HOST, '/li\u00fcve')],
  ['a broken escape in the address', get(HOST, '/v3/prices/%zz')],
  ['an escape that is not UTF-8', get(HOST, '/live%ff')],
];

/** The fault of an answer that should be a problem with a closed connection; null for none. */
function faultOf({ status, headers, json }: RawAnswer, code: string, expected: number) {
  if (status !== expected) return `status ${status}`;
  if (!headers['content-type']?.startsWith('application/problem+json')) return 'media type';
  if (!/^[\w-]{8,64}$/.test(headers['x-request-id'] ?? '')) return 'no request id';
  if (headers['cache-control'] !== 'no-store') return 'the answer may be cached';
  if (headers['x-content-type-options'] !== 'nosniff')
    return 'the header x-content-type-options is missing';
  if (json.code !== code || json.status !== status) return `code ${json.code}`;
  if (json.requestId !== headers['x-request-id']) return 'two request ids';
  return json.detail.length > 10 ? null : 'no detail';
}

async function isAlive(t: Test, { port }: ListeningService): Promise<boolean> {
  const { status } = await exchange(t, port, `GET /live HTTP/1.1\r\n${CLOSE}\r\n`);
  return status === 200;
}

/** The log line with the outcome of a request. */
async function logLineOf({ lines }: ListeningService, requestId: string): Promise<object> {
  const line = (): string | undefined =>
    lines.find((each) => each.includes(`"${requestId}"`) && each.includes('"status":'));
  await until('the request is logged', () => line() !== undefined);
  return JSON.parse(line() ?? '');
}

t.test('malformed HTTP gets a problem, and the connection is closed', async (t) => {
  const service = await startListening(t, await testDatabase(t));
  for (const [what, send] of MALFORMED) {
    const sent = typeof send === 'function' ? send(service.key) : send;
    const answer = await exchange(t, service.port, sent);
    t.equal(faultOf(answer, 'malformed_request', 400), null, what);
    const { requestId } = answer.json;
    const line = await logLineOf(service, requestId);
    t.match(line, { code: 'malformed_request', status: 400 }, `${what}: it is in the log`);
  }
  recordFigures('F18', { 'malformed requests': MALFORMED.length });
  t.ok(await isAlive(t, service), 'the service continues');
  t.same(service.failures(), []);
});

t.test('headers and addresses that are too large are refused by name', async (t) => {
  const service = await startListening(t, await testDatabase(t));
  const big = (size: number) => 'a'.repeat(size);
  const headers = await exchange(t, service.port, get(`${HOST}X-A: ${big(20_000)}\r\n`));
  t.equal(faultOf(headers, 'headers_too_large', 431), null);
  const many = `${HOST}${'X-A: b\r\n'.repeat(3_000)}`;
  t.equal(faultOf(await exchange(t, service.port, get(many)), 'headers_too_large', 431), null);
  // The client keeps sending and still reads its answer.
  const endless = await exchange(t, service.port, 'GET /live HTTP/1.1\r\nX-A: ', big(2_000_000));
  t.equal(faultOf(endless, 'headers_too_large', 431), null);
  const address = await exchange(t, service.port, get(CLOSE, `/live?${big(9_000)}`));
  t.equal(faultOf(address, 'uri_too_long', 414), null);
  t.match(address.json.detail, /POST/);
  t.ok(await isAlive(t, service), 'the service continues');
});

t.test('a refused client that does not hang up is let go', async (t) => {
  const { app, port } = await startListening(t, await testDatabase(t));
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  t.teardown(() => socket.destroy());
  socket.resume().write('EHLO mail.example\r\n');
  await until('the service has answered', () => socket.readableEnded);
  const open = () =>
    new Promise<number>((resolve) => app.server.getConnections((_error, count) => resolve(count)));
  await until('the service closes the connection', async () => (await open()) === 0);
});

t.test('garbage after a request never gets into an answer', async (t) => {
  const service = await startListening(t, await testDatabase(t));
  const sent = `GET /openapi.json HTTP/1.1\r\n${HOST}\r\nGARBAGE\r\n\r\n`;
  const { status, headers, body } = await exchange(t, service.port, sent);
  if (status === 200) t.ok(body.length <= Number(headers['content-length']), 'cut, but not mixed');
  else t.equal(status, 400);
  t.notMatch(body, /HTTP\/1\.1 \d/);
  t.ok(await isAlive(t, service));
});

t.test('rare but valid HTTP is understood', async (t) => {
  const service = await startListening(t, await testDatabase(t));
  const status = async (...parts: string[]) => (await exchange(t, service.port, ...parts)).status;
  t.equal(await status('GET /live HTTP/1.0\r\n\r\n'), 200, 'HTTP/1.0 needs no host');
  t.equal(await status(`GET http://test/live HTTP/1.1\r\n${CLOSE}\r\n`), 200, 'absolute form');
  t.equal(await status(`GET /liv%65 HTTP/1.1\r\n${CLOSE}\r\n`), 200, 'an escaped letter');
  t.equal(await status(`GET /live?%zz HTTP/1.1\r\n${CLOSE}\r\n`), 200, 'the query is not read');
  t.equal(await status(`GET /live HTTP/1.1\r\n${CLOSE}Upgrade: websocket\r\n\r\n`), 200);
  const body = `${CLOSE}x-api-key: ${service.key}\r\n${JSON_TYPE}`;
  const to = 'POST /v3/prices/nickel HTTP/1.1\r\n';
  t.equal(
    await status(`${to}${body}${CHUNKED}\r\n1\r\n{\r\n`, '1\r\n}\r\n0\r\n\r\n'),
    200,
    'chunks',
  );
  t.equal(await status(`${to}${body}Expect: tea\r\nContent-Length: 2\r\n\r\n{}`), 200, 'Expect');
  t.same(service.failures(), []);
});

t.test('a client that resets its connection right after CONNECT affects no other', async (t) => {
  const service = await startListening(t, await testDatabase(t));
  for (let round = 0; round < 20; round += 1) {
    const socket = connect(service.port, '127.0.0.1');
    socket.on('error', () => {});
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.write(`CONNECT x:443 HTTP/1.1\r\n${HOST}\r\n`, () => socket.resetAndDestroy());
    await new Promise((resolve) => socket.once('close', resolve));
  }
  const { status } = await exchange(t, service.port, get(CLOSE));
  t.equal(status, 200);
});
