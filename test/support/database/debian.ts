import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type t from 'tap';
import { accountOptions, environment } from '../../../src/db/embedded/files.ts';
import { chooseInstallation } from '../../../src/db/embedded/installation.ts';
import { programOnPath } from '../process/browser.ts';
import { makeFolder } from '../run/folders.ts';

/*
 * Programs of Debian that companies run beside the service: PostgreSQL 15, PgBouncer and OpenSSL.
 */

type Test = Pick<typeof t, 'teardown'>;

const run = promisify(execFile);

const FOLDER = '/usr/lib/postgresql/15/bin';

/** The folder of PostgreSQL 15; null if it is not installed. */
export const POSTGRES_15 = existsSync(join(FOLDER, 'postgres')) ? FOLDER : null;

const found = (name: string): string | null =>
  programOnPath([name]) ?? [`/usr/sbin/${name}`].find(existsSync) ?? null;

export const PGBOUNCER = found('pgbouncer');
export const OPENSSL = found('openssl');

/** Runs a test where the machine has the packages, and otherwise says which it lacks. */
export function testWith(
  test: typeof t,
  title: string,
  needed: Readonly<Record<string, string | null>>,
  run: (test: Parameters<Parameters<typeof t.test>[0]>[0]) => Promise<void>,
): void {
  const missing = Object.keys(needed).filter((each) => needed[each] === null);
  if (missing.length === 0) void test.test(title, run);
  else test.comment(`${title}: not run (apt-get install ${missing.join(' ')})`);
}

/** A port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** A folder that the account of PostgreSQL owns, and the account as options of a process. */
async function accountFolder(test: Test) {
  const home = await makeFolder();
  test.teardown(home.remove);
  const { account } = await chooseInstallation(join(home.path, 'data'));
  const path = join(home.path, 'files');
  await mkdir(path, { mode: 0o700 });
  const own = async (file: string): Promise<void> => {
    if (account) await chown(file, account.uid, account.gid);
  };
  await own(path);
  return { path, own, options: { env: environment(), ...accountOptions(account) } };
}

/**
 * Starts PostgreSQL 15 in a folder of its own, which also has its socket.
 * @returns the address of its database `postgres`
 */
export async function debianServer(
  test: Test,
  settings: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { path, own, options } = await accountFolder(test);
  const [data, password] = [join(path, 'data'), randomBytes(12).toString('hex')];
  const secret = join(path, 'password');
  await writeFile(secret, password, { mode: 0o600 });
  await own(secret);
  const login = ['-U', 'prices', '-A', 'scram-sha-256', `--pwfile=${secret}`];
  await run(join(FOLDER, 'initdb'), ['-D', data, '-N', '-E', 'UTF8', ...login], {
    ...options,
    cwd: path,
  });
  const port = await freePort();
  const all = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: path,
    fsync: 'off',
    ...settings,
  };
  const server = spawn(
    join(FOLDER, 'postgres'),
    ['-D', data, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    { ...options, cwd: path, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  test.teardown(() => stop(server, 'SIGINT'));
  await started(server, /database system is ready to accept connections/);
  return `postgres://prices:${password}@127.0.0.1:${port}/postgres`;
}

async function stop(program: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (program.exitCode !== null || program.signalCode !== null) return;
  program.kill(signal);
  await once(program, 'exit');
}

/** Waits until a program logs a text. @throws Error with the log if it ends before that */
async function started(program: ChildProcess, text: RegExp): Promise<void> {
  let log = '';
  await new Promise<void>((resolve, reject) => {
    program.stderr?.setEncoding('utf8').on('data', (part: string) => {
      log += part;
      if (text.test(log)) resolve();
    });
    program.once('exit', () => reject(new Error(`the program ended:\n${log}`)));
  });
}

/**
 * Starts PgBouncer before a server, for the accounts of a list.
 * @param settings further ones of PgBouncer, which may set its port
 * @returns its address
 */
export async function pooled(
  test: Test,
  url: string,
  mode: 'session' | 'transaction',
  accounts: Readonly<Record<string, string>>,
  settings: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { path, own, options } = await accountFolder(test);
  const { hostname, port: server } = new URL(url);
  const { listen_port: port = String(await freePort()), ...further } = settings;
  const lines = Object.entries(further).map(([name, value]) => `${name} = ${value}\n`);
  const users = Object.entries(accounts).map(([name, password]) => `"${name}" "${password}"\n`);
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(path, name), text, { mode: 0o600 });
    await own(join(path, name));
    return join(path, name);
  };
  const ini = await file(
    'pgbouncer.ini',
    `[databases]
* = host=${hostname} port=${server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${await file('users.txt', users.join(''))}
pool_mode = ${mode}
${lines.join('')}`,
  );
  const program = spawn(PGBOUNCER ?? '', [ini], { ...options, cwd: path, stdio: 'pipe' });
  test.teardown(() => stop(program, 'SIGKILL'));
  await started(program, /process up/);
  const address = new URL(url);
  address.port = port;
  return address.href;
}

/** A CA, and the certificate of a server with the names `localhost` and 127.0.0.1. */
interface Certificates {
  /** The file of the CA. */
  readonly ca: string;
  /** Settings of PostgreSQL. */
  readonly settings: Readonly<Record<string, string>>;
}

/** Makes a CA and the certificate of a server, as a company with an own CA has them. */
export async function makeCertificates(test: Test): Promise<Certificates> {
  const { path, own } = await accountFolder(test);
  // Clients read the certificate of the CA.
  await chmod(path, 0o755);
  const openssl = (...args: string[]) => run(OPENSSL ?? '', args, { cwd: path });
  const request = ['req', '-newkey', 'rsa:2048', '-nodes', '-keyout'];
  await openssl(...request, 'ca.key', '-x509', '-days', '2', '-subj', '/CN=own', '-out', 'ca.pem');
  await openssl(...request, 'server.key', '-subj', '/CN=server', '-out', 'server.csr');
  await writeFile(join(path, 'names'), 'subjectAltName=DNS:localhost,IP:127.0.0.1');
  const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names'];
  await openssl(
    'x509',
    '-req',
    '-in',
    'server.csr',
    '-days',
    '2',
    ...signing,
    '-out',
    'server.pem',
  );
  const at = (name: string): string => join(path, name);
  await chmod(at('server.key'), 0o600);
  await own(at('server.key'));
  return {
    ca: at('ca.pem'),
    settings: { ssl: 'on', ssl_cert_file: at('server.pem'), ssl_key_file: at('server.key') },
  };
}
