import { userInfo } from 'node:os';
import t from 'tap';
import { debianServer, POSTGRES_15, testWith } from '../support/database/debian.ts';
import { clientAs } from '../support/database/roles.ts';
import { until } from '../support/http/sockets.ts';
import { prices, startService } from '../support/process/programs.ts';

testWith(
  t,
  'a Unix socket is used by each form of its address, without TLS and without a password by peer',
  { 'postgresql-15': POSTGRES_15 },
  async (t) => {
    const url = await debianServer(t);
    const { rows } = await clientAs(t, url).pool.query(
      `select current_setting('unix_socket_directories') as folder,
        current_setting('hba_file') as hba, current_setting('port') as port`,
    );
    const [{ folder, hba, port }] = rows;
    const { username: account } = userInfo();
    const admin = clientAs(t, url).pool;
    await admin.query(`create role "${account}" superuser login`);
    await admin.query(`copy (select 'local all all peer') to '${hba}'`);
    await admin.query('select pg_reload_conf()');
    const place = `host=${folder}&port=${port}`;
    const addresses = [
      `postgres://${account}@/postgres?${place}`,
      `postgres://${account}@${encodeURIComponent(folder)}/postgres?port=${port}`,
      `postgresql://${account}@${encodeURIComponent(folder)}:${port}/postgres`,
    ];
    for (const DATABASE_URL of addresses) {
      const env = { DATABASE_URL, PGSSLMODE: 'verify-full' };
      const { code, stderr } = await prices(t, env, 'db', 'migrate', '--status');
      t.equal(code, 0, DATABASE_URL);
      t.equal(stderr, `Database: postgres at ${folder}:${port}\n`);
    }
    const [DATABASE_URL = ''] = addresses;
    t.match(await prices(t, { DATABASE_URL }, 'db', 'migrate'), { code: 0 });
    const service = startService(t, { DATABASE_URL });
    const [address] = /http:\/\/[\d.]+:\d+/.exec(await service.until('stderr', /http:/)) ?? [];
    await until('the service is ready', async () => (await fetch(`${address}/ready`)).ok);
    const missing = { DATABASE_URL: `postgres://${account}@/postgres?host=/none&port=${port}` };
    const refused = await prices(t, missing, 'db', 'migrate', '--status');
    t.match(refused, { code: 1, stderr: /cannot use \/none\/postgres \(connect ENOENT/ });
  },
);
