import t from 'tap';
import { ownCluster } from '../support/database/cluster.ts';
import { seededDatabase } from '../support/database/database.ts';
import { roledDatabase } from '../support/database/roles.ts';
import { until } from '../support/http/sockets.ts';
import { prices, startService } from '../support/process/programs.ts';

const IDENTIFIER = 'select system_identifier::text as identifier from pg_control_system()';

const other = await ownCluster(t);
const otherIdentifier: string = (await other.query(IDENTIFIER)).rows[0].identifier;

t.test('a service starts on its database, with an account that only reads', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const { rows } = await database.pool.query(IDENTIFIER);
  const service = startService(t, {
    DATABASE_URL: database.urlOf('service'),
    USAGE_DATABASE_URL: database.urlOf('usage'),
    DATABASE_SYSTEM_IDENTIFIER: rows[0].identifier,
    FX_SOURCE: 'NOBODY',
  });
  const log = await service.until('stderr', 'FX_SOURCE');
  t.notMatch(log, /IDENTIFIER/);
});

t.test('the account of usage data runs no query that it may not run', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const url = database.urlOf('usage');
  const { host } = new URL(url);
  startService(t, {
    DATABASE_URL: database.urlOf('service'),
    // With several servers, a link checks them.
    USAGE_DATABASE_URL: url.replace(host, `${host},127.0.0.1:1`),
  });
  const queries = new Set<string>();
  const checks = new Set<string>();
  await until('its link has checked three times', async () => {
    const { rows } = await database.pool.query(
      `select application_name as name, query, query_start::text as at from pg_stat_activity
       where datname = current_database() and usename like '%usage' and query <> ''`,
    );
    for (const { name, query, at } of rows) {
      if (name.endsWith('link')) checks.add(at);
      else queries.add(query);
    }
    return checks.size >= 3;
  });
  for (const query of queries) t.match(query, /rate_usage/);
});

t.test('a service refuses to start if any server has another identifier', async (t) => {
  const { url, pool } = await seededDatabase(t);
  const { identifier } = (await pool.query(IDENTIFIER)).rows[0];
  const closed = new URL(url);
  closed.port = '1';
  const pair = `${url.replace(new URL(url).host, `${closed.host},${new URL(url).host}`)}`;
  const cases: [Record<string, string>, string][] = [
    [{ DATABASE_URL: url, DATABASE_SYSTEM_IDENTIFIER: otherIdentifier }, identifier],
    [{ DATABASE_URL: pair, DATABASE_SYSTEM_IDENTIFIER: otherIdentifier }, identifier],
    [
      {
        DATABASE_URL: url,
        USAGE_DATABASE_URL: other.url,
        DATABASE_SYSTEM_IDENTIFIER: identifier,
      },
      otherIdentifier,
    ],
  ];
  for (const [env, found] of cases) {
    const service = startService(t, env);
    t.equal(await service.ended, 2);
    t.match(
      service.stderr(),
      new RegExp(
        `DATABASE_SYSTEM_IDENTIFIER: the server of \\S+ has the system identifier ${found}, not ` +
          `${env['DATABASE_SYSTEM_IDENTIFIER']}: it is not the configured database`,
      ),
    );
    t.notMatch(service.stderr(), new URL(url).password);
  }
  const env = { DATABASE_URL: url, DATABASE_SYSTEM_IDENTIFIER: otherIdentifier };
  const command = await prices(t, env, 'load', 'log');
  t.match(command, { code: 2, stdout: '' }, 'a command refuses it as well');
  t.match(command.stderr, /DATABASE_SYSTEM_IDENTIFIER/);
});

t.test('a database that comes up later with another identifier is not used', async (t) => {
  await other.stop();
  const service = startService(t, {
    DATABASE_URL: other.url,
    DATABASE_SYSTEM_IDENTIFIER: '7000000000000000001',
    DATABASE_AWAY_MS_MAX: '300',
    LOG_LEVEL: 'info',
  });
  await service.until('stderr', 'ECONNREFUSED');
  const [address = ''] = /http:\/\/[\d.]+:\d+/.exec(service.stderr()) ?? [];
  await other.restart('fast');
  const ready = async () => {
    const answer = await fetch(`${address}/ready`);
    return ((await answer.json()) as { readonly checks: object }).checks;
  };
  for (let count = 0; count < 20; count += 1) {
    t.match(await ready(), { database: 'unavailable' });
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
});
