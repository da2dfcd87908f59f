import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { openClient } from '../../src/db/client.ts';
import { instantOf } from '../../src/db/instant.ts';
import { SocketClient } from '../../src/db/link/socket-client.ts';
import { seededDatabase } from '../support/database/database.ts';
import { tcpProxyTo } from '../support/database/tcp-proxy.ts';
import { until } from '../support/http/sockets.ts';

const options = {
  connectionsMax: 2,
  acquireTimeoutMs: 20_000,
  statementTimeoutMs: 60_000,
  readOnly: true,
  applicationName: 'test',
};

/** A way to PostgreSQL that a test can cut. */
async function cuttable(test: Pick<typeof t, 'teardown'>, url: string) {
  const { hostname, port } = new URL(url);
  const sockets: Socket[] = [];
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    sockets.push(client, upstream);
    for (const socket of [client, upstream]) socket.on('error', () => socket.destroy());
    client.pipe(upstream).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => server.close());
  const through = new URL(url);
  through.hostname = '127.0.0.1';
  through.port = String((server.address() as AddressInfo).port);
  return {
    url: through.href,
    cut: (how: 'end' | 'reset') => {
      for (const socket of sockets) how === 'end' ? socket.destroy() : socket.resetAndDestroy();
    },
  };
}

t.test('a connection that breaks during a statement fails the statement alone', async (t) => {
  const { url, pool } = await seededDatabase(t);
  for (const how of ['end', 'reset'] as const) {
    const way = await cuttable(t, url);
    const lost: Error[] = [];
    const applicationName = `cut by ${how}`;
    const onError = (error: Error) => lost.push(error);
    const client = openClient({ ...options, url: way.url, applicationName, onError });
    const statement = 'select pg_sleep(60)';
    const refused = t.rejects(client.pool.query(statement), how);
    // The session first sets its settings: a loss then is a failure to connect.
    const running = async () =>
      (
        await pool.query(
          `select from pg_stat_activity
          where application_name = $1 and state = 'active' and query = $2`,
          [applicationName, statement],
        )
      ).rows.length > 0;
    await until('the statement runs', running);
    way.cut(how);
    await refused;
    await until('the loss is reported', () => lost.length > 0);
    t.equal((await client.pool.query('select 1 as one')).rows[0].one, 1, 'the pool continues');
    await client.close();
  }
});

t.test('a connection to a server that fell silent is closed without its goodbye', async (t) => {
  const { url } = await seededDatabase(t);
  const proxy = await tcpProxyTo(t, url);
  const client = new SocketClient({ connectionString: proxy.url, settings: {} });
  await client.connect();
  proxy.freeze();
  let isEnded = false;
  client.on('error', () => {});
  client.on('end', () => {
    isEnded = true;
  });
  client.destroySocket();
  await until('the connection ends', () => isEnded);
});

t.test('options in the address never replace ours', async (t) => {
  const { url } = await seededDatabase(t);
  const address = new URL(url);
  address.searchParams.set('options', '-c TimeZone=Europe/Berlin -c search_path=public');
  const client = openClient({ ...options, url: address.href });
  t.teardown(() => client.close());
  const { rows } = await client.pool.query(`
    select current_setting('TimeZone') as zone, current_setting('search_path') as path,
      current_setting('default_transaction_read_only') as reading,
      current_setting('statement_timeout') as timeout`);
  t.same(rows[0], { zone: 'UTC', path: 'public', reading: 'on', timeout: '1min' });
});

t.test('a timestamp of another time zone is never shown as one of UTC', async (t) => {
  t.equal(instantOf('2026-03-05 16:00:00.5+00'), '2026-03-05T16:00:00.5Z');
  t.throws(() => instantOf('2026-03-05 17:00:00+01'));
});

t.test('a session whose settings the server refuses is closed', async (t) => {
  const { pool, url } = await seededDatabase(t);
  const name = 'a session with a bad setting';
  const refused = new SocketClient({
    connectionString: url,
    application_name: name,
    settings: { no_such_setting: 'on' },
  });
  await t.rejects(refused.connect(), /unrecognized configuration parameter/);
  const sessions = async () =>
    (await pool.query('select from pg_stat_activity where application_name = $1', [name])).rowCount;
  await until('the session ends', async () => (await sessions()) === 0);
});
