import { spawnSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';

const SCRIPT = fileURLToPath(new URL('../.ci/run', import.meta.url));

/** Stands in for npm: the script is looked at, not what it runs. */
const npm = (failing: string): string => `#!/bin/sh
test "$*" = test && echo '5 passed, 0 failed'
test "$*" != '${failing}'
`;

t.test('the last line of a run counts, whatever fails, and so does the exit code', async (t) => {
  const folder = t.testdir({ '.ci': {}, bin: {} });
  copyFileSync(SCRIPT, join(folder, '.ci', 'run'));
  const env = { ...process.env, PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH']}` };
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
