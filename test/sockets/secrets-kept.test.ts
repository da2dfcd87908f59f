import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { newKey } from '../../src/auth/keys/format.ts';
import { HS256, SECRET } from '../support/auth/auth-app.ts';
import { bodyOf, heldOf, sendEverywhere } from '../support/auth/secret-places.ts';
import { goodClaims, secretToken } from '../support/auth/tokens.ts';
import { ownCluster } from '../support/database/cluster.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { type ServiceProcess, startServiceProcess } from '../support/http/service-process.ts';
import { RawConnection, until } from '../support/http/sockets.ts';
import { prices } from '../support/process/programs.ts';

const SETTINGS = {
  JWT_SECRET: SECRET,
  JWT_ISSUER: HS256.JWT_ISSUER,
  JWT_AUDIENCE: HS256.JWT_AUDIENCE,
  LOG_LEVEL: 'trace',
  REQUEST_TIMEOUT_MS: '300',
  HEADERS_TIMEOUT_MS: '200',
};

/** PostgreSQL logs every statement and parameter, including failed ones. */
const TALKATIVE = {
  logging_collector: 'on',
  log_directory: 'told',
  log_statement: 'all',
  log_min_duration_statement: '0',
  log_parameter_max_length: '-1',
  log_parameter_max_length_on_error: '-1',
  log_min_messages: 'debug1',
  log_connections: 'on',
};

/** Every row of every table, as text. */
async function rowsOf({ pool }: TestDatabase): Promise<string[]> {
  const { rows: tables } = await pool.query<{ name: string }>(`select oid::regclass::text as name
    from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`);
  const rows: string[] = [];
  for (const { name } of tables) {
    const { rows: some } = await pool.query<{ text: string }>(
      `select row(each.*)::text as text from ${name} as each`,
    );
    rows.push(...some.map(({ text }) => `${name} ${text}`));
  }
  return rows;
}

t.test('PostgreSQL keeps no key and no token, in no table and in no line of its log', async (t) => {
  const cluster = await ownCluster(t, TALKATIVE);
  await cluster.using(async (database) => {
    const env = { DATABASE_URL: cluster.url };
    const command = async (...args: string[]): Promise<string> => {
      const { code, stdout } = await prices(t, env, 'keys', ...args, '--json');
      t.equal(code, 0, args.join(' '));
      return JSON.parse(stdout).key;
    };
    const first = await command('create', '--name', 'canary', '--scope', 'prices:*');
    const id = first.slice(9, 19);
    const second = await command('rotate', id, '--grace', '1h');
    await command('revoke', second.slice(9, 19), '--reason', 'a canary');
    const usage = { USAGE_DATABASE_URL: cluster.url };
    const service = await startServiceProcess(t, database, { ...SETTINGS, ...usage });
    const secrets = [first, second, service.key, newKey().text, secretToken(goodClaims())];
    for (const secret of secrets) await sendEverywhere(t, service, secret);
    const rows = await rowsOf(database);
    await database.pool.query('alter table api_key rename to gone');
    for (const secret of [first, service.key]) await sendEverywhere(t, service, secret);
    service.running.child.kill('SIGTERM');
    await service.running.ended;
    const folder = join(cluster.folder, 'told');
    const files = await readdir(folder);
    const log = (
      await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')))
    ).join();
    t.match(log, /select .*api_key/, 'lookups are in it');
    t.match(log, /relation "api_key" does not exist/, 'and what failed');
    t.ok(log.includes(id), 'with the public id');
    t.ok(
      rows.filter((row) => row.startsWith('key_audit ')).length >= 4,
      'recorded changes are kept',
    );
    const outputs = [...log.split('\n'), ...rows, service.running.stderr()];
    t.same(
      outputs.filter((text) => heldOf([SECRET, ...secrets], text) !== null),
      [],
    );
  });
});

/** The ways to end a process during its work. */
const CRASHES: Readonly<Record<string, string>> = {
  'an uncaught error': 'throw new Error("a crash of a test")',
  'an unhandled rejection': 'Promise.reject(new Error("a crash of a test"))',
};

/** Requests with secrets, of which none is over: a lookup that waits, a body half sent. */
async function underWay(
  test: Pick<Test, 'teardown'>,
  service: ServiceProcess,
  secrets: readonly string[],
) {
  for (const secret of secrets) {
    const text = bodyOf(secret, service.key);
    const waits = new RawConnection(test, service.port);
    waits.socket.write(text);
    const half = new RawConnection(test, service.port);
    half.socket.write(text.slice(0, -5));
    await until(
      'both are sent',
      () => half.socket.bytesWritten > 0 && waits.socket.bytesWritten > 0,
    );
  }
}

for (const [what, statement] of Object.entries(CRASHES)) {
  t.test(`a crash says nothing of what requests have sent: ${what}`, async (t) => {
    const database = await testDatabase(t);
    const crash = encodeURIComponent(`process.on("SIGUSR2", () => { ${statement} })`);
    const service = await startServiceProcess(t, database, {
      ...SETTINGS,
      REQUEST_TIMEOUT_MS: '60000',
      SHUTDOWN_TIMEOUT_MS: '500',
      NODE_OPTIONS: `--import=data:text/javascript,${crash}`,
    });
    const secrets = [service.key, newKey().text, secretToken(goodClaims())];
    const holder = await database.pool.connect();
    t.teardown(() => holder.release(true));
    await holder.query('begin; lock table api_key in access exclusive mode');
    await underWay(t, service, secrets);
    await until('a lookup waits', async () => {
      const { rows } = await database.pool.query(`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`);
      return rows.length > 0;
    });
    service.running.child.kill('SIGUSR2');
    const code = await service.running.ended;
    t.not(code, 0);
    const output = service.running.stdout() + service.running.stderr();
    t.match(output, /a crash of a test/);
    t.equal(heldOf([SECRET, ...secrets], output), null);
  });
}
