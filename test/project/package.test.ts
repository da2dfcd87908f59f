import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { setting } from '../support/database/database.ts';
import { PLAIN_ENV } from '../support/process/plain-env.ts';
import { makeFolder } from '../support/run/folders.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** 2,388,411 bytes, and 5 %: half of them are source maps with the sources. */
const BYTES_MAX = 1.05 * 2_388_411;

/** Runs a program without the options of Node that tap adds to the environment of each child. */
const run = (file: string, args: readonly string[], options: { cwd?: string; env?: object } = {}) =>
  promisify(execFile)('env', ['-u', 'NODE_OPTIONS', file, ...args], options as object);

/** The Node of the tests comes first on the path. */
const env = { ...PLAIN_ENV, PATH: `${dirname(process.execPath)}:${process.env['PATH']}` };

let tarball: string;
let folder: string;
t.before(async () => {
  const created = await makeFolder();
  folder = created.path;
  t.teardown(() => created.remove());
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder], {
    cwd: ROOT,
    env,
  });
  tarball = join(folder, stdout.trim().split('\n').at(-1) ?? '');
  await run('npm', ['init', '--yes'], { cwd: folder, env });
  const options = ['--prefer-offline', '--no-audit', '--no-fund', '--silent'];
  await run('npm', ['install', ...options, tarball], { cwd: folder, env });
});

t.test('the package is small, holds no test, and publint has nothing to say', async (t) => {
  t.ok((await stat(tarball)).size <= BYTES_MAX);
  const { stdout } = await run('tar', ['-tzf', tarball]);
  const files = stdout.trim().split('\n');
  t.ok(files.includes('package/dist/src/cli/bin.js'));
  for (const file of ['dist/src/db/roles.sql', 'dist/openapi.yaml', '.env.example']) {
    t.ok(files.includes(`package/${file}`), file);
  }
  const programs = files.filter((file) => /^package\/dist\/(src|seeds)\/.*\.js$/.test(file));
  const copied = globSync('src/**/*.js', { cwd: ROOT });
  const compiled = programs.filter((file) => !copied.includes(file.slice('package/dist/'.length)));
  t.ok(compiled.length > 100);
  t.same(
    compiled.filter((file) => !files.includes(`${file}.map`)),
    [],
    'each compiled program has a source map',
  );
  t.same(
    files.filter((file) => /(^|\/)(test|bench|node_modules)\/|\.test\./.test(file)),
    [],
  );
  const publint = join(ROOT, 'node_modules', 'publint', 'src', 'cli.js');
  const { stdout: report } = await run(process.execPath, [publint, '--strict'], { cwd: ROOT });
  t.match(report, /All good/);
});

t.test('the package holds the clients, and every file that its documents link to', async (t) => {
  const home = join(folder, 'node_modules', 'commodity-prices');
  const clients = ['python/commodity_prices.py', 'python/commodity_prices_types.py'];
  for (const file of [...clients, 'typescript/client.js', 'typescript/schema.d.ts']) {
    t.ok(existsSync(join(home, 'clients', file)), file);
  }
  const documents = globSync('{*.md,docs/**/*.md}', { cwd: home });
  t.ok(documents.length > 30);
  const missing = documents.flatMap((document) => {
    const text = readFileSync(join(home, document), 'utf8');
    const links = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, link = '']) => link);
    return links
      .filter((link) => !/^(https?|mailto):/.test(link))
      .filter((link) => !existsSync(join(home, dirname(document), link)))
      .map((link) => `${document}: ${link}`);
  });
  t.same(missing, []);
});

t.test('the installed command has help, the same version, and refuses what it lacks', async (t) => {
  const command = (...args: string[]) =>
    run('npx', ['--no-install', 'commodity-prices', ...args], { cwd: folder, env });
  const { stdout } = await command('--help');
  t.match(stdout, /^Usage: commodity-prices <command>/);
  t.notMatch(stdout, /\.\/prices|npm run/);
  t.equal((await command('--version')).stdout, '1.0.0\n');
  await t.rejects(command('bogus'), { code: 2 });
});

t.test('the installed command serves a priced request, and stops cleanly', async (t) => {
  const bin = join(folder, 'node_modules', '.bin', 'commodity-prices');
  const data = await makeFolder();
  t.teardown(() => data.remove());
  const service = spawn('env', ['-u', 'NODE_OPTIONS', bin], {
    cwd: folder,
    env: { ...env, PORT: '0', DATA_DIR: join(data.path, 'data') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => service.kill('SIGKILL'));
  const ended = once(service, 'exit');
  let said = '';
  service.stderr.on('data', (chunk) => {
    said += chunk;
  });
  for await (const chunk of service.stdout) {
    said += chunk;
    if (/Ctrl-C stops/.test(said)) break;
  }
  const [, address, key] = /curl -s (\S+)\/v3\S+ .*x-api-key: (cps_[A-Za-z0-9_]+)/.exec(said) ?? [];
  t.ok(address && key, said);
  const answer = await fetch(`${address}/v3/prices/nickel`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': key ?? '' },
    body: '{"options":{"includeSeries":true,"lastObservations":1}}',
  });
  const { data: records } = (await answer.json()) as { data: { series: object[] }[] };
  t.ok(records.length > 5 && records.some(({ series }) => series.length === 1));
  t.equal((await fetch(`${address}/explorer`)).status, 200);
  t.equal((await fetch(`${address}/docs`)).status, 200);
  service.kill('SIGTERM');
  t.same(await ended, [0, null]);
});

t.test('npx commodity-prices serve starts the service, which Ctrl-C stops cleanly', async (t) => {
  const data = await makeFolder();
  t.teardown(() => data.remove());
  const words = ['-u', 'NODE_OPTIONS', 'npx', '--no-install', 'commodity-prices', 'serve'];
  const service = spawn('env', words, {
    cwd: folder,
    env: { ...env, PORT: '0', DATA_DIR: join(data.path, 'data') },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const signal = (name: NodeJS.Signals): void => {
    try {
      process.kill(-(service.pid ?? 0), name);
    } catch {
      // All processes have ended.
    }
  };
  t.teardown(() => signal('SIGKILL'));
  const ended = once(service, 'close');
  let output = '';
  let stopsAt: string | null = null;
  const collect = (chunk: Buffer): void => {
    output += chunk;
    const address = /Commodity Prices Service +(http:\S+)/.exec(output)?.[1];
    if (stopsAt !== null || address === undefined || !/Ctrl-C stops/.test(output)) return;
    stopsAt = address;
    void fetch(`${address}/live`).then(({ status }) => {
      t.equal(status, 200);
      // A terminal sends the signal to npx and all of its processes.
      signal('SIGINT');
    });
  };
  service.stdout.on('data', collect);
  service.stderr.on('data', collect);
  await ended;
  t.match(output, /the service has stopped/, output);
  await t.rejects(fetch(`${stopsAt}/live`), 'nothing listens');
});

t.test('the script of a checkout works from any folder', async (t) => {
  const { stdout } = await run(join(ROOT, 'prices'), ['keys', 'list', '--json'], {
    cwd: folder,
    env: { ...env, DATABASE_URL: setting('TEST_DATABASE_URL') },
  }).catch((error: { stderr: string }) => ({ stdout: error.stderr }));
  t.match(stdout, /run: \.\/prices db migrate/);
});
