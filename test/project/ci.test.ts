import { spawnSync } from 'node:child_process';
import { copyFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { programOnPath } from '../support/process/browser.ts';

const SCRIPT = fileURLToPath(new URL('../../.ci/run', import.meta.url));

const DEPLOYMENT = ['openssl', 'haproxy', 'promtool', 'pgbouncer'];

/** A stub of npm: the test is about the script, not about its commands. */
const npm = (failing: string): string => `#!/bin/sh
test "$*" = test && echo '5 passed, 0 failed'
test "$*" != '${failing}'
`;

t.test('the last line of a run counts, whatever fails, and so does the exit code', async (t) => {
  const folder = t.testdir({ '.ci': {}, bin: {} });
  copyFileSync(SCRIPT, join(folder, '.ci', 'run'));
  const env = { ...process.env, PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH']}` };
  // Everything it would install is present.
  for (const program of ['chromium-headless-shell', 'Rscript', 'python3', ...DEPLOYMENT]) {
    writeFileSync(join(folder, 'bin', program), '#!/bin/sh\n', { mode: 0o755 });
  }
  const expected = [
    ['nothing', '5 passed, 0 failed', 0],
    ['ci', '0 passed, 1 failed', 1],
    ['run check', '5 passed, 1 failed', 1],
    ['test', '5 passed, 1 failed', 1],
  ] as const;
  for (const [failing, last, code] of expected) {
    writeFileSync(join(folder, 'bin', 'npm'), npm(failing), { mode: 0o755 });
    const { status, stdout } = spawnSync('bash', [join(folder, '.ci', 'run')], {
      env,
      encoding: 'utf8',
    });
    t.equal(stdout.trimEnd().split('\n').at(-1), last, `${failing} fails`);
    t.equal(status, code);
  }
});

t.test('a run fails where Chromium cannot be installed', async (t) => {
  const folder = t.testdir({ '.ci': {}, bin: {} });
  copyFileSync(SCRIPT, join(folder, '.ci', 'run'));
  const bin = join(folder, 'bin');
  // No package manager answers, and of the programs of this machine only these are there.
  const own = {
    npm: npm('nothing'),
    'apt-get': '#!/bin/sh\nexit 100\n',
    Rscript: '#!/bin/sh\n',
    python3: '#!/bin/sh\n',
    ...Object.fromEntries(DEPLOYMENT.map((name) => [name, '#!/bin/sh\n'])),
  };
  for (const [name, text] of Object.entries({ ...own, sudo: '#!/bin/sh\nexit 1\n' })) {
    writeFileSync(join(bin, name), text, { mode: 0o755 });
  }
  for (const name of ['bash', 'sh', 'mktemp', 'tee', 'tail', 'rm', 'dirname']) {
    symlinkSync(programOnPath([name]) ?? '', join(bin, name));
  }
  const { status, stdout, stderr } = spawnSync('bash', [join(folder, '.ci', 'run')], {
    env: { PATH: bin },
    encoding: 'utf8',
  });
  t.match(stderr, 'failed: browser');
  t.equal(stdout.trimEnd().split('\n').at(-1), '5 passed, 1 failed');
  t.equal(status, 1);
});
