import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { DIMENSIONS } from '../../src/catalog/dimensions.ts';
import { MARKETS } from '../../src/catalog/markets.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Allowed imports of each folder or file of src: the table of the architecture. */
const LAYERS: Readonly<Record<string, string>> = {
  catalog: 'std',
  std: '',
  errors: 'std',
  config: 'std',
  contract: 'catalog errors std',
  calendar: 'std',
  // Without errors.ts: the edge maps a DatabaseFailure to an HTTP status.
  db: 'calendar catalog seeds migrations std',
  auth: 'catalog db errors limits std',
  conversion: 'catalog std',
  calculation: 'conversion std',
  limits: 'std',
  metrics: 'db errors limits',
  prices: 'calculation calendar catalog contract conversion db errors std',
  book: 'catalog contract conversion db prices std',
  webhooks: 'auth calendar catalog contract db prices std',
  ingest: 'calendar catalog db errors std',
  archive: 'db std',
  verify: 'calendar catalog db',
  http: 'auth book catalog config contract db errors limits metrics prices std',
  'http/reply': 'auth book catalog contract db errors prices std',
  'http/routes':
    'auth calendar catalog contract conversion db errors http http/reply limits prices std',
  app:
    'book calendar catalog config contract conversion db errors http http/reply http/routes ' +
    'limits metrics prices std webhooks',
  process: 'auth catalog config contract db errors ingest metrics prices app std limits webhooks',
  server: 'config metrics process std',
  cli:
    'archive auth calendar catalog config contract db errors ingest limits prices http/routes ' +
    'app server process std verify webhooks',
};

/** Folders that may import a package or use `process`. */
const FASTIFY = ['http', 'http/reply', 'http/routes', 'app', 'process'];
const KYSELY = ['db', 'prices', 'book', 'ingest', 'auth', 'webhooks'];
const PROCESS = ['cli', 'config', 'process', 'server'];

interface ProjectFile {
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
}

const read = (path: string): ProjectFile => {
  const text = readFileSync(`${ROOT}${path}`, 'utf8');
  return { path, text, lines: text.split('\n') };
};

const globbed = (pattern: string): ProjectFile[] =>
  globSync(pattern, { cwd: ROOT, exclude: (path) => /node_modules|generators.made$/.test(path) })
    .filter((path) => !path.endsWith('.d.ts'))
    .sort()
    .map(read);

const src = globbed('src/**/*.ts');
const migrations = globbed('migrations/*.ts');
/** Migrations are not in it: they are SQL that is read as a whole and never changed again. */
const code = [...src, ...globbed('{seeds,test,bench,clients}/**/*.ts')];
const tests = globbed('test/**/*.ts');

/** All project files: tracked, or untracked and not ignored. */
const tracked = execFileSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], { cwd: ROOT })
  .toString()
  .split('\0')
  .filter((path) => statSync(`${ROOT}${path}`, { throwIfNoEntry: false })?.isFile())
  .map(read);

/** `src/db/client.ts` → `db`, `src/http/reply/send.ts` → `http/reply`, `src/app.ts` → `app`. */
const layerOf = (path: string): string => {
  const [top = '', next = '', under = ''] = path.split('/');
  if (top !== 'src') return top;
  return `${next}/${under}` in LAYERS ? `${next}/${under}` : next.replace(/\.ts$/, '');
};

/** The imports of a file: packages by name, own files by their path in the project. */
const importsOf = ({ path, text }: ProjectFile): string[] => {
  const all = [...text.matchAll(/(?:from|import|import\()\s*['"]([^'"\n]+)['"]/g)];
  return all.map(([, target = '']) =>
    target.startsWith('.') ? new URL(target, `file:///${path}`).pathname.slice(1) : target,
  );
};

/** Lines of a file that a pattern finds, as `path:line`. */
const found = (files: readonly ProjectFile[], pattern: RegExp): string[] =>
  files.flatMap(({ path, lines }) =>
    lines.flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1} ${line}`] : [])),
  );

t.test('each folder imports only what lies below it', async (t) => {
  const wrong = src.flatMap((file) => {
    const layer = layerOf(file.path);
    const allowed = LAYERS[layer]?.split(' ') ?? [];
    return importsOf(file)
      .filter((target) => /^(src|seeds|migrations|test)\//.test(target))
      .map(layerOf)
      .filter((target) => target !== layer && !allowed.includes(target))
      .map((target) => `${file.path} imports ${target}`);
  });
  t.same(wrong, []);
  t.same([...new Set(src.map((file) => layerOf(file.path)))].sort(), Object.keys(LAYERS).sort());
});

/** Imports between the entries (files, subfolders) of each folder: folder, entry, targets. */
const neighboursOf = (files: readonly ProjectFile[]): Map<string, Map<string, Set<string>>> => {
  const folders = new Map<string, Map<string, Set<string>>>();
  for (const file of files) {
    for (const target of importsOf(file).filter((each) => each.startsWith('src/'))) {
      const [from, to] = [file.path.split('/'), target.split('/')];
      const at = from.findIndex((part, index) => part !== to[index]);
      const [entry, neighbour] = [from[at], to[at]];
      if (at < 0 || entry === undefined || neighbour === undefined) continue;
      const folder = from.slice(0, at).join('/');
      const entries = folders.get(folder) ?? new Map<string, Set<string>>();
      folders.set(folder, entries);
      entries.set(entry, (entries.get(entry) ?? new Set()).add(neighbour));
    }
  }
  return folders;
};

/** The entries of a folder that an entry imports, directly or through its neighbours. */
const reachable = (
  entries: ReadonlyMap<string, ReadonlySet<string>>,
  from: string,
): Set<string> => {
  const seen = new Set<string>();
  const waiting = [from];
  for (let entry = waiting.pop(); entry !== undefined; entry = waiting.pop()) {
    for (const next of entries.get(entry) ?? []) {
      if (!seen.has(next)) waiting.push(next);
      seen.add(next);
    }
  }
  return seen;
};

t.test('no files or folders that stand side by side import each other in a circle', async (t) => {
  const circles = [...neighboursOf(src)].flatMap(([folder, entries]) =>
    [...entries.keys()]
      .filter((entry) => reachable(entries, entry).has(entry))
      .map((entry) => `${folder}/${entry}`),
  );
  t.same(circles, []);
});

t.test('no folder of src has more than 20 files side by side', async (t) => {
  const counts = Map.groupBy(src, ({ path }) => path.slice(0, path.lastIndexOf('/')));
  t.same(
    [...counts].filter(([, files]) => files.length > 20).map(([folder]) => folder),
    [],
  );
});

t.test('no folder of test has more than 20 files side by side', async (t) => {
  const counts = Map.groupBy(tests, ({ path }) => path.slice(0, path.lastIndexOf('/')));
  t.same(
    [...counts].filter(([, files]) => files.length > 20).map(([folder]) => folder),
    [],
  );
});

/** The names that a file imports from another one, as `path name`; `*` for all of them. */
const namesFrom = ({ path, text }: ProjectFile): string[] => {
  const at = (target: string): string => new URL(target, `file:///${path}`).pathname.slice(1);
  const named = [
    ...text.matchAll(/(?:import|export)\s+(?:type\s+)?\{([^}]*)\}\s*from\s+'(\.[^']+)'/g),
  ];
  const taken = [...text.matchAll(/\{([^{}]*)\}\s*=\s*await import\(\s*'(\.[^']+)'/g)];
  const members = [...text.matchAll(/\(await import\('(\.[^']+)'\)\)\.(\w+)/g)];
  const whole = [...text.matchAll(/\* as \w+ from '(\.[^']+)'/g)];
  return [
    ...[...named, ...taken].flatMap(([, names = '', target = '']) =>
      names
        .split(',')
        .map(
          (name) =>
            name
              .trim()
              .replace(/^type /, '')
              .split(/ as |:/)[0],
        )
        .map((name) => `${at(target)} ${name}`),
    ),
    ...members.map(([, target = '', name]) => `${at(target)} ${name}`),
    ...whole.map(([, target = '']) => `${at(target)} *`),
  ];
};

t.test('every export is imported by another file', async (t) => {
  const imported = new Set([...code, ...migrations].flatMap(namesFrom));
  const unused = src.flatMap(({ path, text }) =>
    [
      ...text.matchAll(
        /^export (?:async )?(?:abstract )?(?:const|function\*?|class|interface|type|let) (\w+)/gm,
      ),
    ]
      .map(([, name]) => name)
      .filter((name) => !imported.has(`${path} ${name}`) && !imported.has(`${path} *`))
      .map((name) => `${path} ${name}`),
  );
  t.same(unused, []);
});

t.test('Fastify, Kysely and the process stay where they belong', async (t) => {
  const users = (pattern: RegExp, allowed: readonly string[]) =>
    src
      .filter((file) => !allowed.includes(layerOf(file.path)))
      .filter((file) => importsOf(file).some((target) => pattern.test(target)))
      .map((file) => file.path);
  t.same(users(/^(fastify|@fastify\/.*)$/, FASTIFY), []);
  // The auth hook only passes the database on and needs just its type.
  const typesOnly = users(/^(kysely|kysely\/.*)$/, KYSELY);
  t.same(
    found(
      src.filter((file) => typesOnly.includes(file.path)),
      /^import (?!type).*'kysely/,
    ),
    [],
  );
  const outside = src.filter(
    ({ path }) => !PROCESS.includes(layerOf(path)) && !path.startsWith('src/db/embedded'),
  );
  t.same(found(outside, /(?<![\w.'`-])process\.|from 'node:process'/), []);
});

t.test('functions and lines stay small', async (t) => {
  const wide = code.flatMap(({ path, lines }) =>
    lines.flatMap((line, index) => ([...line].length > 100 ? [`${path}:${index + 1}`] : [])),
  );
  t.same(wide, [], 'lines of at most 100 columns');
  t.same(code.flatMap(longFunctions), [], 'functions of at most 60 lines');
});

/** Functions of more than 60 lines: the formatter ends each at the indentation it began with. */
function longFunctions({ path, lines }: ProjectFile): string[] {
  const begins = /^( *)(?!.*\b(?:if|for|while|switch|catch)\b \().*(?:\bfunction\b|=> \{$|\) \{$)/;
  return lines.flatMap((line, start) => {
    const indent = begins.exec(line)?.[1];
    if (indent === undefined || / \*/.test(line)) return [];
    const length = lines.slice(start + 1).findIndex((each) => each.startsWith(`${indent}}`)) + 2;
    return length > 60 ? [`${path}:${start + 1} ${length} lines`] : [];
  });
}

/** Folders of which a file is read from its first function on: the flow of a request and a load. */
const IN_ORDER = /^src\/(prices|book|http\/reply|ingest\/load)\//;

/** The first functions and classes of these files are parts of the exported ones below them. */
const PARTS_FIRST = [
  'src/book/block.ts',
  ...['src/prices/answer/missing-rates.ts', 'src/prices/series/from-sql.ts'],
  ...['csv', 'json', 'points', 'record'].map((name) => `src/prices/write/${name}.ts`),
  ...['market-prices', 'rates', 'references', 'samples'].map(
    (name) => `src/prices/market/${name}.ts`,
  ),
];

const FUNCTION = /^(export )?(?:async |abstract )*(?:function|class)\b/;
const ARROW = /^(export )?const \w+(?:: .*)? =\s*(?:async )?[(<]/;

/** True if a function or class of the file itself stands before all that it exports. */
function beginsWithHelper({ lines }: ProjectFile): boolean {
  const declared = lines.flatMap((line) => {
    const match = FUNCTION.exec(line) ?? ARROW.exec(line);
    return match ? [match[1] !== undefined] : [];
  });
  return declared[0] === false && declared.includes(true);
}

t.test('the exported functions of a file stand before its helpers', async (t) => {
  const wrong = src
    .filter(({ path }) => IN_ORDER.test(path) && !PARTS_FIRST.includes(path))
    .filter(beginsWithHelper);
  t.same(
    wrong.map(({ path }) => path),
    [],
  );
});

t.test('each folder of src explains itself in the first lines of a file', async (t) => {
  const folderOf = ({ path }: ProjectFile): string => path.slice(0, path.lastIndexOf('/'));
  // The first comment after the imports that belongs to no declaration.
  const explains = ({ text }: ProjectFile): boolean =>
    /^\/\*\n/.test(text.replace(/^(import [^;]*;\n|\n)+/, ''));
  const folders = Map.groupBy(src, folderOf);
  folders.delete('src');
  const silent = [...folders].filter(([, files]) => !files.some(explains));
  t.same(
    silent.map(([folder]) => folder),
    [],
  );
});

t.test('the language stays plain', async (t) => {
  t.same(found(code, /^export (\*|\{.*\}|type \{.*\}) from/), [], 'no barrels');
  t.same(found(code, /^\s*(export )?(declare )?(const )?(enum|namespace) /), [], 'erasable syntax');
  t.same(found(src, /^export default/), [], 'no default exports');
  t.same(found(code, /\brequire\(/), []);
});

t.test('nothing is left undone, and no test is left out', async (t) => {
  t.same(found(code, /\b(TO(?:)DO|FIX(?:)ME|XX(?:)X|HA(?:)CK)\b/), []);
  t.same(found(tests, /\b(t|test|tap)\.(only|skip|todo)\b|\{ (only|skip|todo): /), []);
});

t.test('the project knows nothing of the machine it was written on', async (t) => {
  const own = tracked.filter(({ path }) => !/package-lock\.json$/.test(path));
  t.same(found(own, /(^|[\s'"`(=])\/(tmp|work|home|root|Users)\/\w/), []);
  const locks = tracked.filter(({ path }) => /package-lock\.json$/.test(path));
  t.ok(locks.length >= 2);
  t.same(found(locks, /"resolved"|https?:\/\/[^"]*registry/), []);
});

t.test('every dependency has one exact version', async (t) => {
  for (const { path, text } of tracked.filter((file) => /(^|\/)package\.json$/.test(file.path))) {
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(text);
    const all = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies });
    t.same(
      all.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(String(version))),
      [],
      path,
    );
  }
});

t.test('migrations are frozen in time: they import nothing of the project', async (t) => {
  t.ok(migrations.length > 0);
  t.same([...new Set(migrations.flatMap(importsOf))], ['kysely']);
});

t.test('the catalog is the only list of markets in the source', async (t) => {
  const words = MARKETS.map((each) => each.slug).join('|');
  const elsewhere = src.filter(({ path }) => layerOf(path) !== 'catalog');
  // A slug as a text of its own; the World Bank's workbook names three metals, as its loader must.
  const files = elsewhere.filter(({ path }) => !/\/worldbank/.test(path));
  t.same(found(files, new RegExp(`^(?! *(/\\*)?\\*).*['"\`/:](${words})['"\`/ ]`)), []);
  const filters = Object.keys(DIMENSIONS).join('|');
  const examples = files.filter(({ path }) => path !== 'src/contract/openapi/examples.ts');
  t.same(found(examples, new RegExp(`['"\`](${filters})['"\`]`)), []);
});

t.test('every function that another file may call says what it is for', async (t) => {
  const exported = /^export (async )?function \w|^export const \w+ = (async )?(<|\()/;
  const silent = src.flatMap(({ path, lines }) =>
    lines.flatMap((line, index) => {
      if (!exported.test(line) || /\*\/$/.test(lines[index - 1] ?? '')) return [];
      return [`${path}:${index + 1} ${line.slice(0, 60)}`];
    }),
  );
  t.same(silent, []);
});
