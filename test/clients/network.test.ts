import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Server } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { blocksOf, ROOT } from '../support/docs/blocks.ts';
import { assistant } from '../support/process/assistant.ts';
import { PLAIN_ENV } from '../support/process/plain-env.ts';
import { python } from '../support/process/python.ts';
import { makeFolder } from '../support/run/folders.ts';

const CLIENT = fileURLToPath(new URL('../../clients/typescript/client.js', import.meta.url));

const answer: RequestListener = (_request, reply) => {
  reply.setHeader('content-type', 'application/json');
  reply.end('{"data":[{"slug":"nickel"}]}');
};

/** Listens on a free port of this machine until the end of the test. */
async function portOf(test: Pick<typeof t, 'teardown'>, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** Reads the markets by each client with this environment. Returns their slugs, or the error. */
async function markets(test: Pick<typeof t, 'teardown'>, env: Record<string, string>) {
  const more = { ...env, COMMODITY_PRICES_KEY: 'key', no_proxy: '', NO_PROXY: '' };
  const program = `
    const { createClient } = await import(${JSON.stringify(CLIENT)});
    const list = createClient({ timeoutMs: 10_000 }).markets();
    console.log(await list.then(([each]) => each.slug, (error) => error.message));`;
  const words = ['-u', 'NODE_OPTIONS', process.execPath, '--input-type=module', '--eval', program];
  const node = await promisify(execFile)('env', words, { env: { ...PLAIN_ENV, ...more } });
  const by = await assistant(test, more);
  const { data } = await by.ask('list_markets');
  const { stdout } = await python(
    `import commodity_prices as cp
try: print(cp.Client(timeout=20).markets()[0]["slug"])
except cp.PricesError as error: print(error)`,
    more,
  );
  return [node.stdout.trim(), data.markets?.[0].slug ?? data.error.message, stdout.trim()];
}

t.test('each client goes through the proxy of its environment', async (t) => {
  const port = await portOf(t, createServer(answer));
  const asked: string[] = [];
  // Node asks for a tunnel also over http, and Python sends the whole address.
  const proxy = createServer((request, reply) => {
    asked.push(String(request.url));
    answer(request, reply);
  }).on('connect', ({ url }, socket) => {
    asked.push(String(url));
    const target = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      target.pipe(socket).pipe(target);
    });
  });
  const url = `http://127.0.0.1:${await portOf(t, proxy)}`;
  const env = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: url, http_proxy: url };
  const slugs = await markets(t, { ...env, COMMODITY_PRICES_URL: 'http://prices.invalid' });
  t.same(slugs, ['nickel', 'nickel', 'nickel']);
  const tunnel = 'prices.invalid:80';
  t.same(asked, [tunnel, tunnel, 'http://prices.invalid/v3/prices']);
});

/** Makes a certificate of 127.0.0.1 that no known CA has signed. */
async function selfSigned(folder: string) {
  const [key, cert] = ['key.pem', 'cert.pem'].map((name) => join(folder, name)) as [string, string];
  const made = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const names = ['-subj', '/CN=prices', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2'];
  await promisify(execFile)('openssl', ['req', ...made, ...names, '-keyout', key, '-out', cert]);
  return { cert, tls: { key: readFileSync(key), cert: readFileSync(cert) } };
}

t.test('the TypeScript client goes by the recipe through a proxy, to a private CA', async (t) => {
  const folder = await makeFolder();
  t.teardown(folder.remove);
  const { cert, tls } = await selfSigned(folder.path);
  const port = await portOf(t, createTlsServer(tls, answer));
  const asked: string[] = [];
  const proxy = createServer().on('connect', ({ url }, socket) => {
    asked.push(String(url));
    const target = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      target.pipe(socket).pipe(target);
    });
    target.on('error', () => socket.destroy());
    socket.on('error', () => target.destroy());
  });
  const [block] = blocksOf('docs/recipes/typescript.md').filter(({ tag }) => tag === 'proxy');
  const program = block?.text
    .replace('http://proxy.example.com:8080', `http://127.0.0.1:${await portOf(t, proxy)}`)
    .replace('company-ca.pem', cert);
  const modules = join(folder.path, 'node_modules');
  await mkdir(modules);
  await symlink(join(CLIENT, '..'), join(modules, 'commodity-prices-client'));
  await symlink(join(ROOT, 'node_modules', 'undici'), join(modules, 'undici'));
  const words = ['--input-type=module-typescript', '--eval', String(program)];
  const address = `https://127.0.0.1:${port}`;
  const env = { ...PLAIN_ENV, COMMODITY_PRICES_URL: address, COMMODITY_PRICES_KEY: 'key' };
  const run = promisify(execFile)('env', ['-u', 'NODE_OPTIONS', process.execPath, ...words], {
    cwd: folder.path,
    env,
  });
  t.match((await run).stdout, /^1 markets$/m);
  t.same(asked, [`127.0.0.1:${port}`]);
});

t.test('each client trusts the CA of its environment, and no unknown one', async (t) => {
  const folder = await makeFolder();
  t.teardown(folder.remove);
  const { cert, tls } = await selfSigned(folder.path);
  const port = await portOf(t, createTlsServer(tls, answer));
  const env = { COMMODITY_PRICES_URL: `https://127.0.0.1:${port}` };
  const trusting = { NODE_EXTRA_CA_CERTS: cert, SSL_CERT_FILE: cert };
  t.same(await markets(t, { ...env, ...trusting }), ['nickel', 'nickel', 'nickel']);
  for (const message of await markets(t, env)) t.match(message, /self.signed|SELF_SIGNED/i);
});
