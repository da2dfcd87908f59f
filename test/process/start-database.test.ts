import t from 'tap';
import { openClient } from '../../src/db/client.ts';
import { roleName } from '../../src/db/migrate/roles.ts';
import { checkDatabase } from '../../src/process/check-database.ts';
import { loggerOf } from '../../src/process/log.ts';
import { seededDatabase, siblingUrl, testDatabase } from '../support/database/database.ts';
import { addressAs, roledDatabase } from '../support/database/roles.ts';
import { testConfig } from '../support/http/test-config.ts';
import { dataFolder, prices, type Running, startService } from '../support/process/programs.ts';

type Test = Parameters<typeof startService>[0];

/** The startup log messages above `info`, one of which names the database setting. */
async function saidOf(t: Test, url: string): Promise<string[]> {
  const service = startService(t, { DATABASE_URL: url });
  await service.until('stderr', /"level":[456]0,.*DATABASE_URL/);
  return saidBy(service);
}

/** Stops a service; returns the messages of its log above `info`, as they are on the terminal. */
async function saidBy(service: Running): Promise<string[]> {
  service.child.kill('SIGTERM');
  await service.ended;
  const lines = service.stderr().trim().split('\n');
  return lines
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { level: number; msg: string })
    .filter(({ level }) => level > 30)
    .map(({ msg }) => msg);
}

t.test('a database that cannot be used is logged at the start, in one line', async (t) => {
  const { url } = await seededDatabase(t);
  const closed = new URL(url);
  closed.port = '1';
  const cases: [string, RegExp][] = [
    [closed.href, /cannot use 127\.0\.0\.1:1\/\S+ \(connect ECONNREFUSED/],
    [siblingUrl(url, 'no_such'), /cannot use \S+\/no_such \(database "no_such" does not exist\)/],
    [addressAs(url, 'nobody', 'hunter2'), /cannot use \S+ \(password authentication failed/],
    [addressAs(url, 'nobody', ''), /cannot use \S+ \(a password is required: add it to/],
    [
      `${url}?sslmode=require`,
      /cannot use \S+ \(The server does not support SSL.*PGSSLROOTCERT asks for TLS/,
    ],
  ];
  for (const [address, message] of cases) {
    const [first = '', ...others] = await saidOf(t, address);
    t.match(first, message);
    t.match(first, /^DATABASE_URL: .*; every answer is 503 until that is fixed$/);
    t.same(others, []);
    t.notMatch(first, /hunter2|\n/);
  }
});

t.test(
  'a database that was not migrated is logged at the start, and reported to clients',
  async (t) => {
    const { url } = await seededDatabase(t);
    const { pool, url: bare } = await testDatabase(t);
    await pool.query('drop schema public cascade; create schema public');
    const service = startService(t, { DATABASE_URL: bare });
    const log = await service.until('stderr', 'lacks the schema');
    t.match(log, /lacks the schema of this version.*run: \.\/prices db migrate"/);
    const created = await prices(
      t,
      { DATABASE_URL: url },
      'keys',
      'create',
      '--name',
      'a',
      '--scope',
      'prices:nickel',
      '--json',
    );
    const { key } = JSON.parse(created.stdout);
    const [address = ''] = /http:\/\/[\d.]+:\d+/.exec(log) ?? [];
    const answer = await fetch(`${address}/v3/prices`, { headers: { 'x-api-key': key } });
    t.match(await answer.json(), { status: 503, code: 'schema_outdated' });
  },
);

t.test('an account that may do more than read is logged at the start', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const { prefix, pool, url } = database;
  const service = roleName(prefix, 'service');
  const warning = (what: string) => `it ${what}; run "./prices db roles"`;
  t.match((await saidOf(t, url)).join('\n'), warning('is a superuser'));
  /** The log of the check alone: a process for each account would take seconds. */
  const output = async (address: string): Promise<string> => {
    const client = openClient({
      url: address,
      connectionsMax: 1,
      acquireTimeoutMs: 20_000,
      statementTimeoutMs: 0,
      readOnly: true,
      applicationName: 'commodity-prices test',
    });
    let log = '';
    const logger = loggerOf('warn', { write: (line) => (log += line) });
    await checkDatabase(client.db, testConfig({}), logger);
    await client.close();
    return log.replaceAll('\\"', '"');
  };
  t.match(
    await output(database.urlOf('migrator')),
    /it may act as the owner of the tables, may write to \d+ tables, may create schemas or tables/,
  );
  t.match(
    await output(database.urlOf('loader')),
    /it may write to 13 tables, .*may open revisions/,
  );
  const grants: [string, string, string][] = [
    ['grant update (mid) on series to', 'revoke all on series from', 'may write to 1 tables'],
    ['grant delete on api_key to', 'revoke delete on api_key from', 'may write to 1 tables'],
    [`grant ${prefix}_owner to`, `revoke ${prefix}_owner from`, 'may act as the owner'],
    ['grant create on schema public to', 'revoke create on schema public from', 'may create'],
  ];
  for (const [give, take, what] of grants) {
    await pool.query(`${give} ${service}`);
    t.match(await output(database.urlOf('service')), `it ${what}`);
    await pool.query(`${take} ${service}; grant select on series to ${service}`);
  }
  await pool.query(`revoke select on price, product from ${service}`);
  t.match(
    await output(database.urlOf('service')),
    `the account ${service} may not read price and 1 other tables; run: ./prices`,
  );
});

t.test('the account made for the service is not spoken of', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const service = startService(t, {
    DATABASE_URL: database.urlOf('service'),
    FX_SOURCE: 'NOBODY',
  });
  // The last line follows all checks of the account.
  await service.until('stderr', 'FX_SOURCE');
  t.match(await saidBy(service), [/^FX_SOURCE: /]);
});

t.test('the embedded database is read with the account made for the service', async (t) => {
  const service = startService(t, {
    DATA_DIR: await dataFolder(t),
    FX_SOURCE: 'NOBODY',
    LOG_LEVEL: 'info',
  });
  await service.until('stdout', 'Ctrl-C');
  await service.until('stderr', 'FX_SOURCE');
  t.match(await saidBy(service), [/^FX_SOURCE: /]);
});
