import { execFile } from 'node:child_process';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { SETTINGS } from '../../src/config/settings.ts';
import { NODE_FLAGS } from '../../src/std/program.ts';
import { makeFolder } from '../support/run/folders.ts';

const SERVER = fileURLToPath(new URL('../../src/server.ts', import.meta.url));
/** Ends the service if it starts despite the arguments. */
const start = (...args: string[]) =>
  promisify(execFile)(process.execPath, [SERVER, ...args], { timeout: 60_000 });

t.test('--help lists every setting and does not start the service', async (t) => {
  const { stdout, stderr } = await start('--help');
  for (const name of Object.keys(SETTINGS)) t.match(stdout, new RegExp(`^ {2}${name}\\b`, 'm'));
  t.match(stdout, './prices --help');
  t.equal(stderr, '');
  t.match((await start('--version')).stdout, /^\d+\.\d+\.\d+\n$/);
});

t.test('an argument that means nothing is refused, and not passed over', async (t) => {
  await t.rejects(start('--port', '3'), {
    code: 2,
    stderr: /^[^\n]*"--port"[^\n]*PORT=8080[^\n]*\n$/,
  });
});

t.test('the option of worker processes is refused by name, with what to do instead', async (t) => {
  for (const args of [['--workers', '4'], ['--workers=4'], ['serve', '--workers', '4']]) {
    const gone = /^[^\n]*--workers is gone: run one process for each core behind HAProxy[^\n]*\n$/;
    await t.rejects(start(...args), { code: 2, stderr: gone }, args.join(' '));
  }
});

t.test('a Node that is too old is refused in one line, before anything runs on it', async (t) => {
  const file = new URL('../../package.json', import.meta.url);
  const { scripts } = JSON.parse(await readFile(file, 'utf8'));
  const check = 'src/cli/node-version.js';
  t.equal(scripts.prestart, `node ${check}`);
  const script = await readFile(new URL('../../prices', import.meta.url), 'utf8');
  t.match(script, `"$node" "$here/${check}" || exit 2`, 'where it is not the Node of the project');
  const url = new URL(`../../${check}`, import.meta.url).href;
  const on = (version: string) => {
    const versions = `{ value: { ...process.versions, node: '${version}' } }`;
    const code = `Object.defineProperty(process, 'versions', ${versions}); import('${url}')`;
    return promisify(execFile)(process.execPath, ['-e', code]);
  };
  for (const version of ['20.19.5', '22.21.9']) {
    const why = `needs Node 22.22 or newer, and this is ${version}; npm ci installs one here`;
    const other = 'and npm install --global node@22 works without development tools';
    await t.rejects(on(version), { code: 2, stderr: `commodity-prices: ${why}, ${other}\n` });
  }
  for (const version of ['22.22.0', '24.0.0']) t.equal((await on(version)).stderr, '');
});

t.test('a symbolic link to ./prices runs the checkout that it points to', async (t) => {
  const folder = await makeFolder();
  t.teardown(folder.remove);
  const command = fileURLToPath(new URL('../../prices', import.meta.url));
  const [direct, link, further] = [command, join(folder.path, 'cp'), join(folder.path, 'more')];
  await symlink(command, link);
  await symlink('cp', further);
  const run = async (file: string) =>
    (await promisify(execFile)(file, ['--version'], { cwd: folder.path })).stdout;
  const version = await run(direct);
  t.match(version, /^\d+\.\d+\.\d+\n$/);
  for (const file of [link, further, './more']) t.equal(await run(file), version, file);
  // readlink without the option -f.
  await writeFile(join(folder.path, 'readlink'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  const env = { ...process.env, PATH: `${folder.path}:${process.env['PATH']}` };
  t.equal((await promisify(execFile)(direct, ['--version'], { env })).stdout, version);
});

t.test('a secret file of no use and wrong values are reported together', async (t) => {
  const wrong = { JWT_SECRET_FILE: '/nothere', LOG_LEVEL: 'loud', RATE_PER_MINUTE: 'abc' };
  const env = { ...process.env, ...wrong };
  const { code, stderr } = await promisify(execFile)(process.execPath, [SERVER], {
    env,
    timeout: 60_000,
  }).catch((error) => error);
  t.equal(code, 2);
  for (const name of Object.keys(wrong)) t.match(stderr, `${name}: `);
});

t.test('every way to start the service uses the same options of Node', async (t) => {
  const text = (name: string) => readFile(new URL(`../../${name}`, import.meta.url), 'utf8');
  const { scripts } = JSON.parse(await text('package.json'));
  const flags = NODE_FLAGS.join(' ');
  t.equal(scripts.start, `exec node ${flags} src/server.ts`);
  t.match(await text('prices'), `exec "$node" ${flags} "$here/src/cli/main.ts" "$@"`);
  const command = ['node', ...NODE_FLAGS, '/app/src/cli/main.ts'];
  t.match(await text('Dockerfile'), `ENTRYPOINT ${JSON.stringify(command).replaceAll(',', ', ')}`);
});
