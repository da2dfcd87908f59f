import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import t from 'tap';
import { bearer, serviceWithoutDatabase } from '../../support/http/service-without-database.ts';

const LIMIT = 131_072;

let service: Awaited<ReturnType<typeof serviceWithoutDatabase>>;
t.before(async () => {
  service = await serviceWithoutDatabase(t);
  await service.app.listen({ port: 0, host: '127.0.0.1' });
});

const padded = (bytes: number): string => `{"filters":${' '.repeat(bytes - 14)}{}}`;

t.test('a body of 128 KiB is read, one byte more is refused', async (t) => {
  t.equal((await service.send(padded(LIMIT))).status, 503, 'and gets as far as the database');
  const { status, json } = await service.send(padded(LIMIT + 1));
  t.same([status, json.code], [413, 'body_too_large']);
});

t.test('size is counted in bytes, not in letters', async (t) => {
  const { status } = await service.send(`{"filters":{"codes":["${'é'.repeat(LIMIT / 2)}"]}}`);
  t.equal(status, 413);
});

t.test('the limit is a setting', async (t) => {
  const small = await serviceWithoutDatabase(t, { BODY_BYTES_MAX: '1024' });
  t.equal((await small.send(padded(1024))).status, 503);
  t.equal((await small.send(padded(1025))).status, 413);
});

/** Writes a request head and part of the body; resolves with the answer. */
const exchange = (head: readonly string[], body: string): Promise<string> =>
  new Promise((resolve) => {
    const { port } = service.app.server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    // A service that has read enough may reset the line, once it has answered.
    socket.on('close', () => resolve(text)).on('error', () => {});
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  });

const HEAD = [
  'POST /v3/prices/nickel HTTP/1.1',
  'host: localhost',
  'content-type: application/json',
  `authorization: ${bearer('prices:*')}`,
];

t.test('a body that announces its size is refused before it is sent', async (t) => {
  const text = await exchange([...HEAD, `content-length: ${LIMIT + 1}`], '{');
  t.match(text, /^HTTP\/1\.1 413 /);
  t.match(text, /"code":"body_too_large"/);
  t.match(text, /connection: close/i);
});

t.test('a body in chunks is refused as soon as it is too large', async (t) => {
  const chunk = `${(65_536).toString(16)}\r\n${' '.repeat(65_536)}\r\n`;
  const text = await exchange([...HEAD, 'transfer-encoding: chunked'], chunk.repeat(3));
  t.match(text, /^HTTP\/1\.1 413 /);
  t.match(text, /application\/problem\+json/);
});
