import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { SECRETS } from '../../src/config/environment.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { testWith } from '../support/database/debian.ts';
import { programOnPath } from '../support/process/browser.ts';
import { makeFolder } from '../support/run/folders.ts';

const FOLDER = fileURLToPath(new URL('../../deploy/debian/', import.meta.url));
const units = globSync('*.{service,timer}', { cwd: FOLDER }).sort();
const textOf = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');

testWith(
  t,
  'systemd accepts the units, and the service is exposed to little',
  { systemd: programOnPath(['systemd-analyze']) },
  async (t) => {
    const folder = await makeFolder();
    t.teardown(folder.remove);
    // The program is not installed here.
    for (const unit of units) {
      const text = textOf(unit).replaceAll('/opt/commodity-prices/current/prices', '/bin/true');
      await writeFile(join(folder.path, unit), text);
    }
    const analyze = (...args: string[]) =>
      promisify(execFile)('systemd-analyze', args, {
        env: { ...process.env, SYSTEMD_LOG_LEVEL: 'warning' },
      });
    const paths = units.map((unit) => join(folder.path, unit));
    const { stderr } = await analyze('verify', ...paths);
    t.equal(stderr, '');
    for (const path of paths.filter((each) => each.endsWith('.service'))) {
      await t.resolves(
        analyze('security', '--offline=true', '--threshold=45', path),
        `${basename(path)}: an exposure of at most 4.5`,
      );
    }
  },
);

t.test('each variable of a unit, and of the settings in the page, is a setting', async (t) => {
  const known = new Set([
    ...Object.keys(SETTINGS),
    ...SECRETS.map((each) => `${each}_FILE`),
    ...['NODE_ENV', 'PGSSLROOTCERT'],
  ]);
  const page = readFileSync(new URL('../../docs/debian.md', import.meta.url), 'utf8');
  const set = [
    ...units.flatMap((unit) => [...textOf(unit).matchAll(/^Environment=(.*)$/gm)]),
    ...page.matchAll(/^([A-Z_]+=\S+)$/gm),
  ].flatMap(([, text = '']) => text.split(' '));
  t.ok(set.length > 10);
  for (const each of set) t.ok(known.has(each.split('=')[0] ?? ''), each);
});
