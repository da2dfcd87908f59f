import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { installTools, makeTypescriptClient, TOOLS } from '../../scripts/typescript-client.ts';
import { MARKETS } from '../../src/catalog/markets.ts';
import { seededDatabase } from '../support/database/database.ts';
import { addressOf } from '../support/http/address.ts';
import { serviceOn } from '../support/http/service.ts';
import { until } from '../support/http/sockets.ts';
import { PLAIN_ENV } from '../support/process/plain-env.ts';
import { makeFolder } from '../support/run/folders.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CLIENT = join(ROOT, 'clients', 'typescript');

/** The output and the success of a program. */
interface ProgramRun {
  readonly isGood: boolean;
  readonly stdout: string;
}

/** Runs a program of Node without the options that tap adds to the environment of each child. */
const node = (cwd: string, args: readonly string[], env: Record<string, string> = {}) =>
  new Promise<ProgramRun>((resolve) => {
    const options = { cwd, env: { ...PLAIN_ENV, ...env }, maxBuffer: 16_777_216 };
    const words = ['-u', 'NODE_OPTIONS', process.execPath, ...args];
    execFile('env', words, options, (error, stdout, stderr) => {
      resolve({ isGood: error === null, stdout: `${stdout}${stderr}` });
    });
  });

/** The compilers of users: the one of the tools, and the native one of this project. */
const COMPILERS = [TOOLS, ROOT].map((path) => join(path, 'node_modules/typescript/bin/tsc'));

t.before(() => installTools(TOOLS));

t.test('the generated files of the client are those that are committed', async (t) => {
  const folder = await makeFolder();
  t.teardown(folder.remove);
  await makeTypescriptClient(folder.path);
  for (const file of ['schema.d.ts', 'client.d.ts', 'client.js']) {
    const [made, committed] = await Promise.all(
      [folder.path, CLIENT].map((path) => readFile(join(path, file), 'utf8')),
    );
    t.ok(made === committed, `${file} is current: npm run generate`);
  }
});

t.test('the client has at most 493 lines by hand, 5,050 bytes, and no dependency', async (t) => {
  const source = await readFile(join(CLIENT, 'client.ts'), 'utf8');
  t.ok(source.trimEnd().split('\n').length <= 493);
  const program = await readFile(join(CLIENT, 'client.js'));
  t.ok(gzipSync(program, { level: 9 }).length <= 5_050);
  t.notMatch(program.toString(), /^\s*import\b|\bimport\(|\brequire\(/m);
  const manifest = JSON.parse(await readFile(join(CLIENT, 'package.json'), 'utf8'));
  t.same([manifest.dependencies, manifest.peerDependencies], [undefined, undefined]);
  const publint = join(ROOT, 'node_modules/publint/src/cli.js');
  t.match((await node(CLIENT, [publint, '--strict'])).stdout, /All good/);
});

/** Programs that must not compile, each with the compiler error. */
const REFUSED: Readonly<Record<string, readonly [program: string, error: RegExp]>> = {
  'a misspelt filter': [
    `client.prices('nickel', { filters: { regoins: ['Europe'] } });`,
    /'regoins' does not exist/,
  ],
  'a filter of another market': [
    `client.prices('nickel', { filters: { grades: ['Battery'] } });`,
    /'grades' does not exist/,
  ],
  'a filter of another market on pages': [
    `client.pages('copper', { filters: { purities: ['99%'] } });`,
    /'purities' does not exist/,
  ],
  'codes beside another filter': [
    `client.prices('nickel', { filters: { codes: ['CP-NI-0001'], regions: ['Europe'] } });`,
    /'string' is not assignable to type 'never'/,
  ],
  'codes beside a filter of all markets': [
    `client.prices('nickel', { filters: { codes: ['CP-NI-0001'], products: ['Nickel'] } });`,
    /'string' is not assignable to type 'never'/,
  ],
  'a filter that is no list': [
    `client.prices('nickel', { filters: { regions: 'Europe' } });`,
    /'string' is not assignable to type 'readonly string\[\]'/,
  ],
  'a misspelt option': [
    `client.prices('nickel', { options: { includeSerie: true } });`,
    /'includeSerie' does not exist/,
  ],
  'an option beside the options': [
    `client.prices('nickel', { currency: 'EUR' });`,
    /'currency' does not exist/,
  ],
  'an option of another format': [
    `client.prices('nickel', { options: { layout: 'wide' } });`,
    /'layout' does not exist/,
  ],
  'a value that an option does not take': [
    `client.prices('nickel', { options: { onUnconvertible: 'drop' } });`,
    /"drop"' is not assignable to type .*"keep"/,
  ],
  'an unknown market': [`client.prices('gold');`, /"gold"' is not assignable/],
  'an unknown market of the feed': [
    `client.changes({ market: ['gold'] });`,
    /"gold"' is not assignable/,
  ],
  'a misspelt parameter of the feed': [`client.changes({ sinse: 'a' });`, /'sinse' does not exist/],
  'a dimension that the market lacks': [
    `(await client.prices('copper')).data[0]?.purity;`,
    /'purity' does not exist/,
  ],
  'a dimension that may be null': [
    `(await client.prices('nickel')).data[0]?.region.name;`,
    / is possibly 'null'/,
  ],
  'a text as a number': [
    `const mid: number | null | undefined = rowsOf(await texts.prices('nickel'))[0]?.mid; mid;`,
    /'string' is not assignable to type 'number'/,
  ],
  'the value of any change': [
    `(await client.changes()).data[0]?.after?.mid;`,
    /'mid' does not exist on type/,
  ],
};

const USED = `
for (const record of (await client.prices('lithium', {
  filters: { grades: ['Battery'], dateFrom: '2026-01-01' },
  options: { currency: 'EUR', aggregate: { period: 'month', method: 'average' } },
}, { timeoutMs: 5_000, signal: AbortSignal.timeout(9_000) })).data) {
  const grade: string | undefined = record.grade?.name;
  const mids: (number | null)[] = record.series.map((point) => point.mid);
  const change: number | undefined = record.summary?.changes.month?.absolute;
  console.log(grade, mids, change);
}
const codes: readonly string[] = ['CP-NI-0001'];
const exact = await texts.prices('nickel', { filters: { codes, dateTo: '2026-01-01' } });
const high: string | null | undefined = exact.data[0]?.series[0]?.high;
const corrections: number | undefined = exact.data[0]?.series[0]?.corrections;
const order: number | undefined = exact.data[0]?.specification[0]?.order;
const percent: string | null | undefined = exact.data[0]?.summary?.changes.week?.percent;
const columns: string[] = rowsOf(exact).columns;
console.log(high, corrections, order, percent, columns);
for await (const page of client.pages('recycling', { filters: { feedstocks: ['Black mass'] } })) {
  console.log(page.revision, page.data[0]?.feedstock?.name);
}
for (const change of (await client.changes({ market: ['nickel'], wait: 2 })).data) {
  if (change.operation === 'corrected') console.log(change.before.mid - change.after.mid);
}
try {
  await createClient().prices('cobalt');
} catch (error) {
  if (error instanceof PricesError && error.code === 'rate_limited') console.log(error.status);
}`;

/** The programs of the recipes, which must compile as they stand. */
const RECIPES = [
  ...readFileSync(join(ROOT, 'docs/recipes/typescript.md'), 'utf8').matchAll(
    /^```ts(?: proxy)?\n(.*?)^```$/gms,
  ),
].map(([, text = '']) => text);

t.test('the compiler refuses wrong requests and takes those of the recipes', async (t) => {
  const folder = await makeFolder();
  t.teardown(folder.remove);
  await mkdir(join(folder.path, 'node_modules'));
  await symlink(CLIENT, join(folder.path, 'node_modules', 'commodity-prices-client'));
  for (const name of ['undici', '@types'])
    await symlink(join(ROOT, 'node_modules', name), join(folder.path, 'node_modules', name));
  const head =
    `import { createClient, PricesError, rowsOf } from 'commodity-prices-client';\n` +
    `const client = createClient();\nconst texts = createClient({ decimals: 'text' });\n` +
    'export const all = [client, texts, PricesError, rowsOf];\n';
  const refused = Object.values(REFUSED).map(([program]) => head + program);
  const texts = [...refused, head + USED, ...RECIPES];
  await Promise.all(texts.map((text, at) => writeFile(join(folder.path, `${at}.ts`), text)));
  const { compilerOptions } = JSON.parse(await readFile(join(TOOLS, 'tsconfig.json'), 'utf8'));
  const settings = { compilerOptions: { ...compilerOptions, strict: true }, include: ['*.ts'] };
  await writeFile(join(folder.path, 'tsconfig.json'), JSON.stringify(settings));
  await writeFile(join(folder.path, 'package.json'), '{"type": "module"}');
  for (const compiler of COMPILERS) {
    const { stdout } = await node(folder.path, [compiler, '--project', '.', '--pretty', 'false']);
    const saidOf = (at: number): string[] =>
      stdout.split(/\n(?=\S)/).filter((line) => line.startsWith(`${at}.ts(`));
    for (const [at, [title, [, error]]] of Object.entries(REFUSED).entries()) {
      t.match(saidOf(at).join('\n'), error, title);
      t.equal(saidOf(at).length, 1, title);
    }
    for (let at = refused.length; at < texts.length; at += 1)
      t.same(saidOf(at), [], texts[at] ?? '');
    t.notMatch(stdout, /commodity-prices-client|schema\.d\.ts/, 'the types themselves are right');
  }
});

t.test('a client generated from openapi.yaml type-checks and asks every market', async (t) => {
  const tool = async (name: string, ...args: string[]) => {
    const { isGood, stdout } = await node(TOOLS, [`node_modules/${name}`, ...args]);
    t.ok(isGood, stdout);
  };
  const openapi = join(ROOT, 'openapi.yaml');
  await tool('openapi-typescript/bin/cli.js', openapi, '--output', 'schema.d.ts');
  await tool('typescript/bin/tsc', '--project', '.');

  const service = await serviceOn(t, await seededDatabase(t));
  const address = await addressOf(service.app);
  // The client checks the health once; before its first revision check the service is not "ok".
  await until('the service is ready', async () => (await fetch(`${address}/ready`)).status === 200);
  const settings = { NODE_NO_WARNINGS: '1', SERVICE_URL: address, SERVICE_KEY: service.key };
  const result = await node(TOOLS, ['integrator.ts'], settings);
  t.ok(result.isGood, result.stdout);
  const { markets, health, reports } = JSON.parse(result.stdout);
  t.equal(health.status, 'ok');
  t.same(
    markets.map((each: { slug: string }) => each.slug),
    MARKETS.map((each) => each.slug),
  );
  t.ok(markets.every((each: { authorized: boolean }) => each.authorized));
  t.same(
    reports.map((each: { market: string }) => each.market),
    MARKETS.map((each) => each.slug),
  );
  for (const [index, { market, count, codes, values, points, warnings }] of reports.entries()) {
    t.ok(count > 0 && codes.length === count, `${market} answered`);
    t.ok(codes.every((code: string) => code.startsWith(`CP-${MARKETS[index]?.prefix}-`)));
    t.equal(values.length, 1, 'one value was asked for, and one came');
    t.type(values[0], 'string');
    t.ok(points > 0, `${market} has points`);
    t.same(warnings, []);
  }
});
