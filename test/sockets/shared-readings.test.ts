import t from 'tap';
import { seededDatabase } from '../support/database.ts';
import { whileLocked } from '../support/lock-waits.ts';
import { keyFor } from '../support/service.ts';
import { Caller, exchange, listening, until } from '../support/sockets.ts';

const database = await seededDatabase(t);

/** What is read once for all who ask, and what its statement is known by. */
const SHARED = {
  '/v3/prices': '%as "firstDate"%',
  '/v3/prices/nickel/filters': '%as position%',
};

/** How many statements wait for a lock that are like this. */
async function waiting(like: string): Promise<number> {
  const { rows } = await database.pool.query(
    `select count(*)::int as count from pg_stat_activity where datname = current_database()
      and wait_event_type = 'Lock' and query like $1 and pid <> pg_backend_pid()`,
    [like],
  );
  return rows[0].count;
}

const asked = (path: string, key: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nx-api-key: ${key}\r\n\r\n`;

for (const [path, statement] of Object.entries(SHARED)) {
  t.test(`who asks for ${path} first and leaves does not end it for who came later`, async (t) => {
    const service = await listening(t, database);
    const key = await keyFor(database, ['prices:*']);
    const [first, second] = [new Caller(t, service.port), new Caller(t, service.port)];
    await whileLocked(database, async () => {
      first.socket.write(asked(path, key));
      await until('it is read', async () => (await waiting(statement)) === 1);
      second.socket.write(asked(path, service.key));
      // It looks later than the second one, so that one waits for what is read by now.
      t.equal((await exchange(t, service.port, asked('/v3/me', service.key))).status, 200);
      first.socket.destroy();
      await until('one has left', () =>
        service.lines.some((line) => line.includes('"status":499')),
      );
      t.equal(await waiting(statement), 1, 'it is read once, and goes on');
    });
    await until('the other is answered', () => second.socket.closed);
    t.match(second.text, /^HTTP\/1\.1 200 /);
  });

  t.test(`who waits for ${path} has his time, and no more`, async (t) => {
    const service = await listening(t, database, { REQUEST_DEADLINE_MS: '300' });
    await whileLocked(database, async () => {
      const { status, json } = await exchange(t, service.port, asked(path, service.key));
      t.same([status, json.code], [504, 'query_timeout']);
    });
    await until('the next one is answered', async () => {
      const again = await exchange(t, service.port, asked(path, service.key));
      return again.status === 200;
    });
  });
}
