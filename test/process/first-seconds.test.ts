import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { seededDatabase, testDatabase } from '../support/database/database.ts';
import { testWith } from '../support/database/debian.ts';
import { tcpProxyTo } from '../support/database/tcp-proxy.ts';
import { until } from '../support/http/sockets.ts';
import { programOnPath } from '../support/process/browser.ts';
import { startService } from '../support/process/programs.ts';

const COMMANDS = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

/** Times after which a service tries to connect again while its database is silent. */
const QUICK = { DATABASE_SILENCE_MS: '200', DATABASE_AWAY_MS_MAX: '20000' };

t.test('a first connection that takes a while is logged as no outage', async (t) => {
  const { url } = await seededDatabase(t);
  const proxy = await tcpProxyTo(t, url);
  proxy.freeze();
  const service = startService(t, { DATABASE_URL: proxy.url, ...QUICK });
  const outage = () => until('the service tries again', async () => proxy.count() > 2);
  await outage();
  proxy.thaw();
  const [address = ''] = /http:\/\/[\d.]+:\d+/.exec(await service.until('stderr', /http:/)) ?? [];
  const isReady = async () => (await fetch(`${address}/ready`)).status === 200;
  await until('the service is ready', isReady);
  t.notMatch(service.stderr(), /unavailable|answers again/);
  proxy.freeze();
  await outage();
  proxy.thaw();
  await service.until('stderr', 'the database was unavailable briefly');
});

t.test('an operator reads the rate limit, and why /ready is degraded, at the start', async (t) => {
  const { url } = await testDatabase(t);
  const service = startService(t, { DATABASE_URL: url, RATE_PER_MINUTE: '600' });
  await service.until('stderr', /each key or token may send 600 requests a minute, 60 at once/);
  const reason = /"msg":"No price has a value yet: load a file by \.\/prices load; \/ready is deg/;
  await service.until('stderr', reason);
});

t.test('SIGTERM in the first seconds ends the service, whatever it waits for', async (t) => {
  const atOnce = startService(t, { DATABASE_URL: 'postgres://a@127.0.0.1:1/a' });
  atOnce.child.kill('SIGTERM');
  t.match(await atOnce.ended, /^(0|SIGTERM)$/, 'before its program is read');
  const { url } = await seededDatabase(t);
  const proxy = await tcpProxyTo(t, url);
  proxy.freeze();
  const waiting = startService(t, { DATABASE_URL: proxy.url });
  await until('the service connects', async () => proxy.count() > 0);
  waiting.child.kill('SIGTERM');
  t.equal(await waiting.ended, 0, 'while its database is silent');
});

testWith(
  t,
  'process 1 of a container ends by SIGTERM before it has handlers of its own',
  { 'util-linux (as root)': process.getuid?.() === 0 ? programOnPath(['unshare']) : null },
  async (t) => {
    // The tools of the tests add handlers to each process that has these options.
    const program = ['env', '-u', 'NODE_OPTIONS', process.execPath, COMMANDS, 'token', 'check'];
    const child = spawn('unshare', ['--pid', '--fork', '--kill-child', ...program], {
      cwd: tmpdir(),
      env: { ...process.env, JWT_SECRET: 'x'.repeat(32) },
      // The command waits for a token.
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    t.teardown(() => child.kill('SIGKILL'));
    const exited = once(child, 'exit');
    let isRunning = true;
    void exited.then(() => (isRunning = false));
    const children = `/proc/${child.pid}/task/${child.pid}/children`;
    await until('the command ends', async () => {
      const pid = Number(await readFile(children, 'utf8').catch(() => ''));
      try {
        if (isRunning && pid > 0) process.kill(pid, 'SIGTERM');
      } catch (error) {
        // The command ended after its number was read.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
      return !isRunning;
    });
    t.same(await exited, [128 + 15, null]);
  },
);
