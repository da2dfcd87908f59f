import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { blocksOf, ROOT } from '../support/docs/blocks.ts';
import { addressOf } from '../support/http/address.ts';
import { serviceOn } from '../support/http/service.ts';

/** The tests of blocks that start the project, fetch files or need an account elsewhere. */
const CHECKED_ELSEWHERE = [
  // Package tests install, start and call it.
  'npm ci && npm start\n',
  'npm ci && npm test\n',
  // docs.test.ts reads these command lines by the parser of the program.
  './prices load worldbank',
  'npm ci --omit=dev',
  'docker compose up',
];

const blocks = blocksOf('README.md').filter(({ language }) => language === 'sh');
const requests = blocks.filter(({ text }) => text.startsWith('curl '));
const commands = blocks.filter(({ text }) => text.startsWith('./prices keys create'));

const database = await testDatabase(t, { seeded: true });
const service = await serviceOn(t, database);
const address = await addressOf(service.app);

const shell = (text: string, env: Readonly<Record<string, string>> = {}) =>
  promisify(execFile)('bash', ['-euo', 'pipefail', '-c', text], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], ...env },
  });

t.test('every block of the README that sends a request is answered', async (t) => {
  t.equal(requests.length, 3);
  for (const { text } of requests) {
    const own = text
      .replaceAll('<the demo key>', service.key)
      .replaceAll('http://127.0.0.1:3000', address);
    const { stdout } = await shell(own);
    t.match(stdout, text.includes('/v3/calculations') ? /"value":2331\.79,/ : /CP-NI-0003/, text);
    t.notMatch(stdout, /"code":"[a-z]+_/, text);
  }
});

t.test('the commands for keys make a key, list it, and revoke it', async (t) => {
  const [{ text = '' } = {}, ...more] = commands;
  t.same(more, []);
  const env = { DATABASE_URL: database.url };
  const [create = '', list = '', revoke = ''] = text.trimEnd().split('\n');
  const key = /cps_live_\w+/.exec((await shell(create, env)).stdout)?.[0] ?? '';
  const isOpen = async (): Promise<boolean> => {
    const headers = { 'x-api-key': key };
    return (await service.app.inject({ url: '/v3/prices/nickel', headers })).statusCode === 200;
  };
  t.ok(await isOpen());
  const { stdout } = await shell(list, env);
  const [, id = ''] = /(\w+) +trading desk/.exec(stdout) ?? [];
  t.ok(key.includes(id), stdout);
  await shell(revoke.replace('<id>', id), env);
  t.notOk(await isOpen());
});

t.test('every other block of the README is known', async (t) => {
  const others = blocks.filter((each) => !requests.includes(each) && !commands.includes(each));
  const unknown = others.filter(
    ({ text }) => !CHECKED_ELSEWHERE.some((known) => text.startsWith(known)),
  );
  t.same(unknown, []);
  t.equal(others.length, CHECKED_ELSEWHERE.length);
});
