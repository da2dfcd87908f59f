import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Parts of a working copy that are not part of the project. */
const LEFT_OUT = new Set(['node_modules', '.git', '.data', 'bench']);

const ENTRY = `  {
    slug: 'tungsten',
    name: 'Tungsten',
    prefix: 'WO',
    filters: ['purities', 'incoterms', 'countries', 'regions'],
  },
`;

const SEEDS = `import { seedsOf } from '../types.ts';

export const market = seedsOf('tungsten', {
  volatility: 0.3,
  drivers: { nickel: 0.2 },
  products: { apt: ['Ammonium paratungstate', 'APT', 'WO3'] },
  prices: [
    {
      code: 'CP-WO-0001',
      name: 'Ammonium paratungstate, cif Rotterdam',
      shortName: 'APT RTM',
      product: 'apt',
      assessed: ['Spot', 'Daily', '2012-01-03'],
      dimensions: { purity: '99.8% Ni min' },
      delivery: ['CIF', 'Netherlands', 'Europe'],
      price: ['USD', 'kilogram', '34.5', '35', '35.5'],
    },
  ],
});
`;

/** A copy of the project, with the packages of this one. */
async function copyOf(test: Pick<typeof t, 'teardown'>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'commodity-prices-market-'));
  test.teardown(() => rm(folder, { recursive: true, force: true }));
  for (const name of await readdir(ROOT)) {
    if (!LEFT_OUT.has(name)) await cp(join(ROOT, name), join(folder, name), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

t.test('a market added by the recipe of CONTRIBUTING.md passes the tests of markets', async (t) => {
  const folder = await copyOf(t);
  const run = async (...args: string[]): Promise<string> => {
    const { TAP: _tap, NODE_OPTIONS: _options, ...env } = process.env;
    const options = { cwd: folder, env, maxBuffer: 16_777_216 };
    const ran = promisify(execFile)(process.execPath, args, options);
    return (await ran.catch((error) => Promise.reject(new Error(`${error}\n${error.stdout}`))))
      .stdout;
  };
  const catalog = join(folder, 'src/catalog/markets.ts');
  const before = await readFile(catalog, 'utf8');
  await writeFile(catalog, before.replace('] as const satisfies', `${ENTRY}] as const satisfies`));
  await writeFile(join(folder, 'seeds/markets/tungsten.ts'), SEEDS);

  const written = (await run('scripts/generate.ts')).match(/Wrote (\S+)/g);
  t.same(written?.length, 5);
  const { markets } = JSON.parse(
    await readFile(join(folder, 'src/contract/openapi/examples.json'), 'utf8'),
  );
  t.equal(markets.tungsten.answer.data[0].code, 'CP-WO-0001');
  const readme = await readFile(join(folder, 'README.md'), 'utf8');
  t.match(readme, '| `tungsten` | `prices:tungsten` | `purities`, `incoterms`,');
  const openapi = await readFile(join(folder, 'openapi.yaml'), 'utf8');
  t.match(openapi, /^ {2}\/v3\/prices\/tungsten:$/m);
  t.match(
    await run('test/run.ts', 'test/http/scopes.test.ts', 'test/docs/examples.test.ts'),
    /\n\d+ passed, 0 failed\n$/,
  );
});
