import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import fc from 'fast-check';
import t from 'tap';
import { Problem } from '../../src/errors.ts';
import { BodyBytes } from '../../src/plugins/body-bytes.ts';

const MOST = 20_000;

/** A request whose body comes in these pieces, read: what became of it, and of those too late. */
function read(pieces: readonly Uint8Array[]) {
  const request = new IncomingMessage(new Socket());
  const ends: (Problem | Buffer)[] = [];
  const body = new BodyBytes(request, MOST);
  body.whenOver((error, bytes) => ends.push(error ?? Buffer.from(bytes)));
  for (const piece of pieces) request.emit('data', Buffer.from(piece));
  request.emit('end');
  return ends;
}

const codesOf = (ends: readonly (Problem | Buffer)[]): unknown[] =>
  ends.map((end) => (end instanceof Problem ? end.code : end.length));

void t.test('a body is the same bytes, in whatever pieces it comes', async () => {
  const sizes = fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 5_000 }));
  fc.assert(
    fc.property(fc.array(sizes, { maxLength: 40 }), fc.nat(255), (lengths, first) => {
      const pieces = lengths.map((length, salt) =>
        Uint8Array.from({ length }, (_, at) => (first + 31 * salt + 7 * at) % 256),
      );
      const whole = Buffer.concat(pieces);
      const ends = read(pieces);
      const [end] = ends;
      if (whole.length > MOST) return codesOf(ends).join() === 'body_too_large';
      return ends.length === 1 && Buffer.isBuffer(end) && end.equals(whole);
    }),
  );
});

void t.test('a body of the most bytes is read, byte by byte, and not one more', async (t) => {
  const byte = Uint8Array.of(0x20);
  t.same(codesOf(read(Array.from({ length: MOST }, () => byte))), [MOST]);
  t.same(codesOf(read(Array.from({ length: MOST + 2 }, () => byte))), ['body_too_large']);
});

void t.test('a body that is announced as too large is not waited for', async (t) => {
  const request = new IncomingMessage(new Socket());
  Object.assign(request.headers, { 'content-length': String(MOST + 1) });
  const ends: (Problem | Buffer)[] = [];
  new BodyBytes(request, MOST).whenOver((error, bytes) => ends.push(error ?? bytes));
  t.same(codesOf(ends), ['body_too_large']);
});

void t.test('a body that breaks off is refused once, as the fault of its client', async (t) => {
  const request = new IncomingMessage(new Socket());
  const ends: (Problem | Buffer)[] = [];
  new BodyBytes(request, MOST).whenOver((error, bytes) => ends.push(error ?? bytes));
  request.emit('data', Buffer.from('{'));
  request.emit('error', new Error('aborted'));
  t.same(codesOf(ends), ['malformed_request']);
});
