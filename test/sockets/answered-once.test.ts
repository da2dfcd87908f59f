import { connect } from 'node:net';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { lockWaits, whileLocked } from '../support/database/lock-waits.ts';
import {
  type ListeningService,
  postText,
  RawConnection,
  startListening,
  until,
} from '../support/http/sockets.ts';

const POST = 'POST /v3/prices/nickel HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n';

/** Counts the answers in the bytes of a connection. */
const answersIn = (text: string): string[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status = '']) => status);

async function refusedFirst(connection: RawConnection, head: string): Promise<void> {
  connection.socket.write(head);
  await until('the request is refused', () => connection.text.includes('missing_credentials'));
}

t.test('a body that never ends brings no second answer to a request that has one', async (t) => {
  const service = await startListening(t, await testDatabase(t), {
    HEADERS_TIMEOUT_MS: '200',
    REQUEST_TIMEOUT_MS: '300',
  });
  const connection = new RawConnection(t, service.port);
  await refusedFirst(connection, `${POST}Content-Length: 10\r\n\r\n{}`);
  t.same(answersIn(await connection.ended()), ['401']);
});

t.test('nor does a body that breaks the rules of HTTP', async (t) => {
  const service = await startListening(t, await testDatabase(t));
  const connection = new RawConnection(t, service.port);
  await refusedFirst(connection, `${POST}Transfer-Encoding: chunked\r\n\r\n`);
  connection.socket.write('zz\r\n');
  t.same(answersIn(await connection.ended()), ['401']);
});

const onto = async (
  t: Parameters<typeof startListening>[0],
  { port }: ListeningService,
  text: string,
) => {
  const connection = new RawConnection(t, port);
  connection.socket.write(text);
  return connection;
};

t.test('a full gate refuses what is no HTTP as any other does, and a body once', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const full = { RUNNING_MAX: '1', WAITING_MAX: '0', PRICE_BOOK_BYTES: '0' };
  const service = await startListening(t, database, {
    ...full,
    // Nothing but the refusal closes the connection of the body within the time of the test.
    REQUEST_TIMEOUT_MS: '300000',
    STALL_TIMEOUT_MS: '600000',
    KEEP_ALIVE_TIMEOUT_MS: '600000',
  });
  await whileLocked(database, async () => {
    const inside = await onto(t, service, postText(service, 'nickel', {}));
    await until('the gate is full', async () => (await lockWaits(database.pool)) === 1);
    const hostless = await onto(t, service, 'GET /v3/me HTTP/1.1\r\n\r\n');
    t.match(await hostless.ended(), /^HTTP\/1\.1 400 [\s\S]*malformed_request/);
    const endless = await onto(t, service, `${POST}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`);
    t.same(answersIn(await endless.ended()), ['503']);
    inside.socket.destroy();
  });
});

t.test(
  'a refusal before the end of the body says that the connection closes, and it does',
  async (t) => {
    const { port } = await startListening(t, await testDatabase(t));
    const connection = new RawConnection(t, port);
    const errors: string[] = [];
    connection.socket.on('error', (error) => errors.push(error.message));
    const head = `${POST}Content-Length: 60000\r\n\r\n`;
    await refusedFirst(connection, `${head}${' '.repeat(30_000)}`);
    t.match(connection.text, /^connection: close\r$/im);
    connection.socket.write(' '.repeat(20_000));
    await connection.closed;
    // A client that fails to send might not read its refusal.
    t.same(errors, [], 'without a reset');
    const whole = new RawConnection(t, port);
    await refusedFirst(whole, `${POST}Content-Length: 2\r\n\r\n{}`);
    t.notMatch(whole.text, /connection: close/i, 'a body that is there keeps its connection');
    whole.socket.destroy();
  },
);

t.test('a client that half-closes within its body is refused once, by one log line', async (t) => {
  const service = await startListening(t, await testDatabase(t), { REQUEST_DEADLINE_MS: '60000' });
  const socket = connect({ port: service.port, host: '127.0.0.1', allowHalfOpen: true });
  t.teardown(() => socket.destroy());
  let text = '';
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1');
  });
  const request = postText(service, 'nickel', { options: {} });
  socket.end(request.slice(0, -1));
  await until('the connection ends', () => socket.readableEnded);
  t.same(answersIn(text), ['400']);
  const ends = () => service.lines.filter((line) => /request (completed|refused)/.test(line));
  await until('it is logged', () => ends().length > 0);
  t.equal(ends().length, 1);
  t.match(ends()[0], /request completed/);
});
