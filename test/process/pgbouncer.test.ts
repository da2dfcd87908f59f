import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { freePort, PGBOUNCER, pooled, testWith } from '../support/database/debian.ts';
import { clientAs, roledDatabase } from '../support/database/roles.ts';
import { startServiceProcess } from '../support/http/service-process.ts';
import { prices, startService } from '../support/process/programs.ts';

testWith(
  t,
  'PgBouncer in session mode serves requests and commands, with the settings of their sessions',
  { pgbouncer: PGBOUNCER },
  async (t) => {
    const database = await roledDatabase(t, { seeded: true });
    const accounts = (['service', 'loader'] as const).map((login) => {
      const { username, password } = new URL(database.urlOf(login));
      return [username, password];
    });
    const through = await pooled(t, database.url, 'session', Object.fromEntries(accounts));
    const address = (login: 'service' | 'loader'): string => {
      const url = new URL(database.urlOf(login));
      url.port = new URL(through).port;
      return url.href;
    };
    const service = await startServiceProcess(t, database, { DATABASE_URL: address('service') });
    const answer = await fetch(`http://127.0.0.1:${service.port}/v3/prices/nickel`, {
      headers: { 'x-api-key': service.key },
    });
    t.equal(answer.status, 200);
    const client = clientAs(t, address('loader'));
    const { rows } = await client.pool.query(
      `select current_setting('TimeZone') as zone, current_setting('idle_session_timeout') as idle`,
    );
    t.same(rows, [{ zone: 'UTC', idle: '0' }], 'the account has an hour');
    t.match(await prices(t, { DATABASE_URL: address('loader') }, 'load', 'log'), { code: 0 });
  },
);

testWith(
  t,
  'PgBouncer in transaction mode is refused at the start, in a sentence that says what to do',
  { pgbouncer: PGBOUNCER },
  async (t) => {
    const { url } = await seededDatabase(t);
    const { username, password } = new URL(url);
    const account = { [decodeURIComponent(username)]: decodeURIComponent(password) };
    const DATABASE_URL = await pooled(t, url, 'transaction', account);
    const refusal = /DATABASE_URL: a pooler .* pool_mode=transaction; .*set pool_mode=session/;
    t.match(await prices(t, { DATABASE_URL }, 'keys', 'list'), { code: 2, stderr: refusal });
    const service = startService(t, { DATABASE_URL });
    t.equal(await service.ended, 2);
    t.match(service.stderr(), refusal);

    const [late, listen_port] = [new URL(url), String(await freePort())];
    late.port = listen_port;
    const early = startService(t, { DATABASE_URL: late.href });
    await early.until('stderr', 'ECONNREFUSED');
    await pooled(t, url, 'transaction', account, { listen_port });
    t.equal(await early.ended, 2, 'a pooler that starts after the service was not checked');
    t.match(early.stderr(), refusal);
  },
);

testWith(
  t,
  'a pool of PgBouncer that is too small is reported with the setting to raise',
  { pgbouncer: PGBOUNCER },
  async (t) => {
    const { url } = await seededDatabase(t);
    const { username, password } = new URL(url);
    const account = { [decodeURIComponent(username)]: decodeURIComponent(password) };
    // PgBouncer ends a client that has waited for a connection of the server for a second.
    const small = (size: number) =>
      pooled(t, url, 'session', account, {
        default_pool_size: String(size),
        query_wait_timeout: '1',
      });
    const text =
      'the database answers, and opens no further connection in time: the service needs ' +
      'DATABASE_CONNECTIONS_MAX connections and 4 more, a command 2; raise default_pool_size of';
    const one = await small(1);
    const command = await prices(t, { DATABASE_URL: one }, 'keys', 'list');
    t.match(command, { code: 1, stderr: text });
    const withOne = startService(t, { DATABASE_URL: one, DATABASE_SILENCE_MS: '500' });
    t.match(await withOne.until('stderr', text), `${text}`);
    const withThree = startService(t, { DATABASE_URL: await small(3) });
    t.match(await withThree.until('stderr', text), /"level":50,.*"DATABASE_URL: the database/);
  },
);
