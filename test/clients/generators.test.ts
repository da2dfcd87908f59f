import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { installTools } from '../../scripts/typescript-client.ts';
import { seededDatabase } from '../support/database/database.ts';
import { blocksOf, ROOT } from '../support/docs/blocks.ts';
import { addressOf } from '../support/http/address.ts';
import { serviceOn } from '../support/http/service.ts';
import { PLAIN_ENV } from '../support/process/plain-env.ts';

/** The generators, and a client by each of them. */
const FOLDER = fileURLToPath(new URL('../generators/', import.meta.url));
const MADE = join(FOLDER, 'made');
const RECIPE = 'docs/recipes/generate.md';

t.before(() => installTools(FOLDER));

/** Runs a program and returns its output; fails with its output if the program fails. */
async function run(command: string, args: readonly string[], env: Record<string, string> = {}) {
  const PATH = `${join(process.execPath, '..')}:${PLAIN_ENV['PATH']}`;
  const options = { cwd: MADE, env: { ...PLAIN_ENV, PATH, ...env }, maxBuffer: 67_108_864 };
  const words = ['-u', 'NODE_OPTIONS', command, ...args];
  return promisify(execFile)('env', words, options).then(
    ({ stdout }) => stdout,
    (error) => {
      throw new Error(`${command} ${args.join(' ')}\n${error.stdout}${error.stderr}`);
    },
  );
}

const tool = (name: string, ...args: string[]): Promise<string> =>
  run(process.execPath, [join(FOLDER, 'node_modules', name), ...args]);

const blockOf = (language: string): string =>
  blocksOf(RECIPE).find((each) => each.language === language && each.tag === 'generators')?.text ??
  '';

/** Writes what the recipe has its reader write, and runs its lines. */
async function generate(): Promise<void> {
  await rm(MADE, { recursive: true, force: true });
  await mkdir(MADE);
  await writeFile(join(MADE, 'openapi.yaml'), await readFile(join(ROOT, 'openapi.yaml')));
  await writeFile(join(MADE, 'orval.config.mjs'), blockOf('js'));
  await writeFile(join(MADE, 'recipe.ts'), blockOf('ts'));
  // npx then fails if a generator is not installed.
  await run('bash', ['-euc', blockOf('sh')], { npm_config_offline: 'true', DO_NOT_TRACK: '1' });
}

t.test('every generator makes a client that compiles and reads the service', async (t) => {
  await generate();
  await tool('typescript/bin/tsc', '--project', '..', '--pretty', 'false');
  const service = await serviceOn(t, await seededDatabase(t));
  const settings = {
    COMMODITY_PRICES_URL: await addressOf(service.app),
    COMMODITY_PRICES_KEY: service.key,
  };
  const output = await run(process.execPath, ['out/calls.js'], settings);
  const { recipe, read, refusal, isLegal } = JSON.parse(output);
  const filters = { regions: ['Europe'] };
  const { json } = await service.post('nickel', { filters, options: { includeSeries: true } });
  const markets = (await service.request({ method: 'GET', url: '/v3/prices' })).json;
  const codes = json.data.map(({ code }: { code: string }) => code);
  t.same(recipe, [json, json, markets, json, json, codes]);
  const query = 'regions=Europe&regions=North+America&includeSeries=true&decimalsAsText=true';
  const texts = await service.request({ method: 'GET', url: `/v3/prices/nickel?${query}` });
  t.same(read, [texts.json, texts.json, texts.json], 'lists, decimals as texts, checked by zod');
  t.match(refusal, { code: 'validation_failed', errors: [{ pointer: '?regions/0' }] });
  t.same(isLegal, [true, true, false, false], 'the schemas of zod know the rules of filters');
});

t.test('spectral finds no error in the document by the rules for OpenAPI', async (t) => {
  const rules = join(MADE, 'spectral.yaml');
  await writeFile(rules, 'extends: ["spectral:oas"]\n');
  const args = ['lint', '--ruleset', rules, '--fail-severity', 'error', '--format', 'json'];
  const output = await tool(
    '@stoplight/spectral-cli/dist/index.js',
    ...args,
    join(ROOT, 'openapi.yaml'),
  );
  const errors = JSON.parse(output).filter((each: { severity: number }) => each.severity === 0);
  t.same(errors, []);
});

t.test('the recipe names the tested versions', async (t) => {
  const { devDependencies } = JSON.parse(await readFile(join(FOLDER, 'package.json'), 'utf8'));
  const rows = (await readFile(join(ROOT, RECIPE), 'utf8')).matchAll(
    /^\| \[([\w@/-]+)\].* \| ([\d.]+) \|/gm,
  );
  const named = Object.fromEntries([...rows].map(([, name, version]) => [name, version]));
  t.equal(Object.keys(named).length, 4);
  t.match(devDependencies, named);
});
