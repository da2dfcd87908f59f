import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(fileURLToPath(new URL(path, ROOT)), 'utf8');

/** True if a text of TypeScript declares a function, constant or class of a name. */
const declares = (text: string, name: string): boolean =>
  new RegExp(`^(export )?(async )?(function\\*?|const|class) ${name}\\b`, 'm').test(text);

for (const page of ['docs/flow-request.md', 'docs/flow-load.md']) {
  t.test(`${page} names functions that exist`, async (t) => {
    const named = [...read(page).matchAll(/`(src\/[\w./-]+\.ts):(\w+)`/g)];
    t.ok(named.length > 15, 'the page names the steps');
    for (const [each, file = '', name = ''] of named) {
      t.ok(existsSync(new URL(file, ROOT)) && declares(read(file), name), each);
    }
  });
}

t.test('CONTRIBUTING.md names files that exist', async (t) => {
  // A placeholder such as <name> stands for a file that the reader makes.
  const named = [
    ...read('CONTRIBUTING.md').matchAll(/`((?:src|test|docs|seeds|scripts|deploy)\/[\w./-]+)`/g),
  ];
  t.ok(named.length > 40, 'the recipes name their files');
  for (const [, path = ''] of named) t.ok(existsSync(new URL(path, ROOT)), path);
});
