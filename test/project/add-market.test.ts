import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { copyOf, runIn } from '../support/process/project-copy.ts';

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

/** Tests that the recipe names; the others need its fourth step. */
const TESTS = [
  'test/http/scopes.test.ts',
  'test/docs/examples.test.ts',
  'test/seeds/seed.test.ts',
  'test/seeds/seed-data.test.ts',
  'test/openapi/openapi.test.ts',
];

t.test('a market added by the recipe of CONTRIBUTING.md passes the tests of markets', async (t) => {
  const folder = await copyOf(t);
  const run = runIn(folder);
  const catalog = join(folder, 'src/catalog/markets.ts');
  const before = await readFile(catalog, 'utf8');
  await writeFile(catalog, before.replace('] as const satisfies', `${ENTRY}] as const satisfies`));
  await writeFile(join(folder, 'seeds/markets/tungsten.ts'), SEEDS);

  const written = (await run('scripts/generate.ts')).match(/Wrote (\S+)/g);
  t.same(written?.length, 10);
  const { markets } = JSON.parse(
    await readFile(join(folder, 'src/contract/openapi/examples.json'), 'utf8'),
  );
  t.equal(markets.tungsten.answer.data[0].code, 'CP-WO-0001');
  const readme = await readFile(join(folder, 'README.md'), 'utf8');
  t.match(readme, '| `tungsten` | `prices:tungsten` | `purities`, `incoterms`,');
  const openapi = await readFile(join(folder, 'openapi.yaml'), 'utf8');
  t.match(openapi, /^ {2}\/v3\/prices\/tungsten:$/m);
  t.match(await run('test/run.ts', ...TESTS), /\n\d+ passed, 0 failed\n$/);
});
