import t from 'tap';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { lockWaits } from '../support/database/lock-waits.ts';
import {
  answerOf,
  exchange,
  type ListeningService,
  postText,
  RawConnection,
  startListening,
  until,
} from '../support/http/sockets.ts';

type Test = Pick<typeof t, 'teardown'>;

/** Requests that wait for a lock until `free` is called. */
async function holding(test: Test, { pool }: TestDatabase) {
  const owner = await pool.connect();
  await owner.query('begin; lock table price in access exclusive mode');
  let isHeld = true;
  const free = async (): Promise<void> => {
    if (isHeld) await owner.query('rollback');
    if (isHeld) owner.release();
    isHeld = false;
  };
  test.teardown(free);
  const arrived = (count: number) =>
    until(`${count} requests wait`, async () => (await lockWaits(pool)) === count);
  return { free, arrived };
}

const ask = (t: Test, service: ListeningService, more = ''): RawConnection => {
  const connection = new RawConnection(t, service.port);
  connection.socket.write(postText(service, 'nickel', {}, `Connection: close\r\n${more}`));
  return connection;
};
const answered = async (connection: RawConnection) => answerOf(await connection.ended());

const get = async (t: Test, { port, key }: ListeningService, path: string) => {
  const connection = new RawConnection(t, port);
  const headers = `Host: test\r\nx-api-key: ${key}\r\nConnection: close`;
  connection.socket.write(`GET ${path} HTTP/1.1\r\n${headers}\r\n\r\n`);
  return answered(connection);
};

/** The statements that requests wait for: a book makes others, behind the answers. */
const NO_BOOK = { PRICE_BOOK_BYTES: '0' };

t.test(
  'one principal has so many requests at a time; a client that disconnects frees its slot',
  async (t) => {
    const database = await testDatabase(t, { seeded: true });
    const service = await startListening(t, database, { ...NO_BOOK, CONCURRENT_MAX: '2' });
    const { free, arrived } = await holding(t, database);
    const first = ask(t, service);
    const second = ask(t, service);
    await arrived(2);
    const third = await answered(ask(t, service));
    t.match(third, { status: 429, json: { code: 'too_many_concurrent_requests' } });
    t.equal(third.headers['retry-after'], '1');
    first.socket.destroy();
    await until('the slot is free', async () => (await get(t, service, '/v3/me')).status === 200);
    await free();
    t.equal((await answered(second)).status, 200);
  },
);

t.test(
  'beyond what can be worked on a few wait and the rest is refused; health always answers',
  async (t) => {
    const database = await testDatabase(t, { seeded: true });
    const service = await startListening(t, database, {
      ...NO_BOOK,
      RUNNING_MAX: '1',
      WAITING_MAX: '1',
      WAITING_MS_MAX: '10000',
    });
    const { free, arrived } = await holding(t, database);
    const inside = ask(t, service);
    await arrived(1);
    // Whichever comes first waits.
    const others = [ask(t, service), ask(t, service)].map(answered);
    const refused = await Promise.race(others);
    t.match(refused, { status: 503, json: { code: 'overloaded' } });
    t.match(refused.headers['retry-after'], /^[1-5]$/);
    const loggedRefusal = () =>
      service.lines
        .map((line): Record<string, unknown> => JSON.parse(line))
        .find(({ status }) => status === 503);
    await until('the refusal is logged', () => loggedRefusal() !== undefined);
    t.match(loggedRefusal(), { code: 'overloaded', detail: /^Too many requests/ });
    t.notOk('err' in (loggedRefusal() ?? {}), 'an expected error is logged without a stack');
    t.equal((await get(t, service, '/live')).status, 200);
    t.equal((await get(t, service, '/openapi.json')).status, 200);
    await free();
    t.equal((await answered(inside)).status, 200);
    const statuses = (await Promise.all(others)).map(({ status }) => status);
    t.same(statuses.sort(), [200, 503], 'the one that waited is answered');
  },
);

const PAGE = 'https://desk.example.com';
const FROM_PAGE = `Origin: ${PAGE}\r\n`;
const PREFLIGHT =
  `OPTIONS /v3/prices/nickel HTTP/1.1\r\nHost: test\r\nConnection: close\r\n${FROM_PAGE}` +
  'Access-Control-Request-Method: POST\r\n\r\n';

t.test('a page of an allowed origin can read each rejection, and no other page can', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const limits = { RUNNING_MAX: '1', WAITING_MAX: '0', CORS_ORIGINS: PAGE };
  const service = await startListening(t, database, { ...NO_BOOK, ...limits });
  const { free, arrived } = await holding(t, database);
  const inside = ask(t, service);
  await arrived(1);
  const preflight = await exchange(t, service.port, PREFLIGHT);
  t.match(preflight, { status: 204, headers: { 'access-control-allow-origin': PAGE } });
  const malformed = (more: string) =>
    exchange(t, service.port, `GET /v3/prices/%zz HTTP/1.1\r\nHost: test\r\n${more}\r\n`);
  const rejected = [
    [503, (more: string) => answered(ask(t, service, more))],
    [400, malformed],
  ] as const;
  for (const [status, reject] of rejected) {
    const answer = await reject(FROM_PAGE);
    t.equal(answer.status, status);
    t.equal(answer.headers['access-control-allow-origin'], PAGE);
    t.match(answer.headers['access-control-expose-headers'], /retry-after, .*x-request-id/);
    t.equal(answer.headers['vary'], 'Origin');
    const other = await reject('Origin: https://other.example.com\r\n');
    t.equal(other.status, status);
    t.notOk(Object.keys(other.headers).some((name) => name.startsWith('access-control-')));
    t.equal(other.headers['vary'], 'Origin');
  }
  await free();
  t.equal((await answered(inside)).status, 200);
});

t.test('an immediate rejection has the same body as a rejection after a wait', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const limits = {
    RUNNING_MAX: '1',
    WAITING_MAX: '1',
    WAITING_MS_MAX: '500',
    CORS_ORIGINS: PAGE,
  };
  const service = await startListening(t, database, { ...NO_BOOK, ...limits });
  const { free, arrived } = await holding(t, database);
  const inside = ask(t, service);
  await arrived(1);
  const asking = () => answered(ask(t, service, FROM_PAGE));
  const refused = await Promise.all([asking(), asking()]);
  // Removes the parts that differ from request to request, and the order of headers. After a wait
  // the credential is known, and with it the end of the key.
  const [one, other] = refused.map(
    ({ status, headers: { 'x-api-key-expires': _, ...headers }, json }) => ({
      status,
      names: Object.keys(headers).sort(),
      headers: { ...headers, date: '', 'x-request-id': '', 'retry-after': '' },
      problem: { ...json, requestId: json.requestId === headers['x-request-id'] },
    }),
  );
  t.match(one, { status: 503, problem: { code: 'overloaded', requestId: true } });
  t.same(one, other);
  const wrong = await get(t, service, '/v3/prices/nickl');
  t.equal(wrong.status, 404, 'a wrong address is reported nevertheless');
  await free();
  t.equal((await answered(inside)).status, 200);
});

t.test('a client that is rejected while it sends reads its answer, and is closed', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const limits = { RUNNING_MAX: '1', WAITING_MAX: '0' };
  const service = await startListening(t, database, { ...NO_BOOK, ...limits });
  const { free, arrived } = await holding(t, database);
  const inside = ask(t, service);
  await arrived(1);
  const connection = new RawConnection(t, service.port);
  const text = postText(service, 'nickel', { filters: { codes: Array(2_000).fill('CP-NI-0001') } });
  connection.socket.write(text.slice(0, 1_000));
  await until('the request is refused', () => connection.text.includes('"code":"overloaded"'));
  connection.socket.write(`${text.slice(1_000)}GET /live HTTP/1.1\r\nHost: test\r\n\r\n`);
  t.same((await connection.ended()).match(/(?<=HTTP\/1\.1 )\d+/g), ['503']);
  await free();
  t.equal((await answered(inside)).status, 200);
});
