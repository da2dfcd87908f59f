import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { get as httpsGet } from 'node:https';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { RawConnection, startListening, until } from '../support/http/sockets.ts';
import { programOnPath } from '../support/process/browser.ts';
import { makeFolder } from '../support/run/folders.ts';

/** Debian installs it in a folder that is not on the path of every account. */
const HAPROXY = programOnPath(['haproxy']) ?? ['/usr/sbin/haproxy'].find(existsSync);
const FILE = fileURLToPath(new URL('../../deploy/cluster/haproxy.cfg', import.meta.url));
type Test = Parameters<Parameters<typeof t.test>[0]>[0];

const PROXY = '127.0.0.9';
const CDN = '192.0.2.7';

/** Runs a test where the machine has HAProxy. */
function test(title: string, run: (test: Test) => Promise<void>): void {
  if (HAPROXY) void t.test(title, run);
  else t.comment(`${title}: not run, as this machine lacks HAProxy (apt-get install haproxy)`);
}

const service = await startListening(t, await seededDatabase(t), { TRUST_PROXY: '127.0.0.1' });

async function portOf(server: Server): Promise<number> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await portOf(server);
  server.close();
  await once(server, 'close');
  return port;
}

/** Starts HAProxy with the file of the cluster; all its nodes are the one service. */
async function balancer(test: Test, env: Readonly<Record<string, string>> = {}, bind = '') {
  const [port, primaryPort] = [await freePort(), await freePort()];
  // The path of a socket has a limit of about 100 characters.
  const folder = await makeFolder();
  test.teardown(folder.remove);
  const socket = join(folder.path, 'haproxy.sock');
  const node = `127.0.0.1:${service.port}`;
  const nowhere = `127.0.0.1:${await freePort()}`;
  const three = (name: string, value: string) =>
    Object.fromEntries([1, 2, 3].map((at) => [`${name}${at}`, value]));
  const all = {
    STATS_SOCKET: socket,
    LISTEN: `127.0.0.1:${port}${bind}`,
    PRIMARY_LISTEN: `127.0.0.1:${primaryPort}`,
    ...three('NODE', node),
    ...three('POSTGRES', nowhere),
    ...three('PATRONI', nowhere),
    ...env,
  };
  const checked = spawnSync(HAPROXY ?? '', ['-c', '-f', FILE], { env: all, encoding: 'utf8' });
  if (/WARNING|ALERT/.test(checked.stderr)) throw new Error(checked.stderr);
  const child = spawn(HAPROXY ?? '', ['-db', '-f', FILE], { env: all, stdio: 'ignore' });
  test.teardown(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  const show = async (command: string): Promise<string> => {
    const asked = connect(socket);
    asked.end(`${command}\n`);
    let text = '';
    for await (const part of asked.setEncoding('utf8')) text += part;
    return text;
  };
  const isUp = (backend: string, server: string) =>
    until(`${server} is up`, async () => {
      const lines = (await show('show stat').catch(() => '')).split('\n');
      return lines.some((line) => line.startsWith(`${backend},${server},`) && /,UP,/.test(line));
    });
  await isUp('nodes', 'node3');
  return { port, primaryPort, show, isUp };
}

/** A connection from an address of this machine. */
function connectionFrom(test: Test, port: number, from: string): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from });
  socket.on('error', () => {});
  test.teardown(() => socket.destroy());
  return socket;
}

/** Status of a request on a connection of its own; 0 if it has no answer within ten seconds. */
function statusFrom(test: Test, port: number, from: string, headers = ''): Promise<number> {
  const socket = connectionFrom(test, port, from);
  socket.setTimeout(10_000, () => socket.destroy());
  socket.write(`GET /v3/prices HTTP/1.1\r\nHost: t\r\nx-api-key: ${service.key}\r\n${headers}\r\n`);
  return new Promise((resolve) => {
    socket.once('data', (bytes) => {
      socket.destroy();
      resolve(Number(bytes.toString().split(' ')[1]));
    });
    socket.once('close', () => resolve(0));
  });
}

/** The address of the client of the last request, in the log of the service. */
async function clientOf(path: string): Promise<unknown> {
  const found = () =>
    service.lines
      .map((line) => JSON.parse(line))
      .findLast((line) => line.msg === 'request completed' && line.path === path);
  await until(`${path} is logged`, () => found() !== undefined);
  return found().remoteAddress;
}

test('HAProxy removes the address that a client names, and finds that of a proxy', async (t) => {
  const { port } = await balancer(t, { TRUSTED_PROXIES: `${PROXY} 192.0.2.0/24` });
  const plain = await balancer(t);
  let count = 0;
  const client = async (from: string, forwarded: readonly string[], to = port) => {
    count += 1;
    const path = `/v3/nowhere-${count}`;
    const socket = connectionFrom(t, to, from);
    const lines = forwarded.map((each) => `X-Forwarded-For: ${each}\r\n`).join('');
    socket.write(`GET ${path} HTTP/1.1\r\nHost: t\r\n${lines}\r\n`);
    await once(socket, 'data');
    return clientOf(path);
  };
  const spoofed = '203.0.113.66';
  const real = '198.51.100.5';
  t.equal(await client('127.0.0.5', []), '127.0.0.5');
  t.equal(await client('127.0.0.5', [spoofed]), '127.0.0.5', 'a client names an address');
  t.equal(await client('127.0.0.5', [`${spoofed}, ${CDN}`]), '127.0.0.5', 'or one of a proxy');
  t.equal(await client(PROXY, [real]), real, 'a proxy names its client');
  t.equal(await client(PROXY, ['2001:db8::5']), '2001:db8::5');
  t.equal(await client(PROXY, [`${spoofed}, ${real}`]), real, 'and its client named another');
  t.equal(await client(PROXY, [spoofed, real]), real, 'in a line of its own');
  t.equal(await client(PROXY, [`${spoofed}, ${real}, ${CDN}`]), real, 'two proxies');
  t.equal(await client(PROXY, [`${spoofed}, unknown`]), PROXY, 'no address');
  t.equal(await client(PROXY, []), PROXY);
  t.equal(await client(PROXY, [real], plain.port), PROXY, 'no proxy is trusted by default');
});

test('2,000 idle connections of one network leave room for other clients', async (t) => {
  const { port, show } = await balancer(t);
  const idle = Array.from({ length: 2_000 }, () => connectionFrom(t, port, '127.0.0.2'));
  // A rejected connection is reset, perhaps before it was seen as open.
  const isDecided = ({ pending, closed }: Socket) => closed || !pending;
  await until('each is open or closed', () => idle.every(isDecided));
  // Idle connections end after 15 seconds: a slow answer would not show that there was room.
  const statuses: number[] = [];
  while (statuses.length < 75 && !statuses.some((each) => each !== 200)) {
    statuses.push(await statusFrom(t, port, '127.0.0.3'));
  }
  t.same(statuses, Array(75).fill(200));
  t.match(await show('show table networks'), /key=::ffff:127\.0\.0\.2 .*conn_cur=100$/m);
});

test('the number of connections of a network is a setting, and proxies have none', async (t) => {
  const env = { NETWORK_CONNECTIONS_MAX: '3', TRUSTED_PROXIES: PROXY };
  const { port, show } = await balancer(t, env);
  const counted = () => show('show table networks');
  for (const [from, expected] of [
    ['127.0.0.2', 0],
    [PROXY, 200],
  ] as const) {
    const held = [1, 2, 3].map(() => connectionFrom(t, port, from));
    await Promise.all(held.map((each) => once(each, 'connect')));
    // The system accepts a connection before HAProxy does.
    const areCounted = async () => from === PROXY || /conn_cur=3$/m.test(await counted());
    await until('they are counted', areCounted);
    t.equal(await statusFrom(t, port, from), expected, from);
    for (const each of held) each.destroy();
    await until(`${from} is served again`, async () => (await statusFrom(t, port, from)) === 200);
  }
});

test('the addresses of a /64 of IPv6 are one network', async (t) => {
  const hasIpv6 = Object.values(networkInterfaces())
    .flat()
    .some((each) => each?.address === '::1');
  if (!hasIpv6) {
    t.comment('not run, as this machine has no IPv6');
    t.match(readFileSync(FILE, 'utf8'), 'track-sc0 src,ipmask(32,64)');
    return;
  }
  const second = await freePort();
  const { port, show } = await balancer(t, {}, `,[::1]:${second} v6only`);
  const socket = connect({ port: second, host: '::1' });
  t.teardown(() => socket.destroy());
  await once(socket, 'connect');
  await until('it is counted', async () => /key=:: /.test(await show('show table networks')));
  t.equal(await statusFrom(t, port, '127.0.0.3'), 200);
});

test('HAProxy serves TLS with HTTP/2 by options of its address', async (t) => {
  const folder = t.testdir();
  const [key, certificate] = [join(folder, 'prices.pem.key'), join(folder, 'prices.pem')];
  const made = spawnSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'],
      ...['-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', certificate],
    ],
    { encoding: 'utf8' },
  );
  t.equal(made.status, 0, made.stderr);
  const { port } = await balancer(t, {}, ` ssl crt ${certificate} alpn h2,http/1.1`);
  const options = {
    ...{ host: '127.0.0.1', servername: 'localhost', port, path: '/v3/prices' },
    ...{ ca: readFileSync(certificate), headers: { 'x-api-key': service.key } },
  };
  const [answer] = await once(httpsGet(options), 'response');
  answer.resume();
  t.equal(answer.statusCode, 200);
  t.equal(answer.headers['strict-transport-security'], 'max-age=31536000');
  const session = connectHttp2(`https://localhost:${port}`, {
    ...{ ca: readFileSync(certificate), host: '127.0.0.1', servername: 'localhost' },
  });
  t.teardown(() => session.destroy());
  const stream = session.request({ ':path': '/v3/prices', 'x-api-key': service.key });
  const [headers] = await once(stream, 'response');
  t.equal(headers[':status'], 200);
  const old = new RawConnection(t, port);
  old.socket.write('GET /v3/prices HTTP/1.1\r\nHost: t\r\n\r\n');
  t.notMatch(await old.ended(), /^HTTP/, 'nothing is answered without TLS');
});

test('writers reach the server that Patroni names, and leave one that lost the role', async (t) => {
  const primary = { at: 1 };
  const patroni = (at: number) =>
    createHttpServer((_, answer) => answer.writeHead(primary.at === at ? 200 : 503).end());
  const database = (at: number) =>
    createServer((socket) => socket.on('error', () => {}).write(String(at)));
  const servers: Server[] = [];
  t.teardown(() => {
    for (const each of servers) each.close();
  });
  const addressOf = async (server: Server) => {
    servers.push(server);
    return `127.0.0.1:${await portOf(server)}`;
  };
  const { primaryPort, isUp } = await balancer(t, {
    POSTGRES1: await addressOf(database(1)),
    POSTGRES2: await addressOf(database(2)),
    PATRONI1: await addressOf(patroni(1)),
    PATRONI2: await addressOf(patroni(2)),
  });
  await isUp('primary', 'postgres1');
  const first = connectionFrom(t, primaryPort, '127.0.0.1');
  t.equal(String((await once(first, 'data'))[0]), '1');
  primary.at = 2;
  first.resume();
  await until('the connection to the old primary ends', () => first.closed);
  await isUp('primary', 'postgres2');
  const second = connectionFrom(t, primaryPort, '127.0.0.1');
  t.equal(String((await once(second, 'data'))[0]), '2');
});
