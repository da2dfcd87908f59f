import { once } from 'node:events';
import { createServer, IncomingMessage } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import t from 'tap';
import { Problem } from '../../src/errors.ts';
import { BodyBytes } from '../../src/http/request-body.ts';

const MOST = 20_000;

/** A request whose body comes in these pieces, read: its bytes, or its refusal. */
function read(pieces: readonly Uint8Array[]): Promise<Problem | Buffer> {
  const request = new IncomingMessage(new Socket());
  const body = new BodyBytes(request, MOST);
  for (const piece of pieces) request.emit('data', Buffer.from(piece));
  request.emit('end');
  return endOf(body);
}

const endOf = ({ whole }: BodyBytes): Promise<Problem | Buffer> =>
  whole.then(
    (bytes) => Buffer.from(bytes),
    (error: Problem) => error,
  );

const codeOf = (end: Problem | Buffer): unknown => (end instanceof Problem ? end.code : end.length);

void t.test('a body is the same bytes, in whatever pieces it comes', async () => {
  const sizes = fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 5_000 }));
  await fc.assert(
    fc.asyncProperty(fc.array(sizes, { maxLength: 40 }), fc.nat(255), async (lengths, first) => {
      const pieces = lengths.map((length, salt) =>
        Uint8Array.from({ length }, (_, at) => (first + 31 * salt + 7 * at) % 256),
      );
      const whole = Buffer.concat(pieces);
      const end = await read(pieces);
      if (whole.length > MOST) return codeOf(end) === 'body_too_large';
      return Buffer.isBuffer(end) && end.equals(whole);
    }),
  );
});

void t.test('a body of the most bytes is read, byte by byte, and not one more', async (t) => {
  const byte = Uint8Array.of(0x20);
  t.equal(codeOf(await read(Array.from({ length: MOST }, () => byte))), MOST);
  t.equal(codeOf(await read(Array.from({ length: MOST + 2 }, () => byte))), 'body_too_large');
});

void t.test('a body that is announced as too large is not waited for', async (t) => {
  const request = new IncomingMessage(new Socket());
  Object.assign(request.headers, { 'content-length': String(MOST + 1) });
  t.equal(codeOf(await endOf(new BodyBytes(request, MOST))), 'body_too_large');
});

void t.test('pieces that came with the head are taken one by one, and never queued', async (t) => {
  const server = createServer(async (request, reply) => {
    const body = new BodyBytes(request, MOST);
    let queued = 0;
    request.on('data', () => {
      queued = Math.max(queued, request.readableLength);
    });
    reply.end(`${(await body.whole).length} bytes, ${queued} queued`);
  }).listen(0, '127.0.0.1');
  // With a listener, Node parses all bytes of a read in one callback.
  server.on('connection', (socket) => socket.on('data', () => {}));
  t.teardown(() => server.close());
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const head = 'POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked';
  client.end(`${head}\r\n\r\n${'1\r\nx\r\n'.repeat(100)}0\r\n\r\n`);
  t.match(await text(client), '100 bytes, 0 queued');
});

void t.test('a body that breaks off is refused once, as the fault of its client', async (t) => {
  const request = new IncomingMessage(new Socket());
  const body = new BodyBytes(request, MOST);
  request.emit('data', Buffer.from('{'));
  request.emit('error', new Error('aborted'));
  t.equal(codeOf(await endOf(body)), 'malformed_request');
});

void t.test(
  'the bytes of a body that is rejected are freed at once, those of a whole one stay',
  async (t) => {
    const rejected = new IncomingMessage(new Socket());
    const body = new BodyBytes(rejected, MOST);
    const pieces = Array.from({ length: 3 }, () => Buffer.alloc(8_192, ' '));
    for (const piece of pieces) rejected.emit('data', piece);
    const late = Buffer.alloc(8_192);
    rejected.emit('data', late);
    t.equal(codeOf(await endOf(body)), 'body_too_large');
    t.same(
      [...pieces, late].map(({ buffer }) => buffer.byteLength),
      [0, 0, 0, 0],
    );

    const request = new IncomingMessage(new Socket());
    const accepted = new BodyBytes(request, MOST);
    request.emit('data', Buffer.alloc(8_192, 'x'));
    request.emit('end');
    accepted.drop();
    t.equal(String(await accepted.whole), 'x'.repeat(8_192), 'its cached answer is found by them');
  },
);
