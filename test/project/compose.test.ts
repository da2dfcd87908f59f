import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { parse } from 'yaml';

interface Container {
  readonly image?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly cap_add?: readonly string[];
  readonly command?: string | readonly string[];
  readonly tmpfs?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly logging?: { readonly options?: Readonly<Record<string, string>> };
  readonly networks?: readonly string[] | Readonly<Record<string, unknown>>;
  readonly dns_opt?: readonly string[];
  readonly network_mode?: string;
  readonly volumes?: readonly string[];
}

const CLUSTER = new URL('../../deploy/cluster/', import.meta.url);
const text = readFileSync(new URL('../../docker-compose.yml', import.meta.url), 'utf8');
const compose = parse(text, { merge: true }) as {
  readonly services: Readonly<Record<string, Container>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean } | null>>;
};
const containers = Object.entries(compose.services);

const networksOf = ({ networks = [] }: Container): readonly string[] =>
  Array.isArray(networks) ? networks : Object.keys(networks);

t.test('docker-compose.yml has no password, and none by default', async (t) => {
  for (const [name, { environment = {} }] of containers) {
    for (const [variable, value] of Object.entries(environment)) {
      t.notMatch(
        value,
        /:\/\/[^@/]*:[^@/]*@/,
        `${name}: ${variable} has no password in an address`,
      );
      if (!/PASSWORD|SECRET|TOKEN/.test(variable)) continue;
      const isFile = /_FILE$/.test(variable) && value.startsWith('/secrets/');
      t.ok(isFile || value === `\${${variable}:-}`, `${name}: ${variable}`);
    }
  }
});

t.test('each container reads only the secrets that it needs, and one writes them', async (t) => {
  const secrets = containers.map(([name, { volumes = [] }]) => [
    name,
    volumes.filter((each) => each.includes('-secret:')).map((each) => each.split(':')),
  ]) as [string, string[][]][];
  const cluster = ['replication', 'patroni', 'etcd'];
  const accounts = ['service', 'usage', 'keys', 'loader', 'webhooks'];
  const all = ['database', ...accounts, 'grafana', ...cluster];
  const three = (name: string, of: readonly string[]) =>
    Object.fromEntries([1, 2, 3].map((at) => [`${name}${at}`, of]));
  const needed: Readonly<Record<string, readonly string[]>> = {
    secrets: all,
    database: ['database'],
    setup: ['database', ...accounts],
    service: ['service', 'usage'],
    keys: ['keys'],
    webhooks: ['keys'],
    'webhook-sender': ['webhooks'],
    load: ['loader'],
    grafana: ['grafana'],
    'cluster-setup': ['database', ...accounts],
    'cluster-keys': ['keys'],
    'cluster-webhooks': ['keys'],
    'cluster-webhook-sender': ['webhooks'],
    'cluster-load': ['loader'],
    etcd: ['etcd'],
    ...three('postgres', ['database', ...cluster]),
    ...three('node', ['service', 'usage']),
  };
  for (const [name, mounted] of secrets) {
    t.same(
      mounted.map(([volume]) => volume),
      (needed[name] ?? []).map((each) => `${each}-secret`),
      name,
    );
    if (name !== 'secrets')
      t.ok(
        mounted.every(([, , mode]) => mode === 'ro'),
        `${name} reads`,
      );
  }
});

t.test('the log of each container has a limit', async (t) => {
  for (const [name, { logging }] of containers) {
    t.match(logging?.options, { 'max-size': /^\d+m$/, 'max-file': /^\d+$/ }, name);
  }
});

t.test('the database and the monitoring are on networks apart', async (t) => {
  const on = (network: string): string[] =>
    containers.filter(([, each]) => networksOf(each).includes(network)).map(([name]) => name);
  const commands = ['keys', 'webhooks', 'load'];
  t.same(on('database'), ['database', 'setup', 'service', 'webhook-sender', ...commands]);
  const nodes = ['node1', 'node2', 'node3'];
  t.same(on('monitoring'), ['service', 'prometheus', 'grafana', ...nodes]);
  const senders = ['webhook-sender', 'cluster-webhook-sender'];
  const outside = ['service', senders[0], 'load', senders[1], 'cluster-load', 'haproxy'];
  t.same(on('front'), outside);
  const servers = ['postgres1', 'postgres2', 'postgres3'];
  const others = ['cluster-keys', 'cluster-webhooks', 'cluster-load', 'haproxy'];
  t.same(on('cluster'), [...servers, 'cluster-setup', ...nodes, senders[1], ...others]);
  t.same(on('patroni'), [...servers, 'haproxy'], "Patroni's REST API");
  t.same(on('consensus'), ['etcd', ...servers]);
  t.same(compose.services['database']?.networks, ['database']);
  t.same(compose.networks['database'], { internal: true });
  for (const network of ['cluster', 'patroni', 'consensus']) {
    t.same(compose.networks[network], { internal: true });
  }
  for (const [name, { networks, network_mode: mode }] of containers) {
    t.ok(networks || mode === 'none', `${name} is on no other network`);
  }
  for (const server of servers) {
    const alias = server.replace('postgres', 'patroni');
    t.match(compose.services[server]?.networks, { patroni: { aliases: [alias] } });
    t.match(compose.services['haproxy']?.environment, { [alias.toUpperCase()]: `${alias}:8008` });
  }
});

t.test("Patroni's REST API listens on its own network, with a password as etcd", async (t) => {
  const script = readFileSync(new URL('with-passwords.sh', CLUSTER), 'utf8');
  t.match(script, /^rest=patroni\$\{name#postgres\}:8008$/m);
  t.match(script, /PATRONI_RESTAPI_LISTEN="\$rest"/);
  for (const [account, secret] of [
    ['RESTAPI', 'patroni'],
    ['ETCD3', 'etcd'],
    ['SUPERUSER', 'database'],
    ['REPLICATION', 'replication'],
  ]) {
    t.match(script, `PATRONI_${account}_PASSWORD=$(cat /secrets/${secret}/password)`);
    for (const server of ['postgres1', 'postgres2', 'postgres3']) {
      t.match(compose.services[server]?.environment, { [`PATRONI_${account}_USERNAME`]: /^\w+$/ });
    }
  }
  t.match(compose.services['etcd'], { command: ['/app/deploy/cluster/etcd.sh'] });
  const etcd = readFileSync(new URL('etcd.sh', CLUSTER), 'utf8');
  const [first = '', later = ''] = etcd.split('etcdctl auth enable');
  t.notMatch(first, '0.0.0.0', 'etcd has its password before others reach it');
  t.match(later, /^exec etcd --listen-client-urls http:\/\/0\.0\.0\.0:2379 /m);
});

t.test('HAProxy uses the name of a node for two servers of a backend', async (t) => {
  const file = readFileSync(new URL('haproxy.cfg', CLUSTER), 'utf8');
  const nodes = file.split(/^backend /m).find((each) => each.startsWith('nodes\n')) ?? '';
  const servers = [...nodes.matchAll(/^ +server (\w+) "(\$\{NODE\d\})"/gm)];
  const addresses = servers.map(([, , address = '']) => address);
  t.equal(addresses.length, 6);
  t.equal(new Set(addresses).size, 3);
  // HAProxy up to 2.9 forgets this option at the next such line.
  const defaults = [...nodes.matchAll(/^ +default-server (.+)$/gm)];
  t.match(defaults, [{ 1: /resolve-opts allow-dup-ip/ }]);
  t.equal(defaults.length, 1);
});

t.test('the servers of the cluster do not wait long for the name of a stopped one', (t) => {
  const waiting = containers.filter(([, each]) => each.dns_opt !== undefined).map(([name]) => name);
  t.same(waiting, ['postgres1', 'postgres2', 'postgres3', 'node1', 'node2', 'node3']);
  t.end();
});

t.test('every container of the program is read-only and without rights', (t) => {
  const images = ['commodity-prices', 'commodity-prices-cluster'];
  const own = containers.filter(([, { image = '' }]) => images.includes(image));
  t.ok(own.length >= 16);
  for (const [name, { read_only: isReadOnly, cap_drop: dropped, tmpfs, cap_add: added }] of own) {
    t.same([isReadOnly, dropped, tmpfs?.[0]], [true, ['ALL'], '/tmp'], name);
    t.same(added, undefined, `${name} needs no capability`);
  }
  const dockerfile = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8');
  t.match(dockerfile, /^FROM node:\d+\.\d+-slim$/m, 'the base image has a minor version');
  t.match(dockerfile, /^ENTRYPOINT .*cli\/main\.ts"\]\nCMD \["serve"\]$/m);
  t.match(dockerfile, /^USER node$/m);
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const { version, license } = JSON.parse(manifest);
  t.match(dockerfile, `image.version="${version}"`);
  t.match(dockerfile, `image.licenses="${license}"`);
  t.end();
});

t.test('only SAMPLE_DATA=true seeds sample prices and sample rates', async (t) => {
  for (const name of ['setup', 'cluster-setup']) {
    const { command = [], environment } = compose.services[name] as Container;
    t.equal(environment?.['SAMPLE_DATA'], `\${SAMPLE_DATA:-}`, name);
    const script = command.at(-1)?.replaceAll('$$', '$') ?? '';
    const seeding = script.slice(script.indexOf('[ "$SAMPLE_DATA"'));
    const seededWith = (value: string): string =>
      execFileSync('sh', ['-ec', seeding.replace('node src/cli/main.ts', 'echo')], {
        env: { ...process.env, SAMPLE_DATA: value },
        encoding: 'utf8',
      }).trim();
    t.equal(seededWith(''), 'db seed --reference', name);
    t.equal(seededWith('false'), 'db seed --reference', name);
    t.equal(seededWith('true'), 'db seed', name);
  }
});
