import t from 'tap';
import { migrateUp } from '../../src/db/migrate/migrate.ts';
import { seed } from '../../src/db/seed/seed.ts';
import { ownCluster } from '../support/database/cluster.ts';
import { seededDatabase } from '../support/database/database.ts';
import {
  debianServer,
  makeCertificates,
  OPENSSL,
  PGBOUNCER,
  POSTGRES_15,
  pooled,
} from '../support/database/debian.ts';
import { clientAs, roledDatabase } from '../support/database/roles.ts';
import { startServiceProcess } from '../support/http/service-process.ts';
import { until } from '../support/http/sockets.ts';
import { prices, startService } from '../support/process/programs.ts';

type Test = Parameters<Parameters<typeof t.test>[0]>[0];

/** Runs a test where the machine has a program of Debian. */
function test(
  title: string,
  needed: Readonly<Record<string, string | null>>,
  run: (t: Test) => Promise<void>,
): void {
  const missing = Object.keys(needed).filter((each) => needed[each] === null);
  if (missing.length === 0) void t.test(title, run);
  else
    t.comment(`${title}: not run, as this machine lacks ${missing.join(', ')} (apt-get install)`);
}

/** An address with other parameters or another host. */
function withParameters(url: string, parameters: Readonly<Record<string, string>>): string {
  const address = new URL(url);
  for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value);
  return address.href;
}

/** How a command uses a database: its exit code, and its lines on standard error. */
async function used(t: Test, env: Readonly<Record<string, string>>) {
  const { code, stderr } = await prices(t, env, 'keys', 'list', '--json');
  return { code, stderr };
}

/** The connections of the service, and those of them with TLS. */
const ENCRYPTED = `select count(*)::integer as all, (count(*) filter (where ssl))::integer as encrypted
  from pg_stat_ssl join pg_stat_activity using (pid)
  where application_name in ('commodity-prices', 'commodity-prices link')`;

/** The promises of TLS, on a server with a certificate of an own CA. */
async function checkTls(t: Test, url: string, ca: string): Promise<void> {
  const full = { sslmode: 'verify-full', sslrootcert: ca };
  const onlyLine = /^Database: [^\n]*\n$/;
  t.match(await used(t, { DATABASE_URL: withParameters(url, full) }), {
    code: 0,
    stderr: onlyLine,
  });
  const verified = withParameters(url, { sslmode: 'verify-full' });
  t.match(
    await used(t, { DATABASE_URL: verified, PGSSLROOTCERT: ca }),
    { code: 0, stderr: onlyLine },
    'PGSSLROOTCERT',
  );
  t.match(
    await used(t, { DATABASE_URL: url, PGSSLMODE: 'verify-full', PGSSLROOTCERT: ca }),
    { code: 0, stderr: onlyLine },
    'PGSSLMODE',
  );
  t.match(
    await used(t, { DATABASE_URL: verified }),
    {
      code: 1,
      stderr: /certificate.*; no known CA has signed .*sslrootcert=<file>.*PGSSLROOTCERT/,
    },
    'without the CA',
  );
  const required = withParameters(url, { sslmode: 'require', sslrootcert: ca });
  const explained = await used(t, { DATABASE_URL: required });
  t.match(explained, {
    code: 0,
    stderr:
      /\nDATABASE_URL: sslmode=require is used as verify-full: .*docs\/managed-postgresql\.md/,
  });
  t.notMatch(explained.stderr, /SECURITY WARNING|node:/, 'the warning of the driver is not shown');
  const other = new URL(withParameters(url, full));
  other.hostname = '127.0.0.2';
  t.match(
    await used(t, { DATABASE_URL: other.href }),
    { code: 1, stderr: /does not match certificate/ },
    'a name that the certificate lacks',
  );
  const missing = withParameters(url, { ...full, sslrootcert: '/none/ca.pem' });
  t.match(await used(t, { DATABASE_URL: missing }), {
    code: 1,
    stderr: /\/none\/ca\.pem: there is/,
  });
}

test('a server with TLS and an own CA is verified on PostgreSQL 18, by each way to name the CA', {
  openssl: OPENSSL,
}, async (t) => {
  const { ca, settings } = await makeCertificates(t);
  const cluster = await ownCluster(t, { ...settings, listen_addresses: '127.0.0.1,127.0.0.2' });
  await checkTls(t, cluster.url, ca);
  const url = withParameters(cluster.url, { sslmode: 'verify-full', sslrootcert: ca });
  await cluster.using((database) => startServiceProcess(t, { ...database, url }));
  await until('the service is connected', async () => {
    const { rows } = await cluster.query(ENCRYPTED);
    return rows[0].all > 2 && rows[0].all === rows[0].encrypted;
  });
});

test('a server with TLS and an own CA is verified on PostgreSQL 15, by each way to name the CA', {
  openssl: OPENSSL,
  'postgresql-15': POSTGRES_15,
}, async (t) => {
  const { ca, settings } = await makeCertificates(t);
  const all = { ...settings, listen_addresses: '127.0.0.1,127.0.0.2' };
  const url = await debianServer(t, all);
  const client = clientAs(t, url);
  await migrateUp(client.db);
  await seed(client, { reference: true });
  await checkTls(t, url, ca);
});

test('PgBouncer in session mode serves requests and commands, with the settings of their sessions', {
  pgbouncer: PGBOUNCER,
}, async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const accounts = new Map(
    (['service', 'loader'] as const).map((login) => {
      const { username, password } = new URL(database.urlOf(login));
      return [username, password];
    }),
  );
  const through = await pooled(t, database.url, 'session', Object.fromEntries(accounts));
  const port = new URL(through).port;
  const address = (login: 'service' | 'loader'): string => {
    const url = new URL(database.urlOf(login));
    url.port = port;
    return url.href;
  };
  const env = { DATABASE_URL: address('service') };
  const service = await startServiceProcess(t, database, env);
  const answer = await fetch(`http://127.0.0.1:${service.port}/v3/prices/nickel`, {
    headers: { 'x-api-key': service.key },
  });
  t.equal(answer.status, 200);
  const { rows } = await database.pool.query(
    `select count(*) as sessions from pg_stat_activity where datname = current_database()
        and application_name like 'commodity-prices%' and application_name not like '%test'`,
  );
  t.ok(Number(rows[0].sessions) >= 3, 'sessions of the service reach the server');
  const client = clientAs(t, address('loader'));
  const settings = await client.pool.query(
    `select current_setting('TimeZone') as zone, current_setting('statement_timeout') as timeout`,
  );
  t.same(settings.rows, [{ zone: 'UTC', timeout: '0' }]);
  t.match(await prices(t, { DATABASE_URL: address('loader') }, 'load', 'log'), { code: 0 });
});

test('PgBouncer in transaction mode is refused at the start, in a sentence that says what to do', {
  pgbouncer: PGBOUNCER,
}, async (t) => {
  const { url } = await seededDatabase(t);
  const { username, password } = new URL(url);
  const through = await pooled(t, url, 'transaction', {
    [decodeURIComponent(username)]: decodeURIComponent(password),
  });
  const refusal = /DATABASE_URL: a pooler .* pool_mode=transaction; .*set pool_mode=session/;
  t.match(await prices(t, { DATABASE_URL: through }, 'keys', 'list'), { code: 2, stderr: refusal });
  const service = startService(t, { DATABASE_URL: through });
  t.equal(await service.ended, 2);
  t.match(service.stderr(), refusal);
});
