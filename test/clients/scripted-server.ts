import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type t from 'tap';

/** A price with one point: all that a row needs. */
export const price = (code: string) => ({
  code,
  name: 'Nickel',
  currency: { iso: 'USD' },
  unitOfMeasure: { symbol: 't' },
  series: [{ date: '2026-06-01', low: null, mid: 1.5, high: null, corrections: 0 }],
});

const PRICE = price('A');
const [POINT] = PRICE.series;

/** Prices from which no rows can be made, by their fault. */
export const INCOMPLETE: Readonly<Record<string, object>> = {
  'no other member': { code: 'A' },
  'no name': { ...PRICE, name: undefined },
  'no unit': { ...PRICE, unitOfMeasure: null },
  'no symbol': { ...PRICE, unitOfMeasure: {} },
  'a text as series': { ...PRICE, series: 'B' },
  'null as point': { ...PRICE, series: [null] },
  ...Object.fromEntries(
    Object.keys(POINT ?? {}).map((member) => [
      `a point without ${member}`,
      { ...PRICE, series: [POINT, { ...POINT, [member]: undefined }] },
    ]),
  ),
};

/** Answers one request, or leaves it without an answer. */
export type Responder = (reply: ServerResponse, request: IncomingMessage) => void;

/** Answers with a body: a text as it is, everything else as JSON. */
export const json =
  (body: unknown, headers: Record<string, string> = {}, status = 200): Responder =>
  (reply) => {
    reply.writeHead(status, { 'content-type': 'application/json', ...headers });
    reply.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

/** Closes the connection without an answer. */
export const closedConnection: Responder = (reply) => reply.destroy();

/** Answers with a problem of this status and code. */
export const refused = (
  status: number,
  code: string,
  headers: Record<string, string> = {},
): Responder =>
  json(
    { status, code, detail: `refused as ${code}`, requestId: 'r-1' },
    { 'content-type': 'application/problem+json', ...headers },
    status,
  );

/** A page of prices. */
export const OK = {
  $metadata: { market: 'nickel', revision: 'abcd.1', warnings: [] },
  data: [PRICE],
};

/** Lets a client repeat its request at once. */
export const SOON = { 'retry-after': '0' };

/** Answers with the HTML of a proxy. */
const proxied = (status: number): Responder =>
  json('<html>', { 'content-type': 'text/html', ...SOON }, status);

/** Breaks off in its body. */
const cut: Responder = (reply) => {
  reply.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
  reply.write('{"$metadata', () => reply.destroy());
};

/** Failures after which a client repeats its request, each with the final answer, by their kind. */
export const REPEATED: Readonly<Record<string, readonly Responder[]>> = {
  'refusals and a closed connection': [
    refused(429, 'rate_limited', SOON),
    refused(503, 'overloaded', SOON),
    closedConnection,
    json(OK),
  ],
  'a body that breaks off': [refused(503, 'overloaded', SOON), cut, json(OK)],
  'a proxy without its server': [proxied(502), proxied(504), json(OK)],
  '503 of a proxy': [proxied(503), json({ code: 'X', errors: null }, SOON, 503), json(OK)],
};

/** Statuses after which a client does not repeat its request. */
export const FINAL_STATUSES = [400, 401, 403, 404, 500] as const;

/** Values of `Retry-After` beyond the deadline of any call. */
export const lateRetryAfter = (): string[] => [
  '86400',
  '999999999',
  new Date(Date.now() + 3_600_000).toUTCString(),
];

/** Values of `Retry-After` without a meaning. */
export const ODD_RETRY_AFTER = [
  ...['-1', '-5', 'soon', '', '1e9', '0x1'],
  'Wed, 99 Foo 2026',
] as const;

/** Sends some bytes of an answer, and then a few repeatedly. */
const dripping =
  (begin: string, drop: string, everyMs = 100): Responder =>
  ({ socket }) => {
    socket?.write(`HTTP/1.1 200 OK\r\n${begin}`);
    const timer = setInterval(() => socket?.write(drop), everyMs);
    socket?.on('close', () => clearInterval(timer)).on('error', () => {});
  };

const TYPE = 'content-type: application/json\r\n';
const CHUNKED = `${TYPE}transfer-encoding: chunked\r\n\r\n`;

/** Answers without an end, by their kind. */
export const ENDLESS: Readonly<Record<string, Responder>> = {
  silent: () => {},
  'a long body': dripping(CHUNKED, `10000\r\n${' '.repeat(65_536)}\r\n`, 20),
  'headers that drip': dripping('x-drip: ', 'x'),
  'a body that drips': dripping(`${TYPE}content-length: 100000\r\n\r\n`, ' '),
  'chunks that drip': dripping(CHUNKED, '1\r\n \r\n'),
};

/** Keys of a service and of a gateway; the second has characters that encodings change. */
export const KEYS = [`cps_live_0123456789_${'Zx9'.repeat(12)}ab`, 'gw+K/e"y%1\\&x=='] as const;

const percents = (text: string, times: number): string => {
  const once = Array.from(text, (each) => `%${each.charCodeAt(0).toString(16)}`).join('');
  return times === 1 ? once : once.replaceAll('%', '%25');
};
const escapes = (text: string): string =>
  Array.from(text, (each) => `\\u00${each.charCodeAt(0).toString(16)}`).join('');

/** A key as servers may echo it: plain, encoded, escaped, in upper case and cut. */
const echoes = (key: string): string[] => [
  key,
  encodeURIComponent(key),
  percents(key, 1),
  percents(key, 2),
  JSON.stringify(key).slice(1, -1),
  escapes(key),
  key.toUpperCase(),
  key.slice(0, 14),
];

/** The parts of a key of which no error may show one. */
export const partsOf = (key: string): string[] => [
  ...echoes(key),
  key.slice(0, 12),
  key.slice(-8),
  encodeURIComponent(key.slice(-8)),
];

/** A bearer token as an issuer of a company signs it: 2,000 characters. */
export const TOKEN = [
  'eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ',
  'eyJzdWIiOiJkZXNrIn0'.repeat(100),
  `Zx9-_${'q7Bv'.repeat(16)}`,
].join('.');

/** The credential of a request: its key, or its token without the scheme. */
const sentBy = ({ headers }: Pick<IncomingMessage, 'headers'>): string =>
  String(headers['x-api-key'] ?? headers.authorization?.replace(/^Bearer /, ''));

/** Answers that echo the credential of the request, by their kind. */
export const ECHOES: Readonly<Record<string, Responder>> = {
  problem: (reply, request) => {
    const text = echoes(sentBy(request)).join(' ');
    const errors = [{ pointer: `/${text}`, code: text, detail: text }];
    const body = { code: text, detail: text, errors, requestId: text };
    const type = { 'content-type': 'application/problem+json' };
    json(body, type, 400)(reply, {} as IncomingMessage);
  },
  page: (reply, request) => {
    const text = echoes(sentBy(request)).join('\n');
    json(`<pre>${text}</pre>`, { 'content-type': 'text/html' }, 500)(reply, {} as IncomingMessage);
  },
  'a long page': (reply, request) => {
    const text = sentBy(request).repeat(1_000);
    json(text, { 'content-type': 'text/html' })(reply, {} as IncomingMessage);
  },
  'a redirect': (reply, request) => {
    const to = `http://127.0.0.1:9/${percents(sentBy(request).slice(0, 2_000), 1)}/x`;
    json('', { location: to }, 302)(reply, {} as IncomingMessage);
  },
  'a media type': (reply, request) => {
    json('', { 'content-type': `text/${sentBy(request)}` }, 500)(reply, {} as IncomingMessage);
  },
  'another answer': (reply, request) => {
    json({ key: sentBy(request), headers: request.headers })(reply, {} as IncomingMessage);
  },
  'a part': (reply, request) => {
    reply.writeHead(403, { 'content-type': 'application/json', 'content-length': '9999' });
    const { headers } = request;
    reply.write(JSON.stringify({ key: sentBy(request), headers }), () => reply.destroy());
  },
  'no status line': ({ socket }, request) => {
    socket?.end(`x-api-key: ${sentBy(request)}\r\n\r\n`);
  },
};

/** A good answer whose warning echoes the credential of the request. */
export const echoedWarning: Responder = (reply, request) => {
  const detail = echoes(sentBy(request)).join(' ');
  const warnings = [{ code: 'unmatched_value', pointer: `/${detail}`, detail }];
  const body = { $metadata: { revision: 'abcd.1', warnings }, data: [PRICE] };
  json(body)(reply, {} as IncomingMessage);
};

/** A server that clients of a test ask. */
export interface ScriptedServer {
  readonly url: string;
  /** The number of requests so far. */
  requests(): number;
}

/** A server that gives each request the next of some answers, the last one for ever. */
export async function scriptedServer(
  test: Pick<typeof t, 'teardown'>,
  answers: readonly Responder[],
): Promise<ScriptedServer> {
  let requests = 0;
  const server = createServer((request, reply) => {
    const answer = answers[Math.min(requests, answers.length - 1)];
    requests += 1;
    request.resume().on('end', () => answer?.(reply, request));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, requests: () => requests };
}

/** The port of a server whose TLS handshake sends a byte every 100 ms and never ends. */
export async function endlessTls(test: Pick<typeof t, 'teardown'>): Promise<number> {
  const server = createTcpServer((socket) => {
    // The beginning of a record of 16,384 bytes that holds a ServerHello.
    socket.write(Uint8Array.of(0x16, 3, 3, 0x40, 0, 2));
    const timer = setInterval(() => socket.write(Uint8Array.of(0)), 100);
    socket.on('close', () => clearInterval(timer)).on('error', () => {});
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** A listener that accepts nothing, since its thread sleeps after it has sent its port. */
const SLEEPER = `
const { parentPort } = process.getBuiltinModule('node:worker_threads');
const server = process.getBuiltinModule('node:net').createServer();
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  parentPort.postMessage(server.address().port);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
});`;

/** The port of a server whose queue is full: Linux drops each further attempt to connect. */
export async function fullBacklog(test: Pick<typeof t, 'teardown'>): Promise<number> {
  const worker = new Worker(SLEEPER, { eval: true });
  const [port] = (await once(worker, 'message')) as [number];
  const sockets = Array.from({ length: 4 }, () => connect(port, '127.0.0.1'));
  for (const socket of sockets) socket.on('error', () => {});
  await pause(200);
  test.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    await worker.terminate();
  });
  return port;
}
