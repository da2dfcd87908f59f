import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import t from 'tap';
import { type Responder, scriptedServer } from '../clients/scripted-server.ts';
import { testDatabase } from '../support/database/database.ts';
import { publishRates } from '../support/database/published-rates.ts';
import { blocksOf, type CodeBlock, ROOT } from '../support/docs/blocks.ts';
import { addressOf } from '../support/http/address.ts';
import { serviceOn } from '../support/http/service.ts';
import { assistant } from '../support/process/assistant.ts';
import { PANDAS_PYTHON, python } from '../support/process/python.ts';
import { makeFolder } from '../support/run/folders.ts';

const blocks = [
  ...blocksOf('docs/recipes/*.md'),
  // readme.test.ts runs the others.
  ...blocksOf('README.md').filter(({ language }) => language === 'ts'),
];

const DUCKDB = `${ROOT}test/docs/duckdb.ts`;

/** The runner of the code blocks of each language. */
const RUNNERS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  sh: ['bash', '-euo', 'pipefail', '-c'],
  python: [PANDAS_PYTHON ?? 'python3', '-W', 'error', '-c'],
  r: ['Rscript', '--vanilla', '-e'],
  ts: [process.execPath, '--input-type=module-typescript', '--eval'],
  sql: [process.execPath, '--no-warnings', DUCKDB],
};

/** Tests that check the blocks which cannot be run as they stand, by language and tag. */
const CHECKED_ELSEWHERE: Readonly<Record<string, string>> = {
  'powerquery ': 'spreadsheets.test.ts',
  'javascript ': 'spreadsheets.test.ts',
  'yaml ': 'dashboards.test.ts',
  'json ': 'dashboards.test.ts',
  'json assistant': 'recipes.test.ts',
  'sh generators': '../clients/generators.test.ts',
  'js generators': '../clients/generators.test.ts',
  'ts generators': '../clients/generators.test.ts',
  'ts proxy': '../clients/network.test.ts',
  'python server': 'dashboards.test.ts',
  'python dlt': 'warehouse.test.ts',
  'python parsed': 'recipes.test.ts',
  'sql parsed': 'recipes.test.ts',
  // Lines that set the environment, with a placeholder.
  'text ': 'recipes.test.ts',
};

const runnable = blocks.filter(({ language, tag }) => tag === '' && language in RUNNERS);

const isThere = (command: string, ...words: string[]): boolean => {
  try {
    execFileSync(command, words, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};
const hasR = isThere('Rscript', '--version');

/** The program that this machine lacks for a block; null if it has all. */
function missingFor({ language, text }: CodeBlock): string | null {
  if (language === 'r' && !hasR) return 'R';
  return language === 'python' && /pandas|\.df\(/.test(text) && !PANDAS_PYTHON ? 'pandas' : null;
}

const database = await testDatabase(t, { seeded: true });
await publishRates(database);
const service = await serviceOn(t, database);
const url = await addressOf(service.app);
const folder = await makeFolder();
t.teardown(folder.remove);
// The link that npm makes when it installs a folder.
mkdirSync(`${folder.path}/node_modules`);
symlinkSync(`${ROOT}clients/typescript`, `${folder.path}/node_modules/commodity-prices-client`);
/** The installed command, which is that of this checkout. */
const COMMAND = join(folder.path, 'commodity-prices');
await writeFile(COMMAND, `#!/bin/sh\nexec '${ROOT}prices' "$@"\n`, { mode: 0o755 });

const run = (
  { language, text }: CodeBlock,
  address = url,
): Promise<{ stdout: string; failure: string | null }> =>
  new Promise((resolve) => {
    const [command = '', ...words] = RUNNERS[language] ?? [];
    const env = {
      PATH: `${folder.path}:${process.env['PATH']}`,
      PYTHONPATH: `${ROOT}clients/python`,
      PYTHONDONTWRITEBYTECODE: '1',
      LANG: 'C.UTF-8',
      COMMODITY_PRICES_URL: address,
      COMMODITY_PRICES_KEY: service.key,
    };
    const options = { cwd: folder.path, env, timeout: 60_000, maxBuffer: 64 * 1024 * 1024 };
    execFile(command, [...words, text], options, (error, stdout, stderr) => {
      resolve({ stdout, failure: error === null ? null : `${stderr}${error.message}` });
    });
  });

/** The first day of the recipes. */
const FIRST_DAY = '2026-06-01';

/** The number of points of each price that the first recipe of each language reads. */
async function pointsFrom(dateFrom: string): Promise<readonly number[]> {
  const filters = { regions: ['Europe'], dateFrom };
  const { json } = await service.post('nickel', { filters, options: { includeSeries: true } });
  return json.data.map(({ series }: { series: readonly unknown[] }) => series.length);
}

const sum = (counts: readonly number[]): number => counts.reduce((total, each) => total + each, 0);

/** The counts that blocks print: rows of the first recipe of each language, records of lithium. */
async function expectedCounts(): Promise<Readonly<Record<string, number>>> {
  const { json } = await service.post('lithium', {});
  return { rows: sum(await pointsFrom(FIRST_DAY)), records: json.data.length };
}

t.test('every block of the recipes that can be run does, and reads the same rows', async (t) => {
  const expected = await expectedCounts();
  t.ok(Object.values(expected).every((count) => count > 1));
  for (const language of Object.keys(RUNNERS)) {
    t.ok(
      runnable.some((each) => each.language === language),
      language,
    );
  }
  for (const block of runnable) {
    const title = `${block.page}: ${block.text.slice(0, 60)}`;
    const missing = missingFor(block);
    if (missing !== null) {
      t.comment(`${title}: not run, as this machine lacks ${missing}`);
      continue;
    }
    const { stdout, failure } = await run(block);
    t.equal(failure, null, title);
    t.notMatch(stdout, /"code":"[a-z]+_/, `${title}: no refusal`);
    t.ok(stdout.length > 0, title);
    for (const [, count, what = ''] of stdout.matchAll(/(\d+) (rows|records)/g)) {
      t.equal(Number(count), expected[what], title);
    }
  }
});

t.test('no recipe counts a price without points as a row', async (t) => {
  const day = '2026-06-26';
  const points = await pointsFrom(day);
  t.ok(points.includes(0) && sum(points) > 0);
  const counting = runnable.filter(
    (each) => missingFor(each) === null && /rows\b|nickel\.parquet/.test(each.text),
  );
  const languages = new Set<string>();
  for (const block of counting) {
    if (!block.text.includes(FIRST_DAY) && block.language !== 'sql') continue;
    const { stdout } = await run({ ...block, text: block.text.replaceAll(FIRST_DAY, day) });
    for (const [, count] of stdout.matchAll(/(\d+) rows/g)) {
      t.equal(Number(count), sum(points), `${block.page}: ${block.text.slice(0, 60)}`);
      languages.add(block.language);
    }
  }
  for (const language of ['sh', 'sql', 'ts', 'python']) t.ok(languages.has(language), language);
});

t.test('the revision that DuckDB reads is one that a request takes', async (t) => {
  const own = runnable.filter(({ page }) => /duckdb/.test(page));
  let stdout = '';
  for (const block of own) ({ stdout } = await run(block));
  const { status } = await service.post('nickel', { options: { revision: stdout.trim() } });
  t.equal(status, 200, stdout);
});

const WHOLE = 'first\nsecond\n';

/** Answers with `WHOLE`, or with its first line and a broken connection. */
const lines =
  (isWhole: boolean, headers: Record<string, string>): Responder =>
  (reply, request) => {
    if (request.headers['if-none-match'] === headers['etag'] && headers['etag']) {
      reply.writeHead(304, headers).end();
    } else {
      reply.writeHead(200, headers);
      if (isWhole) reply.end(WHOLE);
      else reply.write('first\n', () => reply.destroy());
    }
  };

t.test('a cut answer is never a part of a file of the recipes', async (t) => {
  const blockOf = (word: string): CodeBlock => {
    const found = runnable.find(({ language, text }) => language === 'sh' && text.includes(word));
    if (found === undefined) throw new Error(`no block has ${word}`);
    // A shell into which a user pastes it goes on after a failure.
    return { ...found, text: `set +e\n${found.text}` };
  };
  const next = { 'X-Next-Cursor': 'x' };
  const paged = await scriptedServer(t, [lines(true, next), lines(false, next), lines(true, {})]);
  const { stdout, failure } = await run(blockOf('lithium.ndjson'), paged.url);
  t.equal(paged.requests(), 2, 'no page follows');
  t.notMatch(stdout, /records/);
  t.not(failure, null);
  t.notOk(existsSync(`${folder.path}/lithium.ndjson`));

  const etag = { etag: '"new"' };
  const cutFirst = await scriptedServer(t, [lines(false, etag), lines(true, etag)]);
  await run(blockOf('--etag-save'), cutFirst.url);
  t.equal(readFileSync(`${folder.path}/copper.csv`, 'utf8'), WHOLE);

  const cut = await scriptedServer(t, [lines(false, {})]);
  const once = await run(blockOf('nickel.csv'), cut.url);
  t.notMatch(once.stdout, /rows/);
  const file = await run(blockOf('is here'), cut.url);
  t.notMatch(file.stdout, /is here/);
});

t.test('arguments of the recipe of R replace its defaults', async (t) => {
  if (!hasR) {
    t.comment('not run, as this machine lacks R');
    return;
  }
  const [block] = runnable.filter(({ language }) => language === 'r');
  const options = 'columns = "all", format = "json"';
  const text = (block?.text ?? '').replace(/(dateFrom = "[^"]+")/, `$1, ${options}`);
  const counted = `${text}cat(ncol(prices), "columns\\n")\n`;
  const { stdout, failure } = await run({ language: 'r', text: counted } as CodeBlock);
  t.equal(failure, null);
  const request = 'regions=Europe&includeSeries=true&columns=all&format=csv';
  const all = await service.request({ method: 'GET', url: `/v3/prices/nickel?${request}` });
  const [header = ''] = all.text.split('\r\n');
  t.match(stdout, `${header.split(',').length} columns`);
});

t.test('every other block is checked by a test', async (t) => {
  const others = blocks.filter((each) => !runnable.includes(each));
  for (const { page, language, tag } of others) {
    const file = CHECKED_ELSEWHERE[`${language} ${tag}`];
    t.ok(file, `${page}: ${language} ${tag}`);
    const test = readFileSync(`${ROOT}test/docs/${file}`, 'utf8');
    t.ok(test.includes(page.replace(/^.*\//, '')) || test.includes(tag), `${file}: ${page}`);
  }
});

t.test('each page says what its tests run, and what they do not', async (t) => {
  for (const page of new Set(blocks.map((each) => each.page))) {
    if (page === 'README.md') continue;
    const own = blocks.filter((each) => each.page === page && each.language !== 'text');
    const text = readFileSync(`${ROOT}${page}`, 'utf8');
    const isRun = own.every((each) => runnable.includes(each));
    t.match(text, /The tests (run|start|read|send)/, page);
    t.equal(/not run|in place of/.test(text), !isRun, page);
  }
});

t.test('blocks that are only parsed keep the rules of their language', async (t) => {
  const parsed = blocks.filter(({ tag }) => tag === 'parsed');
  t.same(
    parsed.map(({ page, language }) => `${page} ${language}`),
    ['docs/recipes/duckdb.md sql', 'docs/recipes/duckdb.md python'],
  );
  for (const { page, language, text } of parsed) {
    if (language === 'python') {
      const program = `import ast; ast.parse(${JSON.stringify(text)}, feature_version=(3, 9))`;
      t.equal((await python(program)).stderr, '', page);
      continue;
    }
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    t.equal((await connection.extractStatements(text)).count, text.split(';\n').length - 1, page);
    connection.closeSync();
  }
  for (const { text } of parsed) {
    const [, path = '', query = ''] = /(\/v3\/prices\/\w+)"?\s*"?(\?[^"']+)/.exec(text) ?? [];
    const { statusCode } = await service.app.inject({
      url: `${path}${query}`,
      headers: { 'x-api-key': service.key },
    });
    t.equal(statusCode, 200, `${path}${query}`);
  }
});

t.test('an assistant that is registered as the recipe says reads prices', async (t) => {
  const [block] = blocks.filter(({ page, tag }) => /assistants/.test(page) && tag === 'assistant');
  const { mcpServers } = JSON.parse(block?.text ?? '');
  const { command, args, env } = mcpServers['commodity-prices'];
  t.same(
    [command, Object.keys(env)],
    ['commodity-prices', ['COMMODITY_PRICES_URL', 'COMMODITY_PRICES_KEY']],
  );
  const own = { COMMODITY_PRICES_URL: url, COMMODITY_PRICES_KEY: service.key };
  const { ask } = await assistant(t, own, { command: COMMAND, args });
  const { data } = await ask('get_prices', { market: 'nickel', filters: { regions: ['Europe'] } });
  t.ok(data.prices.length > 0);
});
