import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { createKey } from '../../src/auth/keys/keys.ts';
import { findPostmaster } from '../../src/db/embedded/files.ts';
import { chooseInstallation } from '../../src/db/embedded/installation.ts';
import { seededDatabase, siblingUrl, testDatabase } from '../support/database/database.ts';
import { until } from '../support/http/sockets.ts';
import { dataFolder, prices, type Running, startService } from '../support/process/programs.ts';

/** The arguments of the banner's curl line, as a shell splits them. */
function curlArguments(banner: string): string[] {
  const line = /^ {2}(curl .*)$/m.exec(banner)?.[1] ?? '';
  const script = `set -- ${line}; printf '%s\\n' "$@"`;
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).trimEnd().split('\n');
}

/** Executes the request of these curl arguments. */
async function curl([program, ...args]: string[]): Promise<Response> {
  if (program !== 'curl') throw new Error(`${program} is not curl`);
  const headers = new Headers();
  let url = '';
  let body: string | null = null;
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] ?? '';
    if (arg === '-H') {
      const [name = '', ...value] = (args[++at] ?? '').split(': ');
      headers.set(name, value.join(': '));
    } else if (arg === '-d') body = args[++at] ?? '';
    else if (arg !== '-s') url = arg;
  }
  return fetch(url, { method: body === null ? 'GET' : 'POST', headers, body });
}

const keyIn = (banner: string): string => /cps_live_\w+/.exec(banner)?.[0] ?? '';
const addressIn = (text: string): string => /http:\/\/\S+?:\d+/.exec(text)?.[0] ?? '';

const askNickel = (address: string, headers: Record<string, string>): Promise<Response> =>
  fetch(`${address}/v3/prices/nickel`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: '{"filters":{"codes":["CP-NI-0001"]}}',
  });

/** Waits until a service has looked at its database and can use it. */
const isReady = (address: string): Promise<void> =>
  until('the service is ready', async () => (await fetch(`${address}/ready`)).status === 200);

const isDatabaseUp = async (dataDir: string): Promise<boolean> =>
  findPostmaster(await chooseInstallation(dataDir)) !== null;

/** Invalid settings, with message and exit code. */
type InvalidSettings = [env: Record<string, string>, message: RegExp, code: number];

/** Listens at a free port, and returns it. */
async function takePort(test: Test): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  test.teardown(() => server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Starts a service whose port is in use. */
async function startInVain(test: Test, env: Record<string, string>) {
  const port = await takePort(test);
  const service = startService(test, { ...env, PORT: String(port) });
  test.equal(await service.ended, 2);
  test.match(service.stderr(), `PORT: ${port} on 127.0.0.1 is in use by another program`);
}

/** Waits for the address in the log of a service that shows no banner. */
async function startListening(service: Running): Promise<string> {
  return addressIn(await service.until('stderr', /listening at http/));
}

t.test('one command gives a service that answers, again and again', async (t) => {
  const dataDir = await dataFolder(t);
  const env = { DATA_DIR: dataDir };
  const first = startService(t, env);
  const banner = await first.until('stdout', 'Ctrl-C');
  const oldKey = keyIn(banner);
  const answer = await curl(curlArguments(banner));
  t.equal(answer.status, 200, 'the line to paste works');
  t.match(await answer.json(), {
    $metadata: { market: 'nickel', count: 1 },
    data: [{ code: 'CP-NI-0001', series: [{ mid: Number }] }],
  });
  t.equal((await fetch(`${addressIn(banner)}/docs`)).status, 200);
  const [explorer = '', linked] = /http:\S+\/explorer#key=(\S+)/.exec(banner) ?? [];
  t.equal((await fetch(explorer)).status, 200);
  t.equal(linked, oldKey);
  await isReady(addressIn(banner));

  const listed = await prices(t, env, 'keys', 'list', '--json');
  t.match(JSON.parse(listed.stdout), [{ name: 'demo', scopes: ['prices:*'], status: 'active' }]);
  const token = await prices(t, env, 'token', 'create', '--scope', 'prices:nickel');
  const authorization = `Bearer ${token.stdout.trim()}`;
  t.equal((await askNickel(addressIn(banner), { authorization })).status, 200);
  t.equal((await stat(join(dataDir, 'jwt-secret'))).mode & 0o777, 0o600);

  first.child.kill('SIGTERM');
  t.equal(await first.ended, 0);
  t.equal(await isDatabaseUp(dataDir), false, 'no database is left');

  const second = startService(t, env);
  const address = addressIn(await second.until('stdout', 'Ctrl-C'));
  t.equal((await curl(curlArguments(second.stdout()))).status, 200);
  const refused = await askNickel(address, { 'x-api-key': oldKey });
  t.equal(refused.status, 401);
  t.match(await refused.json(), { code: 'api_key_revoked' });
  t.equal((await askNickel(address, { authorization })).status, 200, 'tokens live on');

  await startInVain(t, env);
  const key = { 'x-api-key': keyIn(second.stdout()) };
  t.equal((await askNickel(address, key)).status, 200, 'a start in vain takes no key away');
  second.child.kill('SIGINT');
  t.equal(await second.ended, 0);
  t.equal(await isDatabaseUp(dataDir), false);

  await startInVain(t, env);
  t.equal(await isDatabaseUp(dataDir), false, 'a start that fails gives its database back');

  const secret = (await readFile(join(dataDir, 'jwt-secret'), 'utf8')).trim();
  for (const output of [first, second]) {
    t.notMatch(output.stdout() + output.stderr(), secret);
    t.notMatch(output.stderr(), /cps_live_/);
  }
});

t.test('two copies run side by side, and a killed one starts again', async (t) => {
  const folders = [await dataFolder(t), await dataFolder(t)];
  const [one, two] = folders.map((dataDir) => startService(t, { DATA_DIR: dataDir }));
  if (!one || !two) throw new Error('two were started');
  const banners = [await one.until('stdout', 'Ctrl-C'), await two.until('stdout', 'Ctrl-C')];
  for (const banner of banners) t.equal((await curl(curlArguments(banner))).status, 200);
  t.equal(
    (await askNickel(addressIn(banners[0] ?? ''), { 'x-api-key': keyIn(banners[1] ?? '') })).status,
    401,
  );

  one.child.kill('SIGKILL');
  await one.ended;
  const again = startService(t, { DATA_DIR: folders[0] ?? '' });
  t.equal((await curl(curlArguments(await again.until('stdout', 'Ctrl-C')))).status, 200);
  for (const service of [again, two]) {
    service.child.kill('SIGTERM');
    t.equal(await service.ended, 0);
  }
  for (const dataDir of folders) t.equal(await isDatabaseUp(dataDir), false);
});

t.test('one Ctrl-C that arrives twice, as under npm, lets running requests end', async (t) => {
  const { url, db } = await seededDatabase(t);
  const { key } = await createKey(db, { name: 'a', scopes: ['prices:nickel'], expiresAt: null });
  const service = startService(t, { DATABASE_URL: url });
  const address = await startListening(service);
  const asking = request(`${address}/v3/prices/nickel`, {
    method: 'POST',
    agent: false,
    headers: { 'x-api-key': key, 'content-type': 'application/json', expect: '100-continue' },
  });
  asking.flushHeaders();
  await once(asking, 'continue');
  // Two of the same name at once would be one for the kernel.
  service.child.kill('SIGINT');
  service.child.kill('SIGTERM');
  while (await fetch(`${address}/live`).catch(() => null)) t.comment('the service still listens');
  asking.end('{"filters":{"codes":["CP-NI-0001"]}}');
  const [answer] = await once(asking, 'response');
  t.equal(answer.statusCode, 200);
  t.match(JSON.parse(await text(answer)), { data: [{ code: 'CP-NI-0001' }] });
  t.equal(await service.ended, 0);
});

t.test('a signal while it starts undoes what was begun', async (t) => {
  // A late signal, as on a stalled machine, proves nothing.
  await until('the signal came during the start', async () => {
    const dataDir = await dataFolder(t);
    const service = startService(t, { DATA_DIR: dataDir, LOG_LEVEL: 'info' });
    const log = join(dataDir, 'postgres.log');
    while (!(await stat(log).catch(() => null))) await new Promise((done) => setImmediate(done));
    service.child.kill('SIGTERM');
    t.equal(await service.ended, 0);
    t.equal(await isDatabaseUp(dataDir), false);
    return !service.stdout().includes('Demo key');
  });
});

t.test('with DATABASE_URL nothing is migrated, seeded or made', async (t) => {
  // Not the shared database, to which other files add keys.
  const { url } = await testDatabase(t, { seeded: true });
  const keysBefore = (await prices(t, { DATABASE_URL: url }, 'keys', 'list', '--json')).stdout;
  const service = startService(t, { DATABASE_URL: url });
  const address = await startListening(service);
  t.equal(service.stdout(), '', 'no banner');
  await isReady(address);
  const bearer = await askNickel(address, { authorization: 'Bearer a.b.c' });
  t.equal(bearer.status, 401, 'without a setting there is no secret');
  t.equal((await prices(t, { DATABASE_URL: url }, 'keys', 'list', '--json')).stdout, keysBefore);
  service.child.kill('SIGTERM');
  t.equal(await service.ended, 0);
});

t.test('with DATABASE_URL of an unmigrated database it starts and is not ready', async (t) => {
  const database = await testDatabase(t);
  await database.pool.query('drop table kysely_migration');
  const service = startService(t, { DATABASE_URL: database.url });
  const address = await startListening(service);
  t.equal((await fetch(`${address}/live`)).status, 200);
  await until('/ready says why', async () => {
    const ready = await fetch(`${address}/ready`);
    t.equal(ready.status, 503);
    return /schema_outdated/.test(await ready.text());
  });
});

t.test('an unreachable DATABASE_URL does not stop the start', async (t) => {
  const { url } = await seededDatabase(t);
  const closed = new URL(siblingUrl(url, 'none'));
  closed.port = '1';
  const service = startService(t, { DATABASE_URL: closed.href });
  const address = await startListening(service);
  t.equal((await fetch(`${address}/live`)).status, 200);
  t.equal((await fetch(`${address}/ready`)).status, 503);
  service.child.kill('SIGTERM');
  t.equal(await service.ended, 0);
});

t.test('an unusable setting is one line that names it', async (t) => {
  const { url } = await seededDatabase(t);
  const port = await takePort(t);
  const database = { DATABASE_URL: url };
  const secret = { JWT_SECRET: 'x'.repeat(32) };
  const faults: InvalidSettings[] = [
    [{ ...database, PORT: 'abc' }, /PORT: "abc"/, 2],
    [{ DATABASE_URL: 'mysql://me:hunter2@host/db' }, /DATABASE_URL: /, 2],
    [{ ...database, JWT_SECRET: 'short' }, /JWT_SECRET: /, 2],
    [{ ...database, ...secret, JWT_JWKS_URL: 'https://a/k' }, /JWT_JWKS_URL: /, 2],
    [{ ...database, JWT_PUBLIC_KEY_FILE: '/nonexistent.pem' }, /FILE: there is no such/, 2],
    [{ ...database, PORT: String(port) }, new RegExp(`PORT: ${port} `), 2],
    [{ ...database, METRICS_PORT: String(port) }, new RegExp(`METRICS_PORT: ${port} `), 2],
    [{ ...database, HOST: '203.0.113.7' }, /HOST: 203\.0\.113\.7/, 2],
  ];
  const check = async ([env, message, code]: InvalidSettings): Promise<void> => {
    const service = startService(t, env);
    t.equal(await service.ended, code, message.source);
    t.match(service.stderr(), message);
    t.match(service.stderr(), /^[^\n]*\n$/, 'one line');
    t.notMatch(service.stderr(), /hunter2/);
    t.equal(service.stdout(), '');
  };
  await Promise.all(faults.map(check));
});
