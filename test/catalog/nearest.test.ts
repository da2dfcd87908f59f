import t from 'tap';
import { Names, nearest } from '../../src/catalog/nearest.ts';

t.test('a name that begins with what was sent is offered first', async (t) => {
  const names = ['99.8% In', '99.8% Ni min', '99.9% Ni', '99.95% Ni'];
  t.equal(nearest('99.8% Ni', names, 3)[0], '99.8% Ni min');
  t.equal(nearest('99.8% ni', names, 1)[0], '99.8% Ni min', 'whatever its case');
  t.strictSame(
    nearest('price', ['prices', 'prize', 'priceType'], 3),
    ['prices', 'priceType', 'prize'],
    'of several the nearest',
  );
  t.equal(nearest('99.8% Nj', names, 1)[0], '99.8% In', 'of others the one with fewest edits');
});

t.test('American and British spellings are one', async (t) => {
  const names = [
    'Nickel sulphate hexahydrate, battery grade',
    'Nickel matte',
    'Tonne',
    'Short ton',
  ];
  t.strictSame(nearest('nickel sulfate', names, 1), [names[0]]);
  t.strictSame(nearest('nickel sulfate hexahydrate', names, 1), [names[0]]);
  t.equal(nearest('metric ton', [...names, 'Metric ton unit', 'Dry metric tonne'], 1)[0], 'Tonne');
  t.strictSame(nearest('Primary Aluminum', ['Primary aluminium, low carbon', 'Bauxite'], 3), [
    'Primary aluminium, low carbon',
  ]);
  t.strictSame(nearest('aluminum', ['aluminium', 'manganese'], 1), ['aluminium']);
});

t.test('an abbreviation finds the name that it is of', async (t) => {
  const names = ['Europe', 'European Union', 'United States', 'South-East Asia', 'Sweden', 'Asia'];
  t.strictSame(nearest('EU', names, 3), ['European Union', 'Europe']);
  t.equal(nearest('US', names, 1)[0], 'United States');
  t.equal(nearest('USA', names, 1)[0], 'United States');
  t.equal(nearest('SEA', names, 1)[0], 'South-East Asia');
  t.strictSame(nearest('XY', names, 3), []);
});

t.test('a typo finds its name among many thousand', async (t) => {
  const codes = Array.from({ length: 20_000 }, (_, n) => `CP-LI-${String(n).padStart(5, '0')}`);
  const all = [...codes, 'Nickel briquette', 'Zinc ingot, special high grade'];
  const names = new Names(all);
  for (const [sent, meant] of [
    ['CP-LI-1234', 'CP-LI-12340'],
    ['CP-LI-123456', 'CP-LI-12345'],
    ['PC-LI-12345', 'CP-LI-12345'],
    ['XX-LI-12345', 'CP-LI-12345'],
    ['Nickel briquet', 'Nickel briquette'],
    ['Zink ingot, special high grade', 'Zinc ingot, special high grade'],
    ['ingot, special high grade', 'Zinc ingot, special high grade'],
  ] as const) {
    t.equal(names.nearest(sent, 1)[0], meant, sent);
  }
});
