import t from 'tap';
import { ownCluster } from '../support/database/cluster.ts';
import {
  debianServer,
  makeCertificates,
  OPENSSL,
  POSTGRES_15,
  testWith,
} from '../support/database/debian.ts';
import { clientAs } from '../support/database/roles.ts';
import { startServiceProcess } from '../support/http/service-process.ts';
import { until } from '../support/http/sockets.ts';
import { prices } from '../support/process/programs.ts';

type Env = Readonly<Record<string, string>>;

/** An address with further parameters. */
function withParameters(url: string, parameters: Env): string {
  const address = new URL(url);
  for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value);
  return address.href;
}

/** The connections of the service, and those of them with TLS. */
const ENCRYPTED = `
  select count(*)::integer as all, (count(*) filter (where ssl))::integer as encrypted
  from pg_stat_ssl join pg_stat_activity using (pid)
  where application_name in ('commodity-prices', 'commodity-prices link')`;

const FULL = /^Database: [^\n]*\n$/;

testWith(
  t,
  'a server with TLS and an own CA is verified on PostgreSQL 18, by each way to name the CA',
  { openssl: OPENSSL },
  async (t) => {
    const { ca, settings } = await makeCertificates(t);
    const cluster = await ownCluster(t, { ...settings, listen_addresses: '127.0.0.1,127.0.0.2' });
    const { url } = cluster;
    const verified = withParameters(url, { sslmode: 'verify-full' });
    const named = withParameters(verified, { sslrootcert: ca });
    const other = new URL(named);
    other.hostname = '127.0.0.2';
    const cases: readonly [what: string, env: Env, code: number, stderr: RegExp][] = [
      ['sslrootcert', { DATABASE_URL: named }, 0, FULL],
      ['PGSSLROOTCERT', { DATABASE_URL: verified, PGSSLROOTCERT: ca }, 0, FULL],
      ['PGSSLMODE', { DATABASE_URL: url, PGSSLMODE: 'verify-full', PGSSLROOTCERT: ca }, 0, FULL],
      [
        'without the CA',
        { DATABASE_URL: verified },
        1,
        /certificate.*; no known CA has signed .*sslrootcert=<file>.*PGSSLROOTCERT/,
      ],
      [
        'require is explained, instead of a warning of the driver',
        { DATABASE_URL: withParameters(url, { sslmode: 'require', sslrootcert: ca }) },
        0,
        /^Database: .*\nDATABASE_URL: sslmode=require is used as verify-full: [^\n]*\n$/,
      ],
      ['a name that the certificate lacks', { DATABASE_URL: other.href }, 1, /does not match cert/],
      [
        'a file that is not there',
        { DATABASE_URL: withParameters(verified, { sslrootcert: '/none/ca.pem' }) },
        1,
        /\/none\/ca\.pem: there is no such file/,
      ],
    ];
    for (const [what, env, code, stderr] of cases) {
      t.match(await prices(t, env, 'keys', 'list', '--json'), { code, stderr }, what);
    }
    await cluster.using((database) => startServiceProcess(t, { ...database, url: named }));
    await until('all connections of the service are encrypted', async () => {
      const { rows } = await cluster.query(ENCRYPTED);
      return rows[0].all > 1 && rows[0].all === rows[0].encrypted;
    });
  },
);

testWith(
  t,
  'a server with TLS and an own CA is verified on PostgreSQL 15',
  { openssl: OPENSSL, 'postgresql-15': POSTGRES_15 },
  async (t) => {
    const { ca, settings } = await makeCertificates(t);
    const url = withParameters(await debianServer(t, settings), { sslmode: 'verify-full' });
    const migrated = await prices(t, { DATABASE_URL: url, PGSSLROOTCERT: ca }, 'db', 'migrate');
    t.match(migrated, { code: 0 });
    const client = clientAs(t, withParameters(url, { sslrootcert: ca }));
    const { rows } = await client.pool.query(
      `select ssl, current_setting('server_version_num')::integer / 10000 as version
        from pg_stat_ssl where pid = pg_backend_pid()`,
    );
    t.same(rows, [{ ssl: true, version: 15 }]);
    const refused = await prices(t, { DATABASE_URL: url }, 'db', 'migrate', '--status');
    t.match(refused, { code: 1, stderr: /no known CA has signed/ });
  },
);
