import t from 'tap';
import { nearest } from '../../src/catalog/nearest.ts';

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
