import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { PGBOUNCER, pooled, testWith } from '../support/database/debian.ts';
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
  },
);
