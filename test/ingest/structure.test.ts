import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';

/** The folders of `src/ingest`: each imports only itself and earlier ones. */
const FOLDERS = [
  'records',
  'parsing',
  'mapping',
  'formats',
  'descriptions',
  'staging',
  'load',
  'calendar',
  'vat',
  'ledger',
];

const ROOT = fileURLToPath(new URL('../../src/ingest/', import.meta.url));
const files = globSync('*/*.ts', { cwd: ROOT }).map((path) => ({
  path,
  folder: path.split('/')[0] ?? '',
  text: readFileSync(`${ROOT}${path}`, 'utf8'),
}));

t.test('the folders of ingest import one another in one direction', async (t) => {
  t.same([...new Set(files.map(({ folder }) => folder))].sort(), FOLDERS.toSorted());
  const wrong = files.flatMap(({ path, folder, text }) =>
    [...text.matchAll(/(?:from|import)\s*\(?\s*'\.\.\/([a-z]+)\//g)]
      .map(([, target = '']) => target)
      .filter((target) => FOLDERS.indexOf(target) > FOLDERS.indexOf(folder))
      .map((target) => `${path} imports ${target}`),
  );
  t.same(wrong, []);
});

t.test('only staging names the staging tables', async (t) => {
  const others = files.filter(({ folder }) => folder !== 'staging');
  t.same(
    others
      .filter(({ text }) => /\bload_(value|series|change)\b/.test(text))
      .map(({ path }) => path),
    [],
  );
});

t.test('the main export of each file of load stands before its helpers', async (t) => {
  const inLoad = files.filter(({ folder }) => folder === 'load');
  t.ok(inLoad.length > 5);
  const first = /^(export )?(?:async )?(?:function|const \w+ = (?:async )?\()/m;
  const wrong = inLoad.filter(({ text }) => first.exec(text) && !first.exec(text)?.[1]);
  t.same(
    wrong.map(({ path }) => path),
    [],
  );
});
