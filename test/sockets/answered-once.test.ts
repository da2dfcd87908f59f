import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { lockWaits, whileLocked } from '../support/database/lock-waits.ts';
import { Caller, type Listening, listening, postText, until } from '../support/http/sockets.ts';

const POST = 'POST /v3/prices/nickel HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n';

/** How many answers there are in what a connection sent. */
const answersIn = (text: string): string[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status = '']) => status);

async function refusedFirst(caller: Caller, head: string): Promise<void> {
  caller.socket.write(head);
  await until('it is refused', () => caller.text.includes('missing_credentials'));
}

t.test('a body that never ends brings no second answer to a request that has one', async (t) => {
  const service = await listening(t, await testDatabase(t), {
    HEADERS_TIMEOUT_MS: '200',
    REQUEST_TIMEOUT_MS: '300',
  });
  const caller = new Caller(t, service.port);
  await refusedFirst(caller, `${POST}Content-Length: 10\r\n\r\n{}`);
  t.same(answersIn(await caller.ended()), ['401']);
});

t.test('nor does a body that breaks the rules of HTTP', async (t) => {
  const service = await listening(t, await testDatabase(t));
  const caller = new Caller(t, service.port);
  await refusedFirst(caller, `${POST}Transfer-Encoding: chunked\r\n\r\n`);
  caller.socket.write('zz\r\n');
  t.same(answersIn(await caller.ended()), ['401']);
});

const onto = async (t: Parameters<typeof listening>[0], { port }: Listening, text: string) => {
  const caller = new Caller(t, port);
  caller.socket.write(text);
  return caller;
};

t.test('a full gate refuses what is no HTTP as any other does, and a body once', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const full = { RUNNING_MAX: '1', WAITING_MAX: '0', PRICE_BOOK_BYTES: '0' };
  const service = await listening(t, database, {
    ...full,
    HEADERS_TIMEOUT_MS: '200',
    REQUEST_TIMEOUT_MS: '1000',
  });
  await whileLocked(database, async () => {
    const inside = await onto(t, service, postText(service, 'nickel', {}));
    await until('it is full', async () => (await lockWaits(database.pool)) === 1);
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
    const { port } = await listening(t, await testDatabase(t));
    const caller = new Caller(t, port);
    const head = `${POST}Content-Length: 60000\r\n\r\n`;
    await refusedFirst(caller, `${head}${' '.repeat(30_000)}`);
    t.match(caller.text, /^connection: close\r$/im);
    caller.socket.write(' '.repeat(20_000));
    await caller.closed;
    const whole = new Caller(t, port);
    await refusedFirst(whole, `${POST}Content-Length: 2\r\n\r\n{}`);
    t.notMatch(whole.text, /connection: close/i, 'a body that is there keeps its connection');
    whole.socket.destroy();
  },
);
