import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import t from 'tap';
import { parse } from 'yaml';
import { MARKETS } from '../../src/catalog/markets.ts';
import { makeProgram } from '../../src/cli/program.ts';
import { SECRETS } from '../../src/config/environment.ts';
import { REMOVED_SETTINGS, SETTINGS } from '../../src/config/settings.ts';
import { EXIT } from '../../src/std/base-errors.ts';
import { seededDatabase } from '../support/database/database.ts';
import { serviceOn } from '../support/http/service.ts';
import { SPECIFIED } from '../support/prices/specification.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const README = read('README.md');
const MANIFEST = JSON.parse(read('package.json'));
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...globSync('docs/**/*.md', { cwd: ROOT }),
];
const documents = pages.map((path) => ({ path, text: read(path) }));

/** The rows of the table that begins with a heading row, cell by cell. */
function tableOf(text: string, ...headings: string[]): string[][] {
  const rows = text.split('\n').map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  const start = rows.findIndex((cells) => headings.every((each, index) => cells[index] === each));
  if (start < 0) throw new Error(`there is no table ${headings.join(', ')}`);
  const end = rows.findIndex((cells, index) => index > start && cells.length === 0);
  return rows.slice(start + 2, end < 0 ? undefined : end);
}

/** The words in single backticks of a text: not those of code blocks. */
const wordsOf = (text = ''): string[] =>
  [...text.matchAll(/(?<!`)`([^`\n]+)`(?!`)/g)].map(([, word = '']) => word);

t.test('the README lists every market with its scope and its filters', async (t) => {
  const rows = tableOf(README, 'Market', 'Scope', 'Further filters').map((row) => row.map(wordsOf));
  t.same(
    rows,
    MARKETS.map(({ slug, filters }) => [[slug], [`prices:${slug}`], [...filters]]),
  );
  t.same(rows.map(([slug]) => slug?.[0]).sort(), SPECIFIED.map((each) => each.slug).sort());
  const [, before = ''] = /([^\n]+)\n\n\| Market \| Scope/.exec(README) ?? [];
  t.same(wordsOf(before), ['products', 'priceCategories', 'priceTypes', 'codes']);
});

t.test('the example of the README answers as it says', async (t) => {
  const [, slug = '', body = ''] =
    /prices\/([a-z-]+) \\\n[^']*'.*\n.*-d '([^']+)'/.exec(README) ?? [];
  const [, json = ''] = /```json\n(\{.*?\n\})\n```/s.exec(README) ?? [];
  const service = await serviceOn(t, await seededDatabase(t));
  const answer = await service.post(slug, JSON.parse(body));
  const { $metadata, data } = JSON.parse(json);
  const { revision, asOf } = answer.json.$metadata;
  t.same(answer.json, { $metadata: { ...$metadata, revision, asOf }, data });
});

t.test('the README lists every address, as the OpenAPI document has it', async (t) => {
  const { paths } = parse(read('openapi.yaml'));
  const documented = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods as object)
      .filter((method) => method !== 'head')
      .map((method) => `${method.toUpperCase()} ${path}`),
  );
  const [{ slug }] = MARKETS;
  const general = documented
    .filter((each) => !MARKETS.slice(1).some((market) => each.includes(`/${market.slug}`)))
    .map((each) => each.replace(`/${slug}`, '/<market>'));
  const listed = tableOf(README, 'Method and path', 'Credential').flatMap(([cell]) =>
    wordsOf(cell),
  );
  const pages = ['GET /', 'GET /docs', 'GET /docs/problems', 'GET /explorer'];
  t.same(listed.sort(), [...general, ...pages].sort());
});

const program = await makeProgram();

/** The command that words of a command line name, and the words that follow it. */
function commandOf(words: readonly string[]): { command: Command; rest: readonly string[] } {
  let command = program;
  for (const [index, word] of words.entries()) {
    const next = command.commands.find((each) => each.name() === word);
    if (!next) return { command, rest: words.slice(index) };
    command = next;
  }
  return { command, rest: [] };
}

/** The fault of a command line in the documentation; null for none. */
function faultOfCommand(line: string): string | null {
  const words = line.replace(/\s+#.*$/, '').match(/"[^"]*"|'[^']*'|\S+/g) ?? [];
  const { command, rest } = commandOf(words);
  if (command.parent === null) return `${line}: no such command`;
  if (command.commands.length > 0 && rest[0] !== '--help') return `${line}: not a whole command`;
  const options = command.options.flatMap((each) => [each.long, each.short]);
  const unknown = rest.filter((each) => /^--?[a-z]/.test(each) && !options.includes(each));
  return unknown.every((each) => each === '--help') ? null : `${line}: no option ${unknown}`;
}

t.test('every command line of the documentation is one that the program takes', async (t) => {
  const lines = documents.flatMap(({ text }) =>
    [...text.matchAll(/\.\/prices ([^\n`]*[^\s`])/g)].map(([, line = '']) => line),
  );
  // `keys …` stands for all commands of a group.
  const whole = lines.filter((line) => !/^<command>|…$/.test(line));
  t.ok(whole.length > 8);
  t.same(whole.map(faultOfCommand).filter(Boolean), []);
  const scripts = documents.flatMap(({ text }) =>
    [...text.matchAll(/\bnpm (?:run (?:--silent |-s )?([\w:]+)|(start|test)\b)/g)].map(
      ([, script, short]) => script ?? short ?? '',
    ),
  );
  t.ok(scripts.includes('check') && scripts.includes('start'));
  t.same(
    scripts.filter((name) => !MANIFEST.scripts[name]),
    [],
  );
});

t.test('the README lists every command of the program', async (t) => {
  const listed = tableOf(README, 'Command', 'What it does').map(([cell]) => wordsOf(cell)[0] ?? '');
  for (const line of listed) t.equal(commandOf(line.split(' ')).rest.length, 0, line);
  t.same(
    [...new Set(listed.map((line) => line.split(' ')[0]))].sort(),
    program.commands.map((each) => each.name()).sort(),
  );
  const exits = tableOf(README, 'Exit code', 'Meaning').map(([code]) => code);
  t.same(exits, [...Object.values(EXIT).map(String), '130, 143']);
});

/** The words of the program, its migrations and what is deployed with it. */
const CODE: ReadonlySet<string> = new Set(
  globSync(['{src,migrations,deploy,scripts}/**/*.*', 'clients/*/*.{py,ts}', 'test/faults/*.ts'], {
    cwd: ROOT,
  }).flatMap((path) => read(path).match(/\w+/g) ?? []),
);

/** Names of PostgreSQL, Compose, DuckDB and OpenTelemetry that only pages use. */
const FOREIGN = new Set([
  ...['failed_count', 'last_archived_time', 'pg_stat_archiver', 'pg_upgrade', 'pg_wal'],
  ...['pg_dump', 'pg_restore', 'pool_mode', 'default_pool_size'],
  ...['auth_file', 'auth_query', 'client_tls_sslmode', 'server_tls_sslmode', 'abort_keep_alive'],
  ...['force_download', 'parentbased_traceidratio', 'recovery_target_time', 'stop_grace_period'],
]);

t.test('every name with underscores, such as an error code, exists in the code', async (t) => {
  const isKnown = (word: string): boolean =>
    [word, word.replace(/^prices_/, '').replace(/_total$/, '')].some((each) => CODE.has(each)) ||
    FOREIGN.has(word);
  for (const { path, text } of documents) {
    const named = wordsOf(text).filter((word) => /^[a-z]+(_[a-z]+)+$/.test(word));
    t.same(
      named.filter((word) => !isKnown(word)),
      [],
      path,
    );
  }
});

t.test('every setting that is named exists', async (t) => {
  // Settings of the tests, of the clients and of the tools around the service.
  const compose = ['USAGE_PASSWORD', 'WEBHOOKS_PASSWORD'];
  const others =
    /^(TEST_DATABASE_URL|DOCKER_HOST|SERVICE_KEY|(NODE|OTEL|POSTGRES|COMMODITY_PRICES)_[A-Z_]+)$/;
  // Settings of Node and Python, which the clients obey.
  const network = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY', 'SSL_CERT_FILE'];
  const files: ReadonlySet<string> = new Set(SECRETS.map((each) => `${each}_FILE`));
  const isKnown = (word: string, path: string): boolean =>
    word in SETTINGS ||
    files.has(word) ||
    others.test(word) ||
    compose.includes(word) ||
    (path.startsWith('docs/recipes/') && network.includes(word)) ||
    // Constants of the code, and a variable of Compose.
    (path === 'CONTRIBUTING.md' && CODE.has(word)) ||
    // Variables of Compose and HAProxy.
    ['CLUSTER_PORT', 'ETCD_PASSWORD', 'NETWORK_CONNECTIONS_MAX', 'TRUSTED_PROXIES'].includes(
      word,
    ) ||
    (path === 'CHANGELOG.md' && word in REMOVED_SETTINGS);
  for (const { path, text } of documents) {
    const named = wordsOf(text).filter((word) => /^[A-Z]+(_[A-Z]+)+$/.test(word));
    t.same(
      named.filter((word) => !isKnown(word, path)),
      [],
      path,
    );
  }
});

/** The anchor that a heading gets. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .trim()
    .replaceAll(' ', '-');

t.test('every link leads somewhere', async (t) => {
  const links = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => ({ path, target })),
  );
  t.ok(links.length > 5);
  for (const { path, target } of links.filter((each) => !/^https:/.test(each.target))) {
    const [file = '', anchor] = target.split('#');
    const place = file === '' ? path : join(dirname(path), file);
    if (!t.ok(existsSync(join(ROOT, place)), `${path} → ${target}`) || anchor === undefined)
      continue;
    const headings = [...read(place).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
    t.ok(headings.map(anchorOf).includes(anchor), `${path} → ${target}`);
  }
});

t.test('nothing is left to be filled in', async (t) => {
  for (const { path, text } of documents) t.notMatch(text, /@@|\bTBD\b|lorem ipsum/i, path);
  t.match(
    read('CHANGELOG.md'),
    new RegExp(`^## ${MANIFEST.version.replaceAll('.', '\\.')}\\b`, 'm'),
  );
  t.match(read('LICENSE'), /^MIT License/);
});
