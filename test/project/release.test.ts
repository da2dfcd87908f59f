import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(`${ROOT}${path}`, 'utf8');
const { version } = JSON.parse(read('package.json'));

t.test(
  'package, changelog, OpenAPI document and lockfile name one version, with a day',
  async (t) => {
    const [, named, day] = /^## (\S+) \((\d{4}-\d{2}-\d{2})\)$/m.exec(read('CHANGELOG.md')) ?? [];
    t.equal(named, version);
    t.equal(new Date(`${day}T00:00:00Z`).toISOString().slice(0, 10), day, 'a calendar day');
    t.equal(parse(read('openapi.yaml')).info.version, version);
    t.equal(JSON.parse(read('package-lock.json')).version, version);
  },
);

t.test('a tag of the present commit that begins with v names the version', async (t) => {
  const tags = execFileSync('git', ['tag', '--points-at', 'HEAD', 'v*'], { cwd: ROOT }).toString();
  const wrong = tags.split('\n').filter((tag) => tag !== '' && tag !== `v${version}`);
  t.same(wrong, []);
});

t.test('the readme names the file that npm pack writes', async (t) => {
  t.match(read('README.md'), `commodity-prices-${version}.tgz`);
});
