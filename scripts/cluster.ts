import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { NODE_FLAGS } from '../src/std/program.ts';

/*
 * A cluster on this machine, from Debian packages: etcd, three PostgreSQL servers under Patroni,
 * three nodes and HAProxy, with the files of deploy/cluster. `node scripts/cluster.ts` runs it until
 * Ctrl-C, as root, since the servers run as the account postgres.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FILES = join(ROOT, 'deploy/cluster');
const PACKAGES = ['etcd-server', 'haproxy', 'patroni', 'postgresql'];
const BINARIES = ['etcd', 'haproxy', 'patroni'];
const PASSWORD = 'only-on-this-machine';
const REST_ACCOUNT = 'patroni';
const COUNT = 3;

type Env = Readonly<Record<string, string>>;

/** Waits until a condition holds. @throws Error after the time */
export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  forMs = 120_000,
): Promise<void> {
  const end = performance.now() + forMs;
  while (!(await Promise.resolve(holds()).catch(() => false))) {
    if (performance.now() > end) throw new Error(`it took longer than ${forMs} ms until ${what}`);
    await pause(50);
  }
}

/** Installs the Debian packages that are missing. */
export function installPackages(say: (text: string) => void): void {
  const onPath = (name: string): boolean =>
    ['/usr/bin', '/usr/sbin'].some((folder) => existsSync(join(folder, name)));
  if (BINARIES.every(onPath) && existsSync('/usr/lib/postgresql')) return;
  say(`installing ${PACKAGES.join(', ')}`);
  // The packages must not start servers of their own.
  const policy = '/usr/sbin/policy-rc.d';
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const script = `set -e
    [ -e ${policy} ] || { printf '#!/bin/sh\\nexit 101\\n' > ${policy}; chmod +x ${policy};
      trap 'rm -f ${policy}' EXIT; }
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends ${PACKAGES.join(' ')}`;
  execFileSync('sh', ['-c', script], { env, stdio: ['ignore', 'ignore', 'inherit'] });
}

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
};

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
};

/** A program of the cluster, which can be ended and started again. */
class Program {
  child: ChildProcess | null = null;
  readonly name: string;
  readonly #start: () => ChildProcess;

  constructor(name: string, start: () => ChildProcess) {
    this.name = name;
    this.#start = start;
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  start(): void {
    this.child = this.#start();
  }

  /** Sends a signal, and waits for the end. */
  async end(name: NodeJS.Signals, forMs = 30_000): Promise<void> {
    const { child } = this;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(name);
    const isOver = await Promise.race([ended, pause(forMs, null, { ref: false })]);
    if (isOver !== null) return;
    child.kill('SIGKILL');
    await ended;
  }
}

/** A node of the service. */
export interface Node {
  readonly name: string;
  readonly port: number;
  readonly metricsPort: number;
  readonly program: Program;
  /** Folder of its program. A change applies at the next start. */
  folder: string;
  isReady(): Promise<boolean>;
}

/** A PostgreSQL server and its Patroni. */
export interface Server {
  readonly name: string;
  readonly port: number;
  readonly restPort: number;
  /** Address with the superuser. */
  readonly url: string;
  readonly patroni: Program;
  /** Kills PostgreSQL at once; with `withPatroni` also Patroni. */
  kill(withPatroni: boolean): Promise<void>;
  /** The role that Patroni reports: `primary`, `replica`; null without an answer. */
  role(): Promise<string | null>;
  /** True if Patroni has recorded the server as the synchronous standby. */
  isSynchronous(): Promise<boolean>;
  /** Runs a statement on a connection of its own. */
  ask(text: string, values?: readonly unknown[], database?: string): Promise<pg.QueryResult>;
}

export interface LocalCluster {
  readonly folder: string;
  /** Port of HAProxy for requests. */
  readonly port: number;
  /** Address of the primary through HAProxy, with the superuser. */
  readonly primaryUrl: string;
  /** The same with the account that loads. */
  readonly loaderUrl: string;
  readonly nodes: readonly Node[];
  readonly servers: readonly Server[];
  readonly balancer: Program;
  /** The server that is the primary now; waits for one. */
  primary(): Promise<Server>;
  /** Waits until two standbys stream, and Patroni may promote one of them. */
  whole(): Promise<void>;
  /** Waits until HAProxy uses all nodes. */
  balanced(): Promise<void>;
  /** Makes HAProxy send new requests only to some nodes. */
  sendOnlyTo(nodes: readonly Node[]): Promise<void>;
  /** Changes settings of Patroni. */
  configure(change: object): Promise<void>;
  stop(): Promise<void>;
}

const accountOf = (name: string): { uid: number; gid: number } => {
  const id = (flag: string): number =>
    Number(execFileSync('id', [flag, name], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
};

/** Folder of the programs of the newest PostgreSQL that Debian has installed. */
function binariesOf(): string {
  const found = execFileSync('sh', ['-c', 'ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1'], {
    encoding: 'utf8',
  });
  return found.trim();
}

/** Starts a cluster. @param env settings of the nodes, added to those of this script */
export async function startCluster(
  env: Env = {},
  say: (text: string) => void = () => {},
): Promise<LocalCluster> {
  installPackages(say);
  const { uid, gid } = accountOf('postgres');
  const folder = await mkdtemp(join(tmpdir(), 'prices-cluster-'));
  await chmod(folder, 0o755);
  const all: Program[] = [];
  const program = (
    name: string,
    command: string,
    args: () => readonly string[],
    more: () => Env,
    account: { readonly uid?: number; readonly gid?: number; cwd?: () => string } = {},
  ): Program => {
    const { cwd = () => folder, ...ids } = account;
    const made = new Program(name, () => {
      const log = openSync(join(folder, `${name}.log`), 'a');
      return spawn(command, args(), {
        cwd: cwd(),
        env: { PATH: process.env['PATH'] ?? '', LANG: 'C.UTF-8', ...more() },
        stdio: ['ignore', log, log],
        ...ids,
      });
    });
    all.push(made);
    return made;
  };
  const ports = await Promise.all(Array.from({ length: 4 + 5 * COUNT }, freePort));
  const takePort = (): number => ports.pop() ?? 0;

  const [etcdPort, etcdPeerPort] = [takePort(), takePort()];
  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  const etcdPeerUrl = `http://127.0.0.1:${etcdPeerPort}`;
  const etcd = program(
    'etcd',
    'etcd',
    () => [
      ...['--name', 'etcd1', '--data-dir', join(folder, 'etcd'), '--unsafe-no-fsync'],
      ...['--listen-client-urls', etcdUrl, '--advertise-client-urls', etcdUrl],
      ...['--listen-peer-urls', etcdPeerUrl, '--initial-advertise-peer-urls', etcdPeerUrl],
      ...['--initial-cluster', `etcd1=${etcdPeerUrl}`],
    ],
    () => ({}),
  );

  const servers = Array.from({ length: COUNT }, (_, at): Server => {
    const name = `postgres${at + 1}`;
    const home = join(folder, name);
    const [port, restPort] = [takePort(), takePort()];
    const url = `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/prices`;
    const patroni = program(
      name,
      'patroni',
      () => [join(FILES, 'patroni.yml')],
      () => ({
        PATRONI_NAME: name,
        PATRONI_ETCD3_HOSTS: `127.0.0.1:${etcdPort}`,
        PATRONI_RESTAPI_LISTEN: `127.0.0.1:${restPort}`,
        PATRONI_RESTAPI_CONNECT_ADDRESS: `127.0.0.1:${restPort}`,
        PATRONI_RESTAPI_USERNAME: REST_ACCOUNT,
        PATRONI_RESTAPI_PASSWORD: PASSWORD,
        PATRONI_POSTGRESQL_LISTEN: `127.0.0.1:${port}`,
        PATRONI_POSTGRESQL_CONNECT_ADDRESS: `127.0.0.1:${port}`,
        PATRONI_POSTGRESQL_DATA_DIR: join(home, 'data'),
        PATRONI_POSTGRESQL_PGPASS: join(home, 'pgpass'),
        PATRONI_POSTGRESQL_BIN_DIR: binariesOf(),
        PATRONI_SUPERUSER_USERNAME: 'postgres',
        PATRONI_SUPERUSER_PASSWORD: PASSWORD,
        PATRONI_REPLICATION_USERNAME: 'replicator',
        PATRONI_REPLICATION_PASSWORD: PASSWORD,
      }),
      { uid, gid, cwd: () => home },
    );
    const rest = async (): Promise<{ role?: string }> => {
      const answer = await fetch(`http://127.0.0.1:${restPort}/patroni`, {
        signal: AbortSignal.timeout(2_000),
      });
      return (await answer.json()) as { role?: string };
    };
    return {
      name,
      port,
      restPort,
      url,
      patroni,
      kill: async (withPatroni) => {
        const file = await readFile(join(home, 'data/postmaster.pid'), 'utf8').catch(() => '');
        const pid = Number(file.split('\n')[0]);
        if (withPatroni) await patroni.end('SIGKILL');
        if (pid > 0) {
          signal(pid, 'SIGKILL');
          await until(`${name} is gone`, () => !isAlive(pid), 10_000);
        }
      },
      role: () =>
        rest().then(
          ({ role }) => (role === 'master' ? 'primary' : (role ?? null)),
          () => null,
        ),
      isSynchronous: () =>
        fetch(`http://127.0.0.1:${restPort}/synchronous`, { signal: AbortSignal.timeout(2_000) })
          .then(({ ok }) => ok)
          .catch(() => false),
      ask: async (text, values = [], database = 'prices') => {
        const client = new pg.Client({
          connectionString: url.replace(/prices$/, database),
          connectionTimeoutMillis: 5_000,
        });
        client.on('error', () => {});
        await client.connect();
        try {
          return await client.query(text, [...values]);
        } finally {
          await client.end().catch(() => {});
        }
      },
    };
  });
  for (const { name } of servers) {
    await mkdir(join(folder, name), { mode: 0o700 });
    await chown(join(folder, name), uid, gid);
  }

  const primary = async (): Promise<Server> => {
    let found: Server | undefined;
    await until('there is a primary', async () => {
      const roles = await Promise.all(servers.map((each) => each.role()));
      found = servers[roles.indexOf('primary')];
      if (found === undefined) return false;
      const { rows } = await found.ask('select pg_is_in_recovery() as "is"', [], 'postgres');
      return !rows[0].is;
    });
    return found as Server;
  };
  const whole = (): Promise<void> =>
    until('two standbys stream', async () => {
      const { rows } = await (await primary()).ask(
        `select count(*)::int as streaming, count(*) filter (where sync_state = 'sync')::int as sync
         from pg_stat_replication where state = 'streaming'`,
      );
      // Patroni promotes a standby only once it has recorded it as synchronous, seconds later.
      const recorded = await Promise.all(servers.map((each) => each.isSynchronous()));
      return rows[0].streaming === COUNT - 1 && rows[0].sync === 1 && recorded.includes(true);
    });

  const [port, primaryPort] = [takePort(), takePort()];
  const addressAs = (account: string): string =>
    `postgres://${account}:${PASSWORD}@127.0.0.1:${primaryPort}/prices`;
  const nodes = servers.map(({ port: serverPort }, at): Node => {
    const name = `node${at + 1}`;
    const [nodePort, metricsPort] = [takePort(), takePort()];
    const node: Node = {
      name,
      port: nodePort,
      metricsPort,
      folder: ROOT,
      program: program(
        name,
        process.execPath,
        () => [...NODE_FLAGS, 'src/server.ts'],
        () => ({
          PORT: String(nodePort),
          METRICS_PORT: String(metricsPort),
          // The server beside the node, and the primary through HAProxy.
          DATABASE_URL: `postgres://prices_service:${PASSWORD}@127.0.0.1:${serverPort}/prices`,
          USAGE_DATABASE_URL: addressAs('prices_usage'),
          TRUST_PROXY: '127.0.0.1',
          STOP_NOTICE_MS: '1000',
          // Longer than a failover, during which no standby is current.
          KEYS_LAG_MS_MAX: '60000',
          KEEP_ALIVE_TIMEOUT_MS: '65000',
          ...env,
        }),
        { cwd: () => node.folder },
      ),
      isReady: async () => (await fetch(`http://127.0.0.1:${nodePort}/ready`)).ok,
    };
    return node;
  });

  const sockets = join(folder, 'haproxy.sock');
  const balancer = program(
    'haproxy',
    'haproxy',
    () => ['-db', '-f', join(FILES, 'haproxy.cfg')],
    () => ({
      STATS_SOCKET: sockets,
      LISTEN: `127.0.0.1:${port}`,
      PRIMARY_LISTEN: `127.0.0.1:${primaryPort}`,
      ...Object.fromEntries(
        servers.flatMap((each, at) => [
          [`NODE${at + 1}`, `127.0.0.1:${nodes[at]?.port}`],
          [`POSTGRES${at + 1}`, `127.0.0.1:${each.port}`],
          [`PATRONI${at + 1}`, `127.0.0.1:${each.restPort}`],
        ]),
      ),
    }),
  );
  const balanced = (): Promise<void> =>
    until('HAProxy uses all nodes', async () => {
      const text = await haproxyAsk(sockets, 'show stat\n');
      const lines = text.split('\n').filter((line) => /^nodes,node\d,/.test(line));
      return lines.length === COUNT && lines.every((line) => /,UP,/.test(line));
    });

  const sendOnlyTo = async (some: readonly Node[]): Promise<void> => {
    for (const node of nodes) {
      const state = some.includes(node) ? 'ready' : 'drain';
      await haproxyAsk(sockets, `set server nodes/${node.name} state ${state}\n`);
    }
  };

  const prices = (url: string, args: readonly string[], input = ''): string =>
    execFileSync(process.execPath, ['src/cli/main.ts', ...args], {
      cwd: ROOT,
      env: { ...process.env, DATABASE_URL: url },
      input,
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'inherit'],
    });

  let isStopped = false;
  const stop = async (): Promise<void> => {
    if (isStopped) return;
    isStopped = true;
    await Promise.all(
      [balancer, ...nodes.map((each) => each.program)].map((it) => it.end('SIGTERM')),
    );
    // Otherwise Patroni would treat the end of etcd or of another server as a fault.
    await Promise.all(servers.map((each) => each.kill(true)));
    await etcd.end('SIGKILL');
    if (process.env['KEEP_CLUSTER'] === undefined)
      await rm(folder, { recursive: true, force: true });
  };
  const configure = async (change: object): Promise<void> => {
    const { restPort } = await primary();
    const answer = await fetch(`http://127.0.0.1:${restPort}/config`, {
      method: 'PATCH',
      headers: {
        authorization: `Basic ${Buffer.from(`${REST_ACCOUNT}:${PASSWORD}`).toString('base64')}`,
      },
      body: JSON.stringify(change),
    });
    if (!answer.ok) throw new Error(`Patroni answers ${answer.status} ${await answer.text()}`);
  };
  const cluster: LocalCluster = {
    folder,
    port,
    primaryUrl: addressAs('postgres'),
    loaderUrl: addressAs('prices_loader'),
    nodes,
    servers,
    balancer,
    primary,
    whole,
    balanced,
    sendOnlyTo,
    configure,
    stop,
  };
  try {
    say('starting etcd, and PostgreSQL under Patroni');
    etcd.start();
    servers[0]?.patroni.start();
    const first = await primary();
    for (const each of servers.slice(1)) each.patroni.start();
    await first.ask('create database prices', [], 'postgres');
    say('migrating and seeding');
    prices(first.url, ['db', 'migrate']);
    const passwords = ['service', 'usage', 'loader', 'keys', 'migrator']
      .map((account) => `${account} ${PASSWORD}\n`)
      .join('');
    prices(first.url, ['db', 'roles', '--passwords'], passwords);
    // Shows a node how far its standby is behind its primary, not only behind what it has received.
    await first.ask('grant pg_read_all_stats to prices_service');
    prices(first.url, ['db', 'seed']);
    await whole();
    say('starting the nodes and HAProxy');
    for (const { program: each } of nodes) each.start();
    for (const each of nodes) await until(`${each.name} is ready`, each.isReady);
    balancer.start();
    await balanced();
    return cluster;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Sends a command to the socket of HAProxy. */
async function haproxyAsk(path: string, command: string): Promise<string> {
  const { connect } = await import('node:net');
  const socket = connect(path);
  socket.end(command);
  let text = '';
  for await (const part of socket.setEncoding('utf8')) text += part;
  return text;
}

const HELP = `node scripts/cluster.ts [-h | --help]

Runs a cluster on this machine until Ctrl-C, as root: etcd, three PostgreSQL servers under Patroni,
three nodes and HAProxy. Installs missing Debian packages: ${PACKAGES.join(', ')}.
`;

if (import.meta.main) {
  const { values } = parseArgs({ options: { help: { type: 'boolean', short: 'h' } } });
  if (values.help) {
    process.stdout.write(HELP);
    process.exit(0);
  }
  const say = (text: string): void => console.log(text);
  const cluster = await startCluster({}, say);
  const create = ['keys', 'create', '--name', 'try', '--scope', 'prices:*'];
  execFileSync(process.execPath, [join(ROOT, 'src/cli/main.ts'), ...create], {
    env: { ...process.env, DATABASE_URL: cluster.primaryUrl },
    stdio: 'inherit',
  });
  say(`HAProxy answers at http://127.0.0.1:${cluster.port}; logs are in ${cluster.folder}`);
  say(`the primary is at ${cluster.primaryUrl}; Ctrl-C stops all`);
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => void cluster.stop().then(() => process.exit(0)));
  }
  await new Promise(() => {});
}
